// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// podNamespaceVariable is usually filled by the downward API.
	podNamespaceVariable = "POD_NAMESPACE"
	// podNamespaceFile is mounted into every pod that has a service account.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// fallbackNamespace is for an operator that runs outside of a cluster.
	fallbackNamespace = "default"
)

// surroundings are what a process can find out about where it runs.
type surroundings struct {
	getenv   func(variable string) string
	readFile func(path string) ([]byte, error)
}

func processSurroundings() surroundings {
	return surroundings{getenv: os.Getenv, readFile: os.ReadFile}
}

// operatorNamespace returns the namespace of the operator's own objects. The error
// says where a bad name comes from.
func operatorNamespace(option *string, around surroundings) (name string, err error) {
	from := "option OperatorNamespace"
	if option != nil {
		name = *option
	} else if name = around.getenv(podNamespaceVariable); name != "" {
		from = "variable " + podNamespaceVariable
	} else {
		// A file that cannot be read is that of a process outside of a cluster.
		content, _ := around.readFile(podNamespaceFile)
		from = "file " + podNamespaceFile
		name = cmp.Or(strings.TrimSpace(string(content)), fallbackNamespace)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return name, fmt.Errorf("%s %q: %s", from, name, strings.Join(problems, ", "))
	}
	return name, nil
}
