// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func TestAnnotationsOfOtherToolsOnlyAddProtection(t *testing.T) {
	const (
		unset    = v1alpha1.DeletePolicy("")
		deleted  = v1alpha1.DeletePolicyDelete
		orphan   = v1alpha1.DeletePolicyOrphan
		onApply  = v1alpha1.DeletePolicyOrphanOnApply
		onDelete = v1alpha1.DeletePolicyOrphanOnDelete
	)
	tests := map[string]struct {
		key, value   string
		before, want v1alpha1.DeletePolicy
	}{
		"Helm":                                {annotationHelm, "keep", deleted, orphan},
		"Helm, as loosely as Helm reads it":   {annotationHelm, " Keep\n", deleted, orphan},
		"Helm, another value":                 {annotationHelm, "delete", deleted, deleted},
		"cli-utils":                           {annotationLifecycle, "detach", deleted, orphan},
		"cli-utils, another value":            {annotationLifecycle, "keep", deleted, deleted},
		"cli-utils, on-remove":                {annotationOnRemove, "keep", deleted, orphan},
		"Flux":                                {labelFlux, "disabled", deleted, orphan},
		"Flux, enabled":                       {labelFlux, "enabled", deleted, deleted},
		"Argo CD prunes it not":               {annotationArgo, "Prune=false", deleted, onApply},
		"Argo CD deletes it not":              {annotationArgo, "Delete=false", deleted, onDelete},
		"Argo CD does neither":                {annotationArgo, "ServerSideApply=true, Prune=false,Delete=false", deleted, orphan},
		"Argo CD asks before":                 {annotationArgo, "Prune=confirm,Delete=confirm", deleted, orphan},
		"Argo CD does both":                   {annotationArgo, "Prune=true,PruneLast=true", deleted, deleted},
		"the default protects on deletion":    {annotationArgo, "Prune=false", onDelete, orphan},
		"the default protects on application": {annotationArgo, "Delete=false", onApply, orphan},
		"the default protects always":         {annotationArgo, "Prune=false", orphan, orphan},
		"nothing is set":                      {"", "", unset, unset},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Set{Delete: test.before}.WithKeep(nil, map[string]string{test.key: test.value})
			if got.Delete != test.want {
				t.Errorf("got %q, want %q", got.Delete, test.want)
			}
			own, err := Parse(prefix, annotate("delete-policy", "delete"), got)
			if err != nil || own.Delete != deleted {
				t.Errorf("the annotation of the reconciler gives %q (%v)", own.Delete, err)
			}
		})
	}
	if got := (Set{}).WithKeep(map[string]string{labelFlux: "disabled"}, nil); got.Delete != orphan {
		t.Errorf("the label of Flux gives %q", got.Delete)
	}
}

func TestIgnoreRulesAndTheAnnotationAddUp(t *testing.T) {
	everything := labels.Everything()
	rules := []IgnoreRule{
		{Type: v1alpha1.TypeInfo{Group: "apps", Kind: "*"}, Selector: everything, Fields: []string{"/spec/replicas", "/spec/a"}},
		{Type: v1alpha1.TypeInfo{Group: "*", Kind: "Deployment"}, Selector: labels.SelectorFromSet(labels.Set{"app": "api"}), Fields: []string{"/spec/replicas", "/spec/b"}},
		{Type: v1alpha1.TypeInfo{Group: "batch", Kind: "*"}, Selector: everything, Fields: []string{"/spec/never"}},
	}
	defaults := Set{}.WithIgnoreRules(rules, "apps", "Deployment", map[string]string{"app": "api"})
	got, err := Parse(prefix, annotate("ignore-fields", "/spec/c,/spec/a"), defaults)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/spec/a", "/spec/b", "/spec/c", "/spec/replicas"}, got.IgnoreFields); diff != "" {
		t.Error(diff)
	}
	other := Set{}.WithIgnoreRules(rules, "apps", "Deployment", nil)
	if diff := cmp.Diff([]string{"/spec/a", "/spec/replicas"}, other.IgnoreFields); diff != "" {
		t.Errorf("without the label: %s", diff)
	}
}
