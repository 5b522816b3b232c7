// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/test/check"
)

// expectMistake builds objects that must be refused, with a line that holds want.
func expectMistake(t *testing.T, in Input, want string) {
	t.Helper()
	objects, err := Build(t.Context(), in)
	if err == nil {
		t.Fatalf("accepted: %v", keys(objects))
	}
	if _, invalid := errors.AsType[*InvalidError](err); !invalid {
		t.Errorf("%v is no InvalidError", err)
	}
	if objects != nil {
		t.Errorf("returned %v besides the error", keys(objects))
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if strings.Contains(line, want) {
			return
		}
	}
	t.Errorf("got\n%v\nwant a line with\n%s", err, want)
}

// TestAMistakeQuotesNoValueOfASecret: neither of a Secret, nor of other objects if a Secret was read for them. A user may
// have copied the value into an annotation.
func TestAMistakeQuotesNoValueOfASecret(t *testing.T) {
	const value = "MTIzNDUtczNjcmV0dmFsdWU="
	for annotation, text := range map[string]string{
		"apply-order": value, "delete-policy": value, "depends-on": value, "ready-when": value, "status-hint": value,
		"a reference": "Secret/" + value, "an expression": "self.data.a == " + value[:20], "an expression without an end": "'" + value, "a list": "conditions=a b " + value,
	} {
		name := map[string]string{"a reference": "depends-on", "an expression": "ready-when", "an expression without an end": "ready-when", "a list": "status-hint"}[annotation]
		object := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {shop.example.com/`+cmp.Or(name, annotation)+`: "`+text+`"}}, data: {a: `+value+`}}`)
		_, err := Build(t.Context(), input(object...))
		if err == nil || strings.Contains(err.Error(), value[:12]) || !strings.Contains(err.Error(), "Secret shop/s: ") {
			t.Errorf("%s: %v", annotation, err)
		}
		object[0].GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		_, err = Build(confidential.Start(t.Context(), true), input(object...))
		if err == nil || strings.Contains(err.Error(), value[:12]) || !strings.Contains(err.Error(), "ConfigMap shop/s: ") {
			t.Errorf("%s of a ConfigMap: %v", annotation, err)
		}
		if _, err = Build(t.Context(), input(object...)); err == nil || !strings.Contains(err.Error(), value[:12]) {
			t.Errorf("%s of a ConfigMap for which no Secret was read: %v", annotation, err)
		}
	}
}

func TestMistakesInSingleObjects(t *testing.T) {
	const cm = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `
	tests := []struct{ name, object, want string }{
		{"no kind", `{apiVersion: v1, metadata: {name: a}}`, "object 1: kind is missing"},
		{"empty kind", `{apiVersion: v1, kind: "", metadata: {name: a}}`, "object 1: kind is missing"},
		{"kind of a wrong type", `{apiVersion: v1, kind: [a], metadata: {name: a}}`, "object 1: kind is not a string but a list"},
		{"kind with blanks", `{apiVersion: v1, kind: "a b", metadata: {name: a}}`, `object 1: kind "a b" is not a name`},
		{"no version", `{kind: ConfigMap, metadata: {name: a}}`, "object 1: apiVersion is missing"},
		{"version of a wrong type", `{apiVersion: 1, kind: ConfigMap, metadata: {name: a}}`, "object 1: apiVersion is not a string but a number"},
		{"version with too many parts", `{apiVersion: a/b/c, kind: ConfigMap, metadata: {name: a}}`, `object 1: apiVersion "a/b/c" is not of the form group/version`},
		{"version without version", `{apiVersion: apps/, kind: Deployment, metadata: {name: a}}`, `apiVersion "apps/" is not of the form`},
		{"no metadata", `{apiVersion: v1, kind: ConfigMap}`, "object 1 (ConfigMap): metadata.name is missing"},
		{"metadata of a wrong type", `{apiVersion: v1, kind: ConfigMap, metadata: a}`, "object 1 (ConfigMap): metadata is not a map but a string"},
		{"no name", `{apiVersion: v1, kind: ConfigMap, metadata: {}}`, "object 1 (ConfigMap): metadata.name is missing"},
		{"empty name", `{apiVersion: v1, kind: ConfigMap, metadata: {name: ""}}`, "metadata.name is missing"},
		{"name of a wrong type", `{apiVersion: v1, kind: ConfigMap, metadata: {name: 5}}`, "metadata.name is not a string but a number"},
		{"name with a slash", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}`, `metadata.name "a/b" is not a name`},
		{"name of dots", `{apiVersion: v1, kind: ConfigMap, metadata: {name: ..}}`, `metadata.name ".." is not a name`},
		{"name with a blank", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a b}}`, `metadata.name "a b" is not a name`},
		{"name too long", `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + strings.Repeat("a", 254) + `}}`, "metadata.name has 254 characters"},
		{"generated name", `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}`, "metadata.generateName is not possible"},
		{"generated name beside a name", cm + `generateName: a-}}`, "metadata.generateName is not possible"},
		{"file of an object without name", `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {config.kubernetes.io/path: a/b.yaml}}}`, "object 1 (ConfigMap, a/b.yaml): metadata.name is missing"},
		{"file of an object without kind", `{metadata: {annotations: {config.kubernetes.io/path: a/b.yaml}}}`, "object 1 (a/b.yaml): kind is missing"},
		{"a kind that is only created", `{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, metadata: {name: a}}`, "SubjectAccessReview a: type authorization.k8s.io/v1 SubjectAccessReview is not for dependent objects"},
		{"namespace of a wrong type", cm + `namespace: 5}}`, "metadata.namespace is not a string but a number"},
		{"namespace that cannot be one", cm + `namespace: A_b}}`, `metadata.namespace "A_b" is not a name of a namespace`},
		{"deletion timestamp", cm + `deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "ConfigMap shop/a: metadata.deletionTimestamp is set"},
		{"labels of a wrong type", cm + `labels: [a]}}`, "metadata.labels is not a map but a list"},
		{"label of a wrong type", cm + `labels: {x: 5}}}`, "metadata.labels: the value of x is not a string but a number: quote it"},
		{"annotation of a wrong type", cm + `annotations: {x: true}}}`, "metadata.annotations: the value of x is not a string but a boolean: quote it"},
		{"annotation of null", cm + `annotations: {x: null}}}`, "metadata.annotations: the value of x is not a string but null: quote it"},
		{"annotations of a wrong type", cm + `annotations: x}}`, "metadata.annotations is not a map but a string"},
		{"finalizers of a wrong type", cm + `finalizers: x}}`, "metadata.finalizers is not a list but a string"},
		{"finalizer of a wrong type", cm + `finalizers: [{a: b}]}}`, "metadata.finalizers holds a map"},
		{"owner references of a wrong type", cm + `ownerReferences: [a]}}`, "metadata.ownerReferences holds a string"},
		{"unknown type", `{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}`, "Foo a: type example.com/v1 Foo is not served by the cluster, and nothing of this component brings it"},
		{"a version that the definition does not serve", definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v0, kind: Foo, metadata: {name: a}}", "is not served by the cluster"},
		{"a version that the definition does not know", definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}}", "is not served by the cluster"},
		{"another kind of the group", definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v1, kind: Bar, metadata: {name: a}}", "is not served by the cluster"},
		{"another version of an aggregated API", service + "\n---\n{apiVersion: metrics.example.com/v2, kind: Bar, metadata: {name: a}}", "is not served by the cluster"},
		{"secret with a wrong value", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {pin: 4711}}`, "Secret shop/a: stringData: the value of pin is not a string but a number: quote it"},
		{"secret with wrong data", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: b}, data: x}`, "Secret shop/a: data is not a map but a string"},
		{"secret with wrong plain data", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: x}`, "Secret shop/a: stringData is not a map but a string"},
		{"encrypted secret", `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {pin: "ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:Yg==,type:str]"}, sops: {mac: x}}`, "Secret shop/a: is encrypted by SOPS: decrypt its file first"},
		{"secret with an encrypted value that is not base64", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {pin: "ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:Yg==,type:str]"}}`, "Secret shop/a: is encrypted by SOPS"},
		{"secret of an encrypted file of variables", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {pin: RU5DW0FFUzI1Nl9HQ00sZGF0YTpabTl2LGl2OllRPT0sdGFnOllnPT0sdHlwZTpzdHJdCg==}}`, "Secret shop/a: is encrypted by SOPS"},
		{"encrypted object of another kind", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: y}, sops: {lastmodified: "2026-01-01T00:00:00Z", mac: x}}`, "ConfigMap shop/a: is encrypted by SOPS"},
		{"encrypted list", `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}], sops: {mac: x}}`, "object 1 (List): is encrypted by SOPS"},
		{"hook of a chart", cm + `annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}}`, `ConfigMap shop/a: annotation helm.sh/hook: "pre-install,pre-upgrade": only package helm runs hooks`},
		{"test of a chart", cm + `annotations: {helm.sh/hook: test, helm.sh/hook-weight: "1"}}}`, "say when it runs by the annotation shop.example.com/run-on or shop.example.com/apply-order"},
		{"hook of a chart with a policy of ours", cm + `annotations: {helm.sh/hook: post-delete, shop.example.com/update-policy: recreate}}}`, "only package helm runs hooks"},
		{"invalid policy", cm + `annotations: {shop.example.com/update-policy: x}}}`, `ConfigMap shop/a: annotation shop.example.com/update-policy: "x" is not one of`},
		{"order out of range", cm + `annotations: {shop.example.com/apply-order: "40000"}}}`, "ConfigMap shop/a: annotation shop.example.com/apply-order: "},
		{"output that does not compile", cm + `annotations: {shop.example.com/output.a: "self."}}}`, `ConfigMap shop/a: output a: "self.": character `},
		{"output of another type", cm + `annotations: {shop.example.com/output.a: "[1]"}}}`, `ConfigMap shop/a: output a: "[1]": gives list(int), not a string`},
		{"output twice", cm + `annotations: {shop.example.com/output.a: "'a'", shop.example.com/secret-output.a: "'b'"}}}`, `ConfigMap shop/a: output a: ConfigMap shop/a has an output of this name, too`},
		{"65 outputs", cm + `annotations: {` + outputsOf(65) + `}}}`, `output o64: the component has more than 64 outputs`},
		{"expression that does not compile", cm + `annotations: {shop.example.com/ready-when: "self."}}}`, `ConfigMap shop/a: annotation shop.example.com/ready-when: `},
		{"purged namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {shop.example.com/purge-order: "1"}}}`, "Namespace a: annotation shop.example.com/purge-order: a Namespace cannot be purged"},
		{"purged definition", definitionOf("Cluster", `shop.example.com/purge-order: "5"`), "a CustomResourceDefinition cannot be purged"},
		{"definition without kind", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: x}}`, "CustomResourceDefinition a: spec.group or spec.names.kind is missing"},
		{"definition without scope", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: x, names: {kind: X}}}`, "CustomResourceDefinition a: spec.scope is neither Namespaced nor Cluster"},
		{"definition of odd shape", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: x}`, "spec.group or spec.names.kind is missing"},
		{"service of an API without version", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: x}}`, "APIService a: spec.group or spec.version is missing"},
		{"items of a wrong type", `{apiVersion: v1, kind: List, items: {a: b}}`, "object 1 (List): items is not a list"},
		{"an item of a wrong type", `{apiVersion: v1, kind: List, items: [a]}`, "object 1, item 1: is not an object but a string"},
		{"an item of null", `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, null]}`, "object 1, item 2: is not an object but null"},
		{"an item without kind", `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [{metadata: {name: a}}]}]}`, "object 1, item 1, item 1: kind is missing"},
		{"lists in lists in lists", strings.Repeat(`{apiVersion: v1, kind: List, items: [`, 20) + strings.Repeat(`]}`, 20), "lists are nested more than 8 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectMistake(t, input(parse(t, tt.object)...), tt.want) })
	}
}

