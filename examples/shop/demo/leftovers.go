// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// ownerLabel is on every object that the operator created.
	ownerLabel = "shop.example.com/owner-id"
	// sharedLabel is on the definitions that all Shops share.
	sharedLabel = "shop.example.com/shared"
	// ownSecret is the one object in the namespace that we created ourselves.
	ownSecret = "corner-database"
)

// ambient is what Kubernetes itself puts into every namespace.
var ambient = []string{"serviceaccounts default", "configmaps kube-root-ca.crt"}

// untilClean waits until nothing is left of the Shop, since the pods go after
// their Deployment. It returns how many types were looked at.
func (d *demo) untilClean(ctx context.Context) (types int, err error) {
	err = d.poll(ctx, func() error {
		left, looked, err := d.leftovers(ctx)
		if err == nil && len(left) > 0 {
			err = errors.New("still there: " + strings.Join(left, ", "))
		}
		types = looked
		return err
	})
	return types, err
}

// leftovers returns every object of any type that bears the label of the operator, or that
// is in the namespace of the Shop and was not put there by the demo, or that is a volume: no
// other claim uses one.
func (d *demo) leftovers(ctx context.Context) (left []string, types int, err error) {
	config := d.env.Config()
	config.WarningHandler = rest.NoWarnings{} // about deprecated types, which have to be looked at, too
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, 0, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, 0, err
	}
	lists, err := discoverer.ServerPreferredResources()
	if err != nil {
		return nil, 0, err
	}
	for _, gvr := range listable(lists) {
		list, err := objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the type itself was the Shop's, and has just gone
		}
		if err != nil {
			return nil, 0, fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		types++
		for _, object := range list.Items {
			name := gvr.Resource + " " + object.Name
			_, labelled := object.Labels[ownerLabel]
			inside := object.Namespace == shopKey.Namespace || gvr.Resource == "persistentvolumes"
			if labelled || inside && !expected(gvr, name) {
				left = append(left, name)
			}
		}
	}
	return left, types, nil
}

// expected reports whether an object may be in the namespace after the Shop.
func expected(gvr schema.GroupVersionResource, name string) bool {
	return gvr.Resource == "events" || name == "secrets "+ownSecret || slices.Contains(ambient, name)
}

// listable returns the types that can be listed.
func listable(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	var types []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // it could not be asked for either
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				types = append(types, gv.WithResource(resource.Name))
			}
		}
	}
	return types
}
