// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestWorkloadsThatAreReadyByTheRulesOfTheirType(t *testing.T) {
	set := &DesiredSet{}
	for _, object := range []struct{ group, kind, name, readyWhen string }{
		{"", "ConfigMap", "a", ""}, {"apps", "Deployment", "web", ""}, {"apps", "Deployment", "own", "true"}, {"apps", "DaemonSet", "log", ""},
		{"apps", "StatefulSet", "db", ""}, {"apps", "ReplicaSet", "set", ""}, {"batch", "Job", "migrate", ""}, {"other.example.com", "Deployment", "theirs", ""},
	} {
		manifest := &unstructured.Unstructured{Object: map[string]any{"kind": object.kind}}
		manifest.SetName(object.name)
		set.objects = append(set.objects, plan.Desired{
			Key: plan.Key{Group: object.group, Kind: object.kind, Name: object.name}, Policies: policy.Set{ReadyWhen: object.readyWhen}, Manifest: manifest,
		})
	}
	rules := []ReadyWhen{{Type: TypeInfo{Group: "apps", Kind: "DaemonSet"}, Expression: "true"}}
	names := func(set *DesiredSet) (all []string) {
		for _, manifest := range set.Workloads(rules) {
			all = append(all, manifest.GetKind()+" "+manifest.GetName())
		}
		return all
	}
	want := []string{"Deployment web", "StatefulSet db", "ReplicaSet set"}
	if got, packed := names(set), names(set.Pack(nil)); !slices.Equal(got, want) || !slices.Equal(packed, want) || names(nil) != nil {
		t.Errorf("%v, packed %v", got, packed)
	}
}
