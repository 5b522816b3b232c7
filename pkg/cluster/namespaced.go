// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Namespaced returns all types whose objects live in namespaces, each in the
// server's preferred version, ordered by group and kind. Groups whose types the
// server cannot tell, because their aggregated server is out of order, are
// returned as unreadable, with the reason: a caller that wants to know everything in a
// namespace has to reckon with them.
func (t *Types) Namespaced(ctx context.Context) (readable []Resource, unreadable map[schema.GroupVersion]error, err error) {
	limited, cancel := context.WithTimeout(ctx, 2*t.timeout)
	defer cancel()
	lists, err := discovery.NewDiscoveryClient(t.objects.rest).ServerPreferredNamespacedResourcesWithContext(limited)
	unreadable, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if partial && ctx.Err() != nil { // nobody waited for the answer, so it says nothing about the server
		err, partial = ctx.Err(), false
	}
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("ask the server for all its types: %w", err)
	}
	for _, list := range lists {
		resources, err := readPreferred(list)
		if err != nil {
			return nil, nil, err
		}
		readable = append(readable, resources...)
	}
	slices.SortFunc(readable, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return readable, unreadable, nil
}

func readPreferred(list *metav1.APIResourceList) ([]Resource, error) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil, protocolError("the server lists types of %q, which is no version of a group", list.GroupVersion)
	}
	var resources []Resource
	for _, r := range readResources(gv, list.APIResources) {
		if r.Namespaced {
			resources = append(resources, r)
		}
	}
	return resources, nil
}