func TestClusterScopedComponentsNeedNamespacesInTheirManifests(t *testing.T) {
	in := input(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)...)
	in.Namespace = ""
	expectMistake(t, in, "ConfigMap a: has no namespace, and the component has none to put it into")
}

func TestDuplicates(t *testing.T) {
	const a = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
	expectMistake(t, input(parse(t, a+"\n---\n"+strings.Replace(a, "name: a", "name: b", 1)+"\n---\n"+a)...), "ConfigMap shop/a: is defined more than once (duplicate), as object 1 and as object 3")
	expectMistake(t, input(parse(t, a+"\n---\n"+strings.Replace(a, "name: a", "name: a, namespace: shop", 1))...), "is defined more than once (duplicate)")
	expectMistake(t, input(parse(t, `{apiVersion: v1, kind: List, items: [`+a+`, `+a+`]}`)...), "as object 1, item 1 and as object 1, item 2")
	expectMistake(t, input(parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}}`)...), "Deployment shop/a: is defined more than once (duplicate)")
}

func TestAllMistakesOfAllObjectsAreListed(t *testing.T) {
	_, err := Build(t.Context(), input(append(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {shop.example.com/update-policy: x, shop.example.com/status-hint: "y,z"}}}
---
{apiVersion: v1, metadata: {name: a}}
---
{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {shop.example.com/depends-on: Secret/none}}}`), client.Object(nil))...))
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{
		"ConfigMap shop/a: annotation shop.example.com/status-hint: \"y\"",
		"ConfigMap shop/a: annotation shop.example.com/status-hint: \"z\"",
		"ConfigMap shop/a: annotation shop.example.com/update-policy: \"x\"",
		"object 2: kind is missing",
		"Foo a: type example.com/v1 Foo is not served",
		"ConfigMap shop/b: depends on \"Secret/none\", which is not among",
		"object 5: is nil",
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines:\n%v", len(lines), err)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want[i])
		}
	}
}

