// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
