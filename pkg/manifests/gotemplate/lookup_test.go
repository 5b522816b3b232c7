// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"k": []byte(value)}}
}

func TestLookup(t *testing.T) {
	target := fake.NewClientBuilder().WithObjects(
		secret("ns", "a", "one"), secret("ns", "b", "two"), secret("other", "c", "three"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
	).Build()
	local := fake.NewClientBuilder().WithObjects(secret("ns", "local", "x")).Build()
	ctx := manifests.Context{Client: target, LocalClient: local}.In(t.Context())
	tests := []struct{ name, action, want string }{
		{"an object", `{{ (lookup "v1" "Secret" "ns" "a").data.k | b64dec }}`, "one"},
		{"a cluster-scoped object", `{{ (lookup "v1" "Namespace" "" "ns").metadata.name }}`, "ns"},
		{"an object that does not exist", `{{ $s := lookup "v1" "Secret" "ns" "x" }}{{ len $s }}{{ if not $s }}none{{ end }}`, "0none"},
		{"an object of the local cluster", `{{ len (lookup "v1" "Secret" "ns" "local") }}`, "0"},
		{"a list in a namespace", `{{ range (lookup "v1" "Secret" "ns" "").items }}{{ .metadata.name }}{{ end }}`, "ab"},
		{"a list in all namespaces", `{{ $l := lookup "v1" "Secret" "" "" }}{{ $l.kind }} {{ len $l.items }}`, "SecretList 3"},
		{"an empty list", `{{ len (lookup "v1" "ConfigMap" "ns" "").items }}`, "0"},
		{"keeping what is there", `{{ $s := lookup "v1" "Secret" "ns" "a" }}{{ dig "data" "k" ("new" | b64enc) $s }}`, "b25l"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := evaluate(ctx, test.action, nil, gotemplate.Options{})
			if got != test.want || err != nil {
				t.Errorf("got %q and the error %v, want %q", got, err, test.want)
			}
		})
	}
	_, err := evaluate(ctx, `{{ lookup "v1" "Secret" "ns" "a" }}`, nil, gotemplate.Options{DisableLookup: true})
	wantError(t, err, "lookup is not available: it is switched off")
}

func TestLookupFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no role"))
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			// A list without end.
			var o client.ListOptions
			o.ApplyOptions(options)
			items := make([]corev1.Secret, o.Limit)
			objects := map[string]any{"items": []any{}}
			for range items {
				objects["items"] = append(objects["items"].([]any), map[string]any{"kind": "Secret"})
			}
			list.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(objects)
			list.SetContinue("more")
			return nil
		},
	})
	ctx := manifests.Context{Client: target}.In(t.Context())
	tests := []struct{ action, want string }{
		{`{{ lookup "v1" "Secret" "kube-system" "a" }}`, `error calling lookup: Secret kube-system/a: secrets "a" is forbidden: no role`},
		{`{{ lookup "v1" "Secret" "" "" }}`, "there are more than 10000 objects"},
		{`{{ lookup "a/b/c" "Secret" "" "a" }}`, `apiVersion "a/b/c", kind "Secret": both are needed`},
		{`{{ lookup "" "Secret" "" "a" }}`, `apiVersion "", kind "Secret": both are needed`},
		{`{{ lookup "v1" "" "" "a" }}`, `apiVersion "v1", kind "": both are needed`},
	}
	for _, test := range tests {
		t.Run(test.action, func(t *testing.T) {
			_, err := evaluate(ctx, test.action, nil, gotemplate.Options{})
			wantError(t, err, test.want)
		})
	}
	_, err := evaluate(ctx, fmt.Sprintf("{{ %s }}", `lookup "v1" "Secret" "ns" "a"`), nil, gotemplate.Options{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the cause is lost in %v", err)
	}
}

func TestWhatLookupFindsCountsAsWork(t *testing.T) {
	large := secret("ns", "a", strings.Repeat("x", 100_000))
	ctx := manifests.Context{Client: fake.NewClientBuilder().WithObjects(large).Build()}.In(t.Context())
	limits := manifests.TemplateLimits{WorkBytes: 1_000_000, StringBytes: 50_000}
	for action, want := range map[string]string{
		`{{ range until 5 }}{{ $_ := lookup "v1" "Secret" "ns" "" }}{{ end }}`:  "",
		`{{ range until 50 }}{{ $_ := lookup "v1" "Secret" "ns" "" }}{{ end }}`: "functions and loops worked on more than 1000000 bytes",
	} {
		_, err := evaluate(ctx, action, nil, gotemplate.Options{Limits: limits})
		if want == "" && err != nil {
			t.Error(err)
		} else if want != "" {
			wantError(t, err, want)
		}
	}
}

func TestWhatLookupMayNotReturnIsNotRead(t *testing.T) {
	pages := 0
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			pages++
			items := make([]any, 10)
			for i := range items {
				items[i] = map[string]any{"kind": "Secret", "data": map[string]any{"k": strings.Repeat("x", 100_000)}}
			}
			list.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(map[string]any{"items": items})
			list.SetContinue("more")
			return nil
		},
	})
	_, err := evaluate(manifests.Context{Client: target}.In(t.Context()), `{{ lookup "v1" "Secret" "ns" "" | len }}`, nil, gotemplate.Options{Limits: manifests.TemplateLimits{WorkBytes: 1_500_000}})
	wantError(t, err, "error calling lookup: Secret ns/: the objects take more bytes than functions may work on in one rendering")
	if pages != 2 {
		t.Errorf("%d pages were read", pages)
	}
}

func TestLookupChangesNoCache(t *testing.T) {
	cached := secret("ns", "a", "one")
	ctx := manifests.Context{Client: fake.NewClientBuilder().WithObjects(cached).Build()}.In(t.Context())
	action := `{{ $s := lookup "v1" "Secret" "ns" "a" }}{{ $_ := set $s.data "k" "changed" }}{{ (lookup "v1" "Secret" "ns" "a").data.k | b64dec }}`
	if got, err := evaluate(ctx, action, nil, gotemplate.Options{}); got != "one" || err != nil {
		t.Errorf("got %q and the error %v", got, err)
	}
}