func TestErrorsOfTheClusterAreNoMistakes(t *testing.T) {
	const down = `{apiVersion: down.example.com/v1, kind: Foo, metadata: {name: a}}`
	_, err := Build(t.Context(), input(parse(t, down+"\n---\n"+down)...))
	if err == nil || err.Error() != "resolve type down.example.com/v1 Foo: the server is down" {
		t.Errorf("got %v", err)
	}
	if _, invalid := errors.AsType[*InvalidError](err); invalid {
		t.Errorf("%v is an InvalidError", err)
	}
	// With mistakes as well, both are reported, but nothing that may follow from the error.
	_, err = Build(t.Context(), input(parse(t, down+"\n---\n{kind: X}\n---\n"+
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {shop.example.com/depends-on: down.example.com/Foo/a}}}`)...))
	if _, invalid := errors.AsType[*InvalidError](err); !invalid || !strings.Contains(err.Error(), "the server is down") || strings.Contains(err.Error(), "depends on") {
		t.Errorf("got %v", err)
	}
}

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

func TestProcessedManifestsAreNotRefused(t *testing.T) {
	for name, object := range map[string]string{
		"a hook that has an order":            `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-install, shop.example.com/apply-order: "-1"}}}`,
		"a hook of a deletion":                `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-delete, shop.example.com/run-on: pre-delete}}}`,
		"a definition of the folder crds":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: crd-install}}}`,
		"another annotation of Helm":          `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}`,
		"a text about encrypted values":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "values look like ENC[AES256_GCM,data:...]"}}`,
		"a kind that is decrypted in cluster": `{apiVersion: apps/v1, kind: SopsSecret, metadata: {name: a}, sops: {mac: x}}`,
		"a field of that name":                `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, sops: {enabled: true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			items := check.Must(read(parse(t, object), nil))(t)
			for _, i := range items {
				i.identify()
				i.checkUnprocessed("shop.example.com")
				if err := invalid(t.Context(), items); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// outputsOf returns the annotations of n outputs.
func outputsOf(n int) string {
	annotations := make([]string, n)
	for i := range annotations {
		annotations[i] = fmt.Sprintf("shop.example.com/output.o%02d: \"'a'\"", i)
	}
	return strings.Join(annotations, ", ")
}
