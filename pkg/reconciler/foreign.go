// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Foreign is an object of others, or all objects of a type, that an owner depends on: it
// is waited for, or ignored until it is gone.
type Foreign struct {
	Type schema.GroupVersionResource
	// Namespace is empty for objects that live in none.
	Namespace string
	// Name is empty if all objects of the type are meant, in the namespace or, without
	// one, everywhere.
	Name string
	// ResourceVersion is that of the object when it was read; empty if it is not known.
	ResourceVersion string
	// Vanishing: nothing but the end of an object makes a difference.
	Vanishing bool
}

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// foreign returns what of others the plan waits for, and the ignored objects, which are
// created once they are gone.
func (c *call) foreign(p plan.Plan) []Foreign {
	var all []Foreign
	add := func(more ...Foreign) {
		for _, one := range more {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	for _, key := range p.Ignored {
		if at, ok := c.known(c.typeOf(key)); ok {
			add(Foreign{Type: at, Namespace: key.Namespace, Name: key.Name, ResourceVersion: c.in.Live[key].ResourceVersion, Vanishing: true})
		}
	}
	for _, wait := range p.Waiting {
		key := wait.Key
		switch wait.Reason {
		case plan.WaitOwner:
			if at, ok := c.known(c.typeOf(key)); ok {
				add(Foreign{Type: at, Namespace: key.Namespace, Name: key.Name, ResourceVersion: c.in.Live[key].ResourceVersion})
			}
		case plan.WaitNamespaceGone:
			of := plan.Key{Kind: "Namespace", Name: key.Namespace}
			add(Foreign{Type: namespaces, Name: of.Name, ResourceVersion: c.in.Live[of].ResourceVersion})
		case plan.WaitType:
			if !c.brings(key.GroupKind()) {
				add(Foreign{Type: definitions})
			}
		case plan.WaitBlocked:
			add(inTheWay(c.in.Failed[key].BlockingTypes)...)
		}
	}
	return all
}

// known returns how a type is addressed.
func (c *call) known(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
	resource, ok := c.in.known(gvk)
	return resource.GVR, ok
}

// typeOf returns the type of an object in the version in which it is read.
func (c *call) typeOf(key plan.Key) schema.GroupVersionKind {
	for i := range c.in.Desired {
		if c.in.Desired[i].Key == key {
			return key.GroupKind().WithVersion(c.in.Desired[i].Version)
		}
	}
	for _, item := range c.in.Recorded {
		if plan.KeyOf(item) == key {
			return key.GroupKind().WithVersion(item.Version)
		}
	}
	return schema.GroupVersionKind{}
}

// brings tells whether one of the wanted objects defines the type: that it does so by
// now is noticed without a watch of all definitions.
func (c *call) brings(gk schema.GroupKind) bool {
	return slices.ContainsFunc(c.in.Desired, func(d plan.Desired) bool {
		return slices.ContainsFunc(d.Defines, func(t v1alpha1.TypeInfo) bool {
			return t.Group == gk.Group && (t.Kind == gk.Kind || t.Kind == "*")
		})
	})
}

// inTheWay is what has to go before something can be deleted.
func inTheWay(obstacles []plan.BlockingType) []Foreign {
	var all []Foreign
	for _, o := range obstacles {
		all = append(all, Foreign{Type: o.Type, Namespace: o.Namespace, Vanishing: true})
	}
	return all
}
