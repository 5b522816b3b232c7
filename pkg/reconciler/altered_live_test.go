// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	admission "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAWebhookThatChangesAFieldOfTheManifestIsReportedAndNotFought(t *testing.T) {
	b := newBench(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admission.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		kind := admission.PatchTypeJSONPatch
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind, Patch: []byte(`[{"op":"replace","path":"/data/value","value":"theirs"}]`)}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	none := admissionv1.SideEffectClassNone
	configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Webhooks: []admissionv1.MutatingWebhook{{
		Name: "change." + b.namespace + ".example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionv1.WebhookClientConfig{URL: &server.URL, CABundle: bundle},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.namespace}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}}}
	if err := b.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Delete(context.Background(), configuration) })
	b.until("the webhook to be called", func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"}, Data: map[string]string{"value": "1"}}
		if err := b.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return false
		}
		return probe.Data["value"] == "theirs"
	})

	want := "webhook change." + b.namespace + ".example.com changed data.value"
	var version string
	for i := range 3 {
		outcome, err := b.apply(config("a", "1"))
		if err != nil || !outcome.Done() || len(outcome.Drifted) != 1 || cmp.Diff(want, outcome.Drifted[0].Drift.String()) != "" {
			t.Fatalf("%v, %+v, want %s", err, outcome, want)
		}
		var live corev1.ConfigMap
		if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "a"}, &live); err != nil {
			t.Fatal(err)
		}
		if i > 0 && live.ResourceVersion != version {
			t.Error("it was written again")
		}
		version = live.ResourceVersion
	}
}
