// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// serverKept are the fields of the metadata that only the server sets.
var serverKept = []string{
	"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName",
}

// identify finds type and name, checks the metadata, and removes the fields that only the server
// may set.
func (i *item) identify() {
	if i.broken {
		return
	}
	i.identifyType()
	metadata, isMap := i.content["metadata"].(map[string]any)
	switch {
	case i.content["metadata"] == nil:
		i.fail("metadata.name is missing")
		return
	case !isMap:
		i.fail("metadata is not a map but %s", describe(i.content["metadata"]))
		return
	}
	i.identifyName(metadata)
	if metadata["deletionTimestamp"] != nil {
		i.mistake("metadata.deletionTimestamp is set: an object that is being deleted cannot be applied")
	}
	for _, name := range serverKept {
		delete(metadata, name)
	}
	delete(i.content, "status")
	i.checkStrings(metadata, "labels")
	i.checkStrings(metadata, "annotations")
	i.checkList(metadata, "finalizers")
	i.checkList(metadata, "ownerReferences")
}

func (i *item) identifyType() {
	kind, isString := i.content["kind"].(string)
	switch {
	case i.content["kind"] == nil || isString && kind == "":
		i.fail("kind is missing")
	case !isString:
		i.fail("kind is not a string but %s", describe(i.content["kind"]))
	case strings.ContainsFunc(kind, notInNames) || strings.Contains(kind, "/"):
		i.fail("kind %q is not a name", kind)
	}
	version, isString := i.content["apiVersion"].(string)
	switch {
	case i.content["apiVersion"] == nil || isString && version == "":
		i.fail("apiVersion is missing")
	case !isString:
		i.fail("apiVersion is not a string but %s", describe(i.content["apiVersion"]))
	}
	if i.broken {
		return
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" || strings.ContainsFunc(version, notInNames) {
		i.fail("apiVersion %q is not of the form group/version", version)
		return
	}
	i.key.Group, i.key.Kind, i.version = gv.Group, kind, gv.Version
}

// notInNames reports whether no name can contain the character.
func notInNames(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func (i *item) identifyName(metadata map[string]any) {
	name, isString := metadata["name"].(string)
	prefix := metadata["generateName"]
	switch {
	case prefix != nil && prefix != "":
		i.fail("metadata.generateName is not possible, because the object could not be found again: set metadata.name")
	case metadata["name"] == nil || isString && name == "":
		i.fail("metadata.name is missing")
	case !isString:
		i.fail("metadata.name is not a string but %s", describe(metadata["name"]))
	case len(name) > validation.DNS1123SubdomainMaxLength:
		i.fail("metadata.name has %d characters, which is more than %d", len(name), validation.DNS1123SubdomainMaxLength)
	case len(content.IsPathSegmentName(name)) > 0 || strings.ContainsFunc(name, notInNames):
		i.fail("metadata.name %q is not a name", name)
	}
	if i.broken {
		return
	}
	namespace, isString := metadata["namespace"].(string)
	switch {
	case metadata["namespace"] != nil && !isString:
		i.fail("metadata.namespace is not a string but %s", describe(metadata["namespace"]))
	case namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0:
		i.fail("metadata.namespace %q is not a name of a namespace", namespace)
		namespace = "" // it must not get into the name of the object
	}
	i.key.Namespace, i.key.Name = namespace, name
}

// checkStrings makes sure that labels or annotations are strings: clients that
// read them as such lose all of them if one is not.
func (i *item) checkStrings(metadata map[string]any, field string) {
	values, isMap := metadata[field].(map[string]any)
	switch {
	case metadata[field] == nil:
		delete(metadata, field)
	case !isMap:
		i.fail("metadata.%s is not a map but %s", field, describe(metadata[field]))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, isString := values[name].(string); !isString {
			i.fail("metadata.%s: the value of %s is not a string but %s: quote it", field, name, describe(values[name]))
		}
	}
}

func (i *item) checkList(metadata map[string]any, field string) {
	if metadata[field] == nil {
		delete(metadata, field)
		return
	}
	elements, isList := metadata[field].([]any)
	if !isList {
		i.fail("metadata.%s is not a list but %s", field, describe(metadata[field]))
	}
	for _, element := range elements {
		_, isString := element.(string)
		_, isMap := element.(map[string]any)
		if field == "finalizers" && !isString || field == "ownerReferences" && !isMap {
			i.fail("metadata.%s holds %s", field, describe(element))
		}
		if field == "finalizers" && (element == metav1.FinalizerOrphanDependents || element == metav1.FinalizerDeleteDependents) {
			i.mistake("metadata.finalizers: %s is set by the garbage collector only: it says how a deletion goes on, and would hold up the deletion of the object", element)
		}
	}
}
