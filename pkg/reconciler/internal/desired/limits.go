// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	namevalidation "k8s.io/apimachinery/pkg/util/validation"
)

// Limits of the API server: what is beyond them it refuses, and then the objects
// before it are written and those after it are not.
const (
	// maxData bounds the values of a ConfigMap or Secret.
	maxData = 1 << 20
	// maxBody bounds the body of a request.
	maxBody = 3 << 20
)

var kindConfigMap = schema.GroupKind{Kind: "ConfigMap"}

// checkLimits finds what the API server would refuse in any object.
func (i *item) checkLimits(owner types.UID) {
	i.checkLabels()
	i.checkAnnotations()
	i.checkOwners(owner)
	switch gk := i.key.GroupKind(); gk {
	case kindConfigMap, kindSecret:
		if size := i.dataSize(); size > maxData {
			i.mistake("has %d bytes of data; the server takes %d at most", size, maxData)
		}
	default:
		if size := sizeOf(i.content); size > maxBody {
			i.mistake("has at least %d bytes; the server takes %d at most", size, maxBody)
		}
	}
}

func (i *item) checkLabels() {
	labels := stringsOf(i.content, "labels")
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if problems := namevalidation.IsQualifiedName(name); len(problems) > 0 {
			i.mistake("metadata.labels: %q: %s", name, strings.Join(problems, "; "))
		}
		if problems := namevalidation.IsValidLabelValue(labels[name]); len(problems) > 0 {
			i.mistake("metadata.labels: the value of %s: %s", name, strings.Join(problems, "; "))
		}
	}
}

func (i *item) checkAnnotations() {
	annotations := stringsOf(i.content, "annotations")
	size := 0
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		size += len(name) + len(annotations[name])
		// The server compares the names of annotations in lower case.
		if problems := namevalidation.IsQualifiedName(strings.ToLower(name)); len(problems) > 0 {
			i.mistake("metadata.annotations: %q: %s", name, strings.Join(problems, "; "))
		}
	}
	if size > validation.TotalAnnotationSizeLimitB {
		i.mistake("metadata.annotations have %d bytes; the server takes %d at most", size, validation.TotalAnnotationSizeLimitB)
	}
}

// checkOwners refuses references to others than the component: the server's
// garbage collector deletes an object whose owners do not exist.
func (i *item) checkOwners(owner types.UID) {
	references, _ := at(i.content, "metadata", "ownerReferences").([]any)
	for _, reference := range references {
		fields, _ := reference.(map[string]any)
		if uid, _ := fields["uid"].(string); uid == "" || types.UID(uid) != owner {
			i.mistake("metadata.ownerReferences: %v %v is not the component: the object would be deleted with it, or at once if it does not exist",
				fields["kind"], fields["name"])
		}
	}
}

// dataSize is the size of the values as the server counts it.
func (i *item) dataSize() int {
	size := 0
	for _, field := range []string{"data", "binaryData"} {
		values, _ := i.content[field].(map[string]any)
		encoded := field == "binaryData" || i.key.GroupKind() == kindSecret
		for _, value := range values {
			text, _ := value.(string)
			if encoded {
				size += base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(text, "=\n")))
			} else {
				size += len(text)
			}
		}
	}
	return size
}

// sizeOf is a lower bound of the size of the value as JSON.
func sizeOf(value any) int {
	switch v := value.(type) {
	case map[string]any:
		size := 2
		for name, element := range v {
			size += len(name) + 4 + sizeOf(element)
		}
		return size
	case []any:
		size := 2
		for _, element := range v {
			size += 1 + sizeOf(element)
		}
		return size
	case string:
		return len(v) + 2
	default:
		return 1
	}
}
