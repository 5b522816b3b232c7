// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// The ordinary life of a component: three waves, things of several kinds.
var (
	lifeOne = []string{
		configMap("early", "1", "apply-order", "-1"), secret("early", "1", "apply-order", "-1"), serviceAccount("account"),
		configMap("changed", "1"), configMap("dropped", "1"), configMap("same", "1"), service("port", "80"),
		configMap("late", "1", "apply-order", "5"),
	}
	lifeTwo = []string{
		configMap("early", "2", "apply-order", "-1"), secret("early", "2", "apply-order", "-1"), serviceAccount("account"),
		configMap("changed", "2"), configMap("added", "2"), configMap("same", "1"), service("port", "81"),
		configMap("late", "2", "apply-order", "5"), configMap("last", "2", "apply-order", "6"),
	}

	lifeScenarios = []*scenario{
		{
			name:    "install",
			desired: map[string][]string{"main": lifeOne},
			owned: []string{
				"ConfigMap $NS/changed", "ConfigMap $NS/dropped", "ConfigMap $NS/early", "ConfigMap $NS/late", "ConfigMap $NS/same",
				"Secret $NS/early", "Service $NS/port", "ServiceAccount $NS/account",
			},
		},
		{
			name:      "upgrade with changes, additions and removals",
			installed: map[string][]string{"main": lifeOne},
			desired:   map[string][]string{"main": lifeTwo},
			owned: []string{
				"ConfigMap $NS/added", "ConfigMap $NS/changed", "ConfigMap $NS/early", "ConfigMap $NS/last", "ConfigMap $NS/late", "ConfigMap $NS/same",
				"Secret $NS/early", "Service $NS/port", "ServiceAccount $NS/account",
			},
		},
		{
			name:      "delete",
			installed: map[string][]string{"main": lifeOne},
		},
		{
			name:      "recreate on change",
			installed: map[string][]string{"main": {configMap("anew", "1", "update-policy", "recreate"), configMap("other", "1")}},
			desired:   map[string][]string{"main": {configMap("anew", "2", "update-policy", "recreate"), configMap("other", "2")}},
			owned:     []string{"ConfigMap $NS/anew", "ConfigMap $NS/other"},
			recreated: []string{"ConfigMap $NS/anew"},
		},
	}
)

// A component that brings a type, instances of it, and what stands for its operator.
var (
	machine = []string{crd(), serviceAccount("operator"), configMap("operator", "1"), gear("ours", "1")}

	typeScenarios = []*scenario{
		{
			name:    "install components that share a type",
			shares:  true,
			desired: map[string][]string{"main": {crd(), gear("ours", "1")}, "other": {crd(), gear("others", "1")}},
			owned:   []string{"Gear $NS/others", "Gear $NS/ours"},
			after:   gearsAreShared,
		},
		{
			name:      "drop a type that components share in one of them, and delete the other",
			shares:    true,
			installed: map[string][]string{"main": machine, "other": {crd(), gear("others", "1")}},
			desired:   map[string][]string{"main": {configMap("operator", "2")}},
			owned:     []string{"ConfigMap $NS/operator"},
			after:     gearsAreShared,
		},
		{
			name:    "install a type with its operator and an instance",
			desired: map[string][]string{"main": machine},
			owned: []string{
				"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run", "Gear $NS/ours", "ServiceAccount $NS/operator",
			},
		},
		{
			name:      "delete a type with its operator and an instance",
			installed: map[string][]string{"main": machine},
		},
		{
			name:      "drop a type and its instance",
			installed: map[string][]string{"main": machine},
			desired:   map[string][]string{"main": {configMap("operator", "2")}},
			owned:     []string{"ConfigMap $NS/operator"},
		},
		{
			name:      "drop a type of which others have an instance",
			installed: map[string][]string{"main": machine},
			visitors:  []string{gear("theirs", "1")},
			desired:   map[string][]string{"main": {configMap("operator", "2")}},
			ends:      map[string]string{"main": "Processing"},
			owned:     []string{"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run"},
		},
		{
			name:      "delete a component with a type of which others have an instance",
			installed: map[string][]string{"main": machine},
			visitors:  []string{gear("theirs", "1")},
			ends:      map[string]string{"main": "DeletionBlocked"},
			owned: []string{
				"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run", "Gear $NS/ours", "ServiceAccount $NS/operator",
			},
		},
	}
)

