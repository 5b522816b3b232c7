// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
