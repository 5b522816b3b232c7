// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uncallable is the configuration of a webhook for Secrets and ConfigMaps of the bench's namespace, whose service does not exist.
func (b *bench) uncallable(kind, failurePolicy string) *unstructured.Unstructured {
	webhook := map[string]any{
		"name": "guard.example.com", "failurePolicy": failurePolicy, "sideEffects": "None", "timeoutSeconds": int64(1),
		"admissionReviewVersions": []any{"v1"},
		"namespaceSelector":       map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": b.namespace}},
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"configmaps", "secrets"},
		}},
		"clientConfig": map[string]any{"service": map[string]any{"name": "guard", "namespace": b.namespace}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": "guard-" + b.namespace}, "webhooks": []any{webhook},
	}}
}

func secret(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": map[string]any{"value": value},
	}}
}

// The server learns of a new configuration a moment after it was written.
func (b *bench) untilApplied(objects ...client.Object) {
	b.t.Helper()
	b.until("the objects to be applied", func() bool {
		outcome, err := b.apply(objects...)
		return err == nil && outcome.Done()
	})
}

func TestAComponentMendsItsDeadWebhook(t *testing.T) {
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			t.Cleanup(func() { _ = b.Delete(context.Background(), b.uncallable(kind, "Fail")) })
			refuses := func() {
				t.Helper()
				b.until("the webhook to refuse", func() bool {
					probe := config("probe", "1")
					probe.SetNamespace(b.namespace)
					return b.Create(t.Context(), probe, client.DryRunAll) != nil
				})
			}
			b.mustApply(config("a", "1"), secret("hunter2"), b.uncallable(kind, "Fail"))
			refuses()

			_, err := b.apply(config("a", "2"), secret("hunter3"), b.uncallable(kind, "Fail"))
			want := kind + " guard-" + b.namespace + ", which stays as it is: its namespaceSelector is {\"matchLabels\":{\"kubernetes.io/metadata.name\":\"" + b.namespace + "\"}}, its objectSelector {}"
			if err == nil || strings.Count(err.Error(), want) != 2 || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v, want twice %s", err, want)
			}

			b.untilApplied(config("a", "2"), secret("hunter3"), b.uncallable(kind, "Ignore"))
			b.untilApplied(config("a", "2"), secret("hunter3"), b.uncallable(kind, "Fail"))
			refuses()
			b.untilApplied(config("a", "3"), secret("hunter4"))
			if b.get("a").Data["value"] != "3" {
				t.Errorf("the ConfigMap is %v", b.get("a").Data)
			}
			b.untilApplied(config("a", "3"), secret("hunter4"), b.uncallable(kind, "Fail"))
			refuses()
			b.until("the objects to be deleted", func() bool {
				outcome, err := b.delete()
				return err == nil && outcome.Done()
			})
		})
	}
}