// gearsAreShared expects the type Gear to be there, to belong to no component, and to be on no record.
func gearsAreShared(t testing.TB, f *fixture) {
	t.Helper()
	live := f.objects(t, []string{crd()})[0]
	if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	labels := live.GetLabels()
	if labels[reconcilerName+"/"+vocabulary.LabelShared] == "" || labels[reconcilerName+"/"+vocabulary.LabelOwnerID] != "" || live.GetDeletionTimestamp() != nil {
		t.Errorf("the metadata of the definition is %v", live.Object["metadata"])
	}
	recorded := read(t, func(ctx context.Context) (map[string]types.UID, error) {
		return f.onRecord(ctx, func(item v1alpha1.InventoryItem) bool { return item.Kind == live.GetKind() })
	})
	if len(recorded) > 0 {
		t.Errorf("on record are %v", names(recorded))
	}
}

var namespaceScenarios = []*scenario{
	{
		name:    "install into a namespace that is missing",
		desired: map[string][]string{"main": {configMap("$NS-more/a", "1"), configMap("b", "1")}},
		owned:   []string{"ConfigMap $NS-more/a", "ConfigMap $NS/b", "Namespace $NS-more"},
	},
	{
		name:      "delete with a namespace that was created",
		installed: map[string][]string{"main": {configMap("$NS-more/a", "1"), configMap("b", "1")}},
		after:     namespaceIs("$NS-more", false),
	},
	{
		name:      "orphan a namespace that was created and holds objects of others",
		installed: map[string][]string{"main": {configMap("$NS-more/a", "1"), configMap("b", "1")}},
		visitors:  []string{configMap("$NS-more/inside", "1")},
		desired:   map[string][]string{"main": {configMap("b", "2")}},
		owned:     []string{"ConfigMap $NS/b"},
		after:     namespaceIs("$NS-more", true),
	},
	{
		name:      "delete with objects of others in a namespace that was created",
		installed: map[string][]string{"main": {configMap("$NS-more/a", "1"), configMap("b", "1")}},
		visitors:  []string{configMap("$NS-more/inside", "1")},
		after:     namespaceIs("$NS-more", true),
	},
	{
		name:    "install a namespace and what lives in it",
		desired: map[string][]string{"main": {namespace("$NS-own"), configMap("$NS-own/a", "1"), configMap("b", "1")}},
		owned:   []string{"ConfigMap $NS-own/a", "ConfigMap $NS/b", "Namespace $NS-own"},
	},
	{
		name:      "delete a namespace and what lives in it",
		installed: map[string][]string{"main": {namespace("$NS-own"), configMap("$NS-own/a", "1"), configMap("b", "1")}},
		after:     namespaceIs("$NS-own", false),
	},
	{
		name:      "drop a namespace and what lives in it",
		installed: map[string][]string{"main": {namespace("$NS-own"), configMap("$NS-own/a", "1"), configMap("b", "1")}},
		desired:   map[string][]string{"main": {configMap("b", "2")}},
		owned:     []string{"ConfigMap $NS/b"},
		after:     namespaceIs("$NS-own", false),
	},
	{
		name:      "delete a namespace of the manifests that holds objects of others",
		installed: map[string][]string{"main": {namespace("$NS-own"), configMap("$NS-own/a", "1"), configMap("b", "1")}},
		visitors:  []string{configMap("$NS-own/inside", "1")},
		ends:      map[string]string{"main": vocabulary.ReasonDeletionProcessing},
		owned:     []string{"Namespace $NS-own"},
		after:     namespaceIs("$NS-own", true),
	},
}

// namespaceIs expects a namespace to exist, or not.
func namespaceIs(name string, there bool) func(t testing.TB, f *fixture) {
	return func(t testing.TB, f *fixture) {
		t.Helper()
		eventually(t, "the fate of namespace "+name, func(ctx context.Context) error {
			err := f.Get(ctx, client.ObjectKey{Name: f.fill(name)}, &corev1.Namespace{})
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if there != (err == nil) {
				return fmt.Errorf("there: %t, want %t", err == nil, there)
			}
			return nil
		})
	}
}

// configMapsAre expects exactly these ConfigMaps in the namespace of the scenario.
func configMapsAre(want ...string) func(t testing.TB, f *fixture) {
	return func(t testing.TB, f *fixture) {
		t.Helper()
		list := &corev1.ConfigMapList{}
		if err := f.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range list.Items {
			if item.Name != "kube-root-ca.crt" {
				got = append(got, item.Name)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	}
}
