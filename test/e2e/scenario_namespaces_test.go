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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

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
