// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatTheServerWouldRefuseIsFoundBeforeAnythingIsWritten(t *testing.T) {
	const cm = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `
	long := strings.Repeat("x", 64)
	half := strings.Repeat("x", maxData/2)
	encoded := base64.StdEncoding.EncodeToString([]byte(half))
	tests := []struct{ name, object, want string }{
		{"label value too long", cm + `labels: {app: ` + long + `}}}`, "ConfigMap shop/a: metadata.labels: the value of app: "},
		{"label value with a blank", cm + `labels: {app: "a b"}}}`, "ConfigMap shop/a: metadata.labels: the value of app: "},
		{"label name that is none", cm + `labels: {"a b": c}}}`, `ConfigMap shop/a: metadata.labels: "a b": `},
		{"label prefix that is none", cm + `labels: {"A_b/c": c}}}`, `ConfigMap shop/a: metadata.labels: "A_b/c": `},
		{"annotation name that is none", cm + `annotations: {"a b": c}}}`, `ConfigMap shop/a: metadata.annotations: "a b": `},
		{"annotations too large", cm + `annotations: {a: ` + strings.Repeat("x", 150<<10) + `, b: ` + strings.Repeat("x", 150<<10) + `}}}`,
			"ConfigMap shop/a: metadata.annotations have 307253 bytes with the one that names the component; the server accepts 262144 at most"},
		{"owner that is another object", cm + `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b, uid: u-1}]}}`,
			"ConfigMap shop/a: metadata.ownerReferences: \"ConfigMap\" \"b\" is not the component"},
		{"owner without uid", cm + `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b}]}}`,
			"ConfigMap shop/a: metadata.ownerReferences: \"ConfigMap\" \"b\" is not the component"},
		{"too much text", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: ` + half + `, b: ` + half + `, c: x}}`,
			"ConfigMap shop/a: has 1048577 bytes of data; the server accepts 1048576 at most"},
		{"too much text and binary data", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: ` + half + `x}, binaryData: {b: ` + encoded + `}}`,
			"ConfigMap shop/a: has 1048577 bytes of data"},
		{"too large a secret", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: ` + encoded + `}, stringData: {b: ` + half + `x}}`,
			"Secret shop/a: has 1048577 bytes of data"},
		{"too large a body", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {a: [` + strings.Repeat("x", maxBody) + `]}}`,
			"Deployment shop/a: has more than 3145728 bytes"},
		{"too large a body of empty values", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, other: [` + strings.Repeat("[],", maxBody/3) + `]}`,
			"ConfigMap shop/a: has more than 3145728 bytes"},
		{"too large a body of numbers", `{apiVersion: v1, kind: Secret, metadata: {name: a}, other: [` + strings.Repeat("1234567890,", maxBody/11+1) + `]}`,
			"Secret shop/a: has more than 3145728 bytes"},
		{"too large a body of names", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {? ` + strings.Repeat("k", maxBody) + ` : 1}}`,
			"Deployment shop/a: has more than 3145728 bytes"},
		{"too large only once it is escaped", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "` + strings.Repeat("<", maxData-100) + `"}}`,
			"ConfigMap shop/a: has more than 3145728 bytes"},
		{"annotations that are too large with ours", cm + `annotations: {a: ` + strings.Repeat("x", 256<<10-40) + `}}}`,
			"ConfigMap shop/a: metadata.annotations have 262156 bytes"},
		{"base64 that is none", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: dg==, pin: hunter2!}}`,
			"Secret shop/a: data: the value of pin is not base64: encode it, or put it into stringData"},
		{"binary data that is no base64", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, binaryData: {a: "*"}}`,
			"ConfigMap shop/a: binaryData: the value of a is not base64: encode it, or put it into data"},
		{"a number in a secret", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: 5}}`, "Secret shop/a: data: the value of a is not a string but a number: quote it"},
		{"a float in a config map", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1.5, b: x}}`, "ConfigMap shop/a: data: the value of a is not a string but a number: quote it"},
		{"a list in a config map", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {c: [[x]]}}`, "ConfigMap shop/a: data: the value of c is not a string but a list"},
		{"data that is a list", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [a]}`, "ConfigMap shop/a: data is not a map but a list"},
		{"a value of a key that is none", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {"hunter/2": x}}`, `Secret shop/a: data: the value of a key that is not valid is not base64`},
		{"a definition without versions", definitionWith("[]"), "CustomResourceDefinition things.example.org: spec.versions has no version that is served"},
		{"a definition of which no version is served", definitionWith("[{name: v1, served: false, storage: true}]"), "spec.versions has no version that is served"},
		{"the finalizer orphan", cm + `finalizers: [example.com/mine, orphan]}}`, "ConfigMap shop/a: metadata.finalizers: orphan is set by the garbage collector only"},
		{"the finalizer foregroundDeletion", cm + `finalizers: [foregroundDeletion]}}`, "ConfigMap shop/a: metadata.finalizers: foregroundDeletion is set by the garbage collector only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectMistake(t, input(parse(t, tt.object)...), tt.want) })
	}
}

func definitionWith(versions string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org}, ` +
		`spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, versions: ` + versions + `}}`
}

// values is a map of a type of its own, as templates are given.
type values map[string]any

func TestObjectsThatAreTooMuchTogetherAreOneMistake(t *testing.T) {
	const bytes = "the objects have more than 268435456 bytes together"
	shared := map[string]any{"text": strings.Repeat("x", 2000)}
	for range 40 {
		shared = map[string]any{"a": shared, "b": shared}
	}
	untyped := func(value any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": value}}
	}
	typed := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{}}
	for i := range 30 {
		typed.Data[fmt.Sprint(i)] = strings.Repeat("x", 1<<20)
	}
	elements := slices.Repeat([]any{map[string]any{}}, maxObjects+1)
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"an object that shares its parts": {[]client.Object{untyped(shared)}, bytes},
		"values of another type":          {[]client.Object{untyped(map[string]any{"list": slices.Repeat([]values{{"text": strings.Repeat("x", 1<<20)}}, 300)})}, bytes},
		"typed objects":                   {slices.Repeat([]client.Object{typed}, 10), bytes},
		"a list": {[]client.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": elements}}},
			"there are more than 100000 objects"},
	} {
		_, err := Build(t.Context(), input(test.objects...))
		if _, invalid := errors.AsType[*InvalidError](err); !invalid || err.Error() != test.want {
			t.Errorf("%s: got the error %v, want %q", name, err, test.want)
		}
	}
}

func TestNumbersThatWouldBecomeOthersAreMistakes(t *testing.T) {
	for want, value := range map[string]any{
		"spec.a: 18446744073709551615 is beyond": uint64(math.MaxUint64),
		"spec.a: 9223372036854775808 is beyond":  json.Number("9223372036854775808"),
		"spec.a: 1e400 is beyond":                json.Number("1e400"),
	} {
		expectMistake(t, input(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"a": value},
		}}), want)
	}
}

func TestWhatTheServerAcceptsIsNoMistake(t *testing.T) {
	half := strings.Repeat("x", maxData/2)
	encoded := base64.StdEncoding.EncodeToString([]byte(half))
	in := input(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.example.com/name: "", x: z}, annotations: {Example.com/Note: x}}, data: {a: `+half+`}, binaryData: {b: `+encoded+`}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: `+encoded+`}, stringData: {b: `+half+`}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: shop, uid: `+string(input().Owner.Ref.UID)+`}]}}`)...)
	if _, err := Build(t.Context(), in); err != nil {
		t.Error(err)
	}
}
