// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// owned returns every object of any type in the whole cluster that has an
// owner label of the operator under test: its name, such as "configmaps ns/a", and
// its uid. Only objects with an owner that contains the given text count, such as "/ns/name/".
func (f *fixture) owned(t testing.TB, owner string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	config := f.env.Config()
	config.WarningHandler = rest.NoWarnings{} // every type is asked, deprecated ones too
	clients, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	selector := reconcilerName + "/owner-id"
	for _, gvr := range listable(t, discovery.NewDiscoveryClientForConfigOrDie(config)) {
		list, err := clients.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			continue // a type that vanished since, or has no objects of its own
		}
		for _, item := range list.Items {
			if !strings.Contains(item.Annotations[reconcilerName+"/owner"], owner) {
				continue
			}
			found[gvr.Resource+" "+strings.TrimPrefix(item.Namespace+"/"+item.Name, "/")] = item.UID
		}
	}
	return found
}

// listable returns every type that can be listed, in its preferred version.
func listable(t testing.TB, client *discovery.DiscoveryClient) []schema.GroupVersionResource {
	t.Helper()
	lists, err := client.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		t.Fatal(err)
	}
	var types []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				types = append(types, gv.WithResource(r.Name))
			}
		}
	}
	return types
}

func names(objects map[string]types.UID) []string { return slices.Sorted(maps.Keys(objects)) }
