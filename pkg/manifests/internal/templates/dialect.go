// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"regexp"
)

// foreign are functions that templates for SAP component-operator-runtime have beyond those here, with
// what takes their place.
var foreign = map[string]string{
	"namespace":         "use .Namespace",
	"name":              "use .Name",
	"component":         "use .Component, which has the name, the namespace, the digest, the revision, labels and annotations, and the values in .Values",
	"componentDigest":   "use .Component.Digest",
	"componentRevision": "use .Component.Revision",
	"kubernetesVersion": "let a parameter transformer set a value, or render a Helm chart, which has .Capabilities",
	"apiResources":      "let a parameter transformer set a value, or render a Helm chart, which has .Capabilities",

	"mustLookup":               "use lookup, and required for an object that must exist",
	"lookupList":               "use lookup with an empty name, and filter the result",
	"localLookup":              "use lookup if the components have no kubeconfig, else a reference in the spec",
	"mustLocalLookup":          "use lookup if the components have no kubeconfig, else a reference in the spec",
	"localLookupList":          "use lookup with an empty name if the components have no kubeconfig",
	"lookupWithKubeConfig":     "templates reach the target cluster only: read the object in a hook, and pass on what is needed in a value",
	"mustLookupWithKubeConfig": "templates reach the target cluster only: read the object in a hook, and pass on what is needed in a value",
	"lookupListWithKubeConfig": "templates reach the target cluster only: read the objects in a hook, and pass on what is needed in a value",

	"bitwiseShiftLeft": bitwise, "bitwiseShiftRight": bitwise, "bitwiseAnd": bitwise, "bitwiseOr": bitwise, "bitwiseXor": bitwise,
	"parseIPv4Address": bitwise, "formatIPv4Address": bitwise,
}

const bitwise = "add it by the option Functions of package gotemplate, or compute the value in a parameter transformer"

// undefined matches the error of the parser about a function.
var undefined = regexp.MustCompile(`function "([A-Za-z0-9]+)" not defined`)

// explain adds to an error of the parser what takes the place of a function of another dialect.
func explain(text string) error {
	match := undefined.FindStringSubmatch(text)
	if match == nil || foreign[match[1]] == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: templates for SAP component-operator-runtime have it; here, %s", text, foreign[match[1]])
}
