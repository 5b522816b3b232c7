// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	namevalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Limits of the API server. It refuses an object beyond them; then the objects before it are
// written and the objects after it are not.
const (
	// maxData bounds the values of a ConfigMap or Secret.
	//
	// Limit: the values of a ConfigMap or Secret, all together; more is a mistake in the manifests.
	maxData = 1 << 20
	// maxBody bounds the body of a request.
	//
	// Limit: one object as JSON; more is a mistake in the manifests.
	maxBody = 3 << 20
)

var kindConfigMap = schema.GroupKind{Kind: "ConfigMap"}

// checkLimits finds values that the API server would refuse in any object.
func (i *item) checkLimits(in Input) {
	i.checkLabels()
	i.checkAnnotations(in)
	i.checkOwners(in.Owner.Ref.UID)
	switch i.key.GroupKind() {
	case kindConfigMap:
		i.checkData("data", false)
		i.checkData("binaryData", true)
		i.checkDataSize()
	case kindSecret:
		i.checkData("data", true)
		i.checkDataSize()
	}
	if size := jsonsize.Of(i.content, maxBody); size > maxBody {
		i.mistake("has more than %d bytes, or is nested deeper than %d levels; the server accepts no more", maxBody, jsonsize.MaxDepth)
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

// checkAnnotations counts the annotation that names the owner, too.
func (i *item) checkAnnotations(in Input) {
	annotations := stringsOf(i.content, "annotations")
	size := len(in.Name+"/"+vocabulary.AnnotationOwner) + len(in.Owner.Ref.String())
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		size += len(name) + len(annotations[name])
		// The server compares the names of annotations in lower case.
		if problems := namevalidation.IsQualifiedName(strings.ToLower(name)); len(problems) > 0 {
			i.mistake("metadata.annotations: %q: %s", name, strings.Join(problems, "; "))
		}
	}
	if size > validation.TotalAnnotationSizeLimitB {
		i.mistake("metadata.annotations have %d bytes with the one that names the component; the server accepts %d at most", size, validation.TotalAnnotationSizeLimitB)
	}
}

// checkOwners refuses references to other owners than the component: the server's garbage collector
// deletes an object if none of its owners exists.
func (i *item) checkOwners(owner types.UID) {
	references, _ := at(i.content, "metadata", "ownerReferences").([]any)
	for _, reference := range references {
		fields, _ := reference.(map[string]any)
		if uid, _ := fields["uid"].(string); uid == "" || types.UID(uid) != owner {
			i.mistake("metadata.ownerReferences: %q %q is not the component: the object would be deleted with it, or at once if it does not exist",
				fmt.Sprint(fields["kind"]), fmt.Sprint(fields["name"]))
		}
	}
}

// checkData refuses values that the server cannot read. They must not get into messages,
// nor must names that are no keys: they may be values in the wrong place.
func (i *item) checkData(field string, encoded bool) {
	values, isMap := i.content[field].(map[string]any)
	if !isMap && i.content[field] != nil {
		i.mistake("%s is not a map but %s", field, describe(i.content[field]))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name, problem := key, problemOf(values[key], encoded)
		if problem == "" {
			continue
		}
		if len(namevalidation.IsConfigMapKey(key)) > 0 {
			name = "a key that is not valid"
		}
		if problem == notBase64 {
			problem += i.plainField()
		}
		i.mistake("%s: the value of %s is %s", field, name, problem)
	}
}

const notBase64 = "not base64"

// problemOf describes the value of a ConfigMap or Secret if it is not a string that the server can
// read; else it returns an empty string.
func problemOf(value any, encoded bool) string {
	text, isString := value.(string)
	if !isString && value != nil {
		return "not a string but " + describe(value) + ": quote it"
	}
	if encoded {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return notBase64
		}
	}
	return ""
}

// plainField names the field for values that are not encoded.
func (i *item) plainField() string {
	if i.key.GroupKind() == kindSecret {
		return ": encode it, or put it into stringData"
	}
	return ": encode it, or put it into data"
}

// checkDataSize compares the size of the values, as the server counts it.
func (i *item) checkDataSize() {
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
	if size > maxData {
		i.mistake("has %d bytes of data; the server accepts %d at most", size, maxData)
	}
}
