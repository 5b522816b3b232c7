// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/owned"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestOnlyEntriesThatCountAsOursAreUnited(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	counts := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "corbel" || owned.IsOneOff(e.Manager) }
	ours := entry("corbel", apply, "", `{"f:a":{}}`)
	owner := metav1.ManagedFieldsEntry{Manager: "corbel", APIVersion: "v1"}
	a := application{
		object: &unstructured.Unstructured{Object: map[string]any{"l": []any{map[string]any{"name": "x"}}}},
		left:   [][]string{{"left"}, {"m", "left"}}, ignored: [][]string{{"ignored"}, {"l", "0", "ignored"}},
	}
	for name, tc := range map[string]struct {
		entries, want []metav1.ManagedFieldsEntry
		more          bool
	}{
		"nothing to do": {entries: []metav1.ManagedFieldsEntry{ours, entry("hpa", update, "", `{"f:b":{}}`)}},
		"a subresource stays": {entries: []metav1.ManagedFieldsEntry{
			ours, entry("kubectl", update, "scale", `{"f:b":{}}`), entry("corbel", update, "status", `{"f:c":{}}`),
		}},
		"our earlier updates": {
			entries: []metav1.ManagedFieldsEntry{entry("corbel", update, "", `{"f:b":{}}`), ours},
			want:    []metav1.ManagedFieldsEntry{entry("corbel", apply, "", `{"f:a":{},"f:b":{}}`)},
			more:    true,
		},
		"updates of what we own anyway": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("helm", update, "", `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{ours},
		},
		"no entry of ours yet": {
			entries: []metav1.ManagedFieldsEntry{entry("helm", update, "", `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{ours},
			more:    true,
		},
		"what we leave stays with its manager, and is not ours": {
			entries: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:left":{}}`), entry("kubectl-rollout", update, "", `{"f:b":{},"f:m":{"f:left":{},"f:c":{}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:m":{"f:c":{}}}`), entry("kubectl-rollout", update, "", `{"f:m":{"f:left":{}}}`),
			},
			more: true,
		},
		"nothing but what we leave": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("kubectl-rollout", update, "", `{"f:m":{".":{},"f:left":{"f:d":{}}}}`)},
		},
		"what is ignored stays with its manager, and with us if we have sent it": {
			entries: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:ignored":{}}`),
				entry("kubectl-edit", update, "", `{"f:b":{},"f:ignored":{},"f:l":{"k:{\"name\":\"x\"}":{"f:ignored":{}},"k:{\"name\":\"y\"}":{"f:ignored":{}}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:ignored":{},"f:l":{"k:{\"name\":\"y\"}":{"f:ignored":{}}}}`),
				entry("kubectl-edit", update, "", `{"f:ignored":{},"f:l":{"k:{\"name\":\"x\"}":{"f:ignored":{}}}}`),
			},
			more: true,
		},
		"several at once, others untouched": {
			entries: []metav1.ManagedFieldsEntry{
				entry("kubectl-edit", update, "", `{"f:b":{}}`), entry("hpa", update, "", `{"f:c":{}}`),
				ours, entry("helm", apply, "", `{"f:d":{}}`), entry("before-first-apply", update, "", `{"f:e":{}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("hpa", update, "", `{"f:c":{}}`), entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:d":{},"f:e":{}}`),
			},
			more: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, more, err := uniteEntries(tc.entries, owner, a.leaves, counts)
			if err != nil || more.Empty() == tc.more {
				t.Errorf("got %v, %v", more, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, _, err := uniteEntries([]metav1.ManagedFieldsEntry{ours, entry("helm", update, "", "nonsense")}, owner, a.leaves, counts); err == nil {
		t.Error("nonsense was understood")
	}
}

func TestEntriesOfVersionsThatAreNotServedAreTranslated(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	of := func(version string, e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
		e.APIVersion = version
		return e
	}
	to := schema.GroupVersion{Group: "example.com", Version: "v2"}
	for name, tc := range map[string]struct{ entries, want []metav1.ManagedFieldsEntry }{
		"all are served": {entries: []metav1.ManagedFieldsEntry{
			of("example.com/v1", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v2", entry("corbel", apply, "", `{"f:b":{}}`)),
		}},
		"another group, such as that of scale": {entries: []metav1.ManagedFieldsEntry{of("autoscaling/v1", entry("hpa", update, "scale", `{"f:a":{}}`))}},
		"one is not served": {
			entries: []metav1.ManagedFieldsEntry{of("example.com/v0", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v1", entry("hpa", update, "", `{"f:b":{}}`))},
			want:    []metav1.ManagedFieldsEntry{of("example.com/v2", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v1", entry("hpa", update, "", `{"f:b":{}}`))},
		},
		"of one manager, beside a subresource": {
			entries: []metav1.ManagedFieldsEntry{
				of("example.com/v0", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v2", entry("corbel", apply, "", `{"f:b":{}}`)),
				of("example.com/v0", entry("corbel", update, "", `{"f:c":{}}`)), of("example.com/v0", entry("other", update, "status", `{"f:d":{}}`)),
			},
			want: []metav1.ManagedFieldsEntry{
				of("example.com/v2", entry("corbel", apply, "", `{"f:a":{},"f:b":{}}`)), of("example.com/v2", entry("corbel", update, "", `{"f:c":{}}`)),
				of("example.com/v2", entry("other", update, "status", `{"f:d":{}}`)),
			},
		},
		"fields that cannot be read": {
			entries: []metav1.ManagedFieldsEntry{of("example.com/v0", entry("corbel", apply, "", `nonsense`)), of("a/b/c", entry("x", update, "", `{"f:b":{}}`))},
			want:    []metav1.ManagedFieldsEntry{of("example.com/v2", entry("x", update, "", `{"f:b":{}}`))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := migrateEntries(tc.entries, to, map[string]bool{"v2": true, "v1": true})
			if changed != (tc.want != nil) {
				t.Errorf("changed: %t", changed)
			}
			if diff := cmp.Diff(tc.want, got); changed && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneOffManagersAreDistinguishedFromControllers(t *testing.T) {
	for manager, want := range map[string]bool{
		"kubectl": true, "kubectl-client-side-apply": true, "kubectl-edit": true, "helm": true, "k9s": true, "oc": true, "before-first-apply": true,
		"helm-controller": false, "kustomize-controller": false, "kube-controller-manager": false, "kubectlish": false, "ocm": false, "": false,
	} {
		if got := owned.IsOneOff(manager); got != want {
			t.Errorf("%s: got %v", manager, got)
		}
	}
}
