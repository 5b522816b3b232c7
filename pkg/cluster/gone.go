// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// automanaged marks the APIServices that the server makes for its own types.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// pageSize is the size of the pages in which we read lists of unknown length.
const pageSize = 500

var apiServices = Resource{GVR: gvr("apiregistration.k8s.io", "v1", "apiservices"), Kind: "APIService"}

// Gone tells whether a type is provably gone, and its objects with it: the
// server does not serve it, no CustomResourceDefinition brings it (one may exist
// without being served), and no aggregated server is responsible for its group
// (one may be out of order, or about to bring it). An error means that it is not known.
func (t *Types) Gone(ctx context.Context, gk schema.GroupKind) (bool, error) {
	if _, err := t.ResolveAny(ctx, gk, ""); err == nil || !isNotServed(err) {
		return false, err
	}
	// The definition is looked at after the discovery: a type that is just
	// being defined shows in one of the two.
	if defined, err := t.isDefined(ctx, gk); err != nil || defined {
		return false, err
	}
	aggregated, err := t.isAggregated(ctx, gk.Group)
	return err == nil && !aggregated, err
}

// isDefined tells whether any CustomResourceDefinition brings the type. Its name
// holds the group; the kind is inside.
func (t *Types) isDefined(ctx context.Context, gk schema.GroupKind) (bool, error) {
	defined := false
	err := t.eachNamed(ctx, definitions, "."+gk.Group, func(metadata metav1.PartialObjectMetadata) error {
		definition, err := t.objects.Get(ctx, definitions, "", metadata.Name)
		if IsNotFound(err, definitions, metadata.Name) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the CustomResourceDefinition %s: %w", metadata.Name, err)
		}
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		defined = defined || kind == gk.Kind
		return nil
	})
	return defined, err
}

// isAggregated tells whether an aggregated server is responsible for the group.
func (t *Types) isAggregated(ctx context.Context, group string) (bool, error) {
	aggregated := false
	err := t.eachNamed(ctx, apiServices, "."+group, func(metadata metav1.PartialObjectMetadata) error {
		version, _, _ := strings.Cut(metadata.Name, ".")
		if metadata.Name == version+"."+group && metadata.Labels[automanaged] == "" {
			aggregated = true
		}
		return nil
	})
	return aggregated, err
}

// eachNamed visits the objects of a cluster-scoped type whose name has the suffix.
func (t *Types) eachNamed(ctx context.Context, r Resource, suffix string, visit func(metav1.PartialObjectMetadata) error) error {
	options := ListOptions{Limit: pageSize}
	for {
		list, err := t.objects.ListMetadata(ctx, r, "", options)
		if err != nil {
			return fmt.Errorf("list the objects of kind %s: %w", r.Kind, err)
		}
		for _, item := range list.Items {
			if !strings.HasSuffix(item.Name, suffix) {
				continue
			}
			if err := visit(item); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
