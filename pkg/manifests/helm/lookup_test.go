// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

func TestLookupReadsTheTarget(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string][]byte{"k": []byte("one")}}
	ctx := manifests.Context{Client: fake.NewClientBuilder().WithObjects(secret).Build()}.In(t.Context())
	for action, want := range map[string]string{
		`{{ (lookup "v1" "Secret" "ns" "a").data.k | b64dec }}`: "one",
		`{{ lookup "v1" "Secret" "ns" "b" | toJson }}`:          "{}",
		`{{ len (lookup "v1" "Secret" "" "").items }}`:          "1",
	} {
		if got, err := evaluate(ctx, action, nil, helm.Options{}); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", action, got, err, want)
		}
		got, err := evaluate(ctx, `{{ lookup "v1" "Secret" "ns" "a" | toJson }}`, nil, helm.Options{DisableLookup: true})
		if got != "{}" || err != nil {
			t.Errorf("switched off: got %q, %v", got, err)
		}
	}
}

func TestLookupOfWhatIsForbiddenFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no role"))
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	})
	_, err := evaluate(manifests.Context{Client: target}.In(t.Context()), `{{ lookup "v1" "Secret" "kube-system" "x" }}`, nil, helm.Options{})
	wantError(t, err, "web/templates/a.yaml:7:", "Secret kube-system/x", "forbidden")
	_, err = evaluate(manifests.Context{Client: target}.In(t.Context()), `{{ lookup "a/b/c" "Secret" "x" "x" }}`, nil, helm.Options{})
	wantError(t, err, `apiVersion "a/b/c"`)
}
