// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// scope tells where the objects of a type live, as far as that is known.
type scope int

const (
	scopeFailed       scope = iota // asking failed
	scopeMissing                   // the type is not served, and no object defines it
	scopeUnknown                   // the type appears at run time
	scopeUnmanageable              // its objects cannot be dependents
	scopeNamespace
	scopeCluster
)

// place decides about the namespace of every item. The error names the types that could not be
// resolved at the moment.
func place(ctx context.Context, in Input, items []*item) error {
	scopes := map[schema.GroupVersionKind]scope{}
	own := typesOf(items)
	var errs []error
	for _, item := range items {
		if item.broken || item.excluded {
			continue
		}
		gvk := item.gvk()
		found, known := scopes[gvk]
		if !known {
			var err error
			if found, err = resolve(ctx, in, own, gvk); err != nil {
				errs = append(errs, err)
			}
			scopes[gvk] = found
		}
		item.setNamespace(found, in.Namespace)
	}
	return errors.Join(errs...)
}

// resolve asks the cluster first and the objects themselves then.
func resolve(ctx context.Context, in Input, own ownTypes, gvk schema.GroupVersionKind) (scope, error) {
	namespaced, served, err := in.Resolve(ctx, gvk)
	switch {
	case errors.Is(err, ErrUnmanageable):
		return scopeUnmanageable, nil
	case err != nil:
		return scopeFailed, fmt.Errorf("resolve type %s: %w", typeName(gvk), err)
	case served && namespaced:
		return scopeNamespace, nil
	case served:
		return scopeCluster, nil
	}
	if definition, defined := own.definitions[gvk.GroupKind()]; defined && definition.versions[gvk.Version] {
		return definition.scope, nil
	}
	if own.services[gvk.GroupVersion()] || plan.Covers(in.Managed, gvk.GroupKind()) {
		return scopeUnknown, nil
	}
	return scopeMissing, nil
}

// typeName returns a type as people write it, such as "apps/v1 Deployment".
func typeName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

func (i *item) setNamespace(found scope, namespace string) {
	metadata := i.content["metadata"].(map[string]any)
	switch found {
	case scopeFailed:
		i.broken = true
	case scopeMissing:
		i.fail("type %s is not served by the cluster, and nothing of this component brings it", typeName(i.gvk()))
	case scopeUnmanageable:
		i.fail("type %s is not for dependent objects: the cluster does not let its objects be created, read and deleted; remove the object from the manifests", typeName(i.gvk()))
	case scopeCluster:
		// Charts set namespaces on everything, and other tools put up with it.
		i.key.Namespace = ""
	case scopeNamespace:
		if i.key.Namespace == "" {
			i.key.Namespace = namespace
		}
		if i.key.Namespace == "" {
			i.fail("has no namespace, and the component has none to put it into")
		}
	}
	if i.key.Namespace == "" {
		delete(metadata, "namespace")
		return
	}
	metadata["namespace"] = i.key.Namespace
}

var (
	kindNamespace  = schema.GroupKind{Kind: "Namespace"}
	kindSecret     = schema.GroupKind{Kind: "Secret"}
	kindJob        = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	kindAPIService = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// cascadingKinds are the kinds with a deletion that deletes other objects, too.
// They are never purged, and never recreated unless they ask for it themselves.
var cascadingKinds = map[schema.GroupKind]bool{
	kindNamespace:  true,
	kindDefinition: true,
	kindAPIService: true,
}

// dataKinds are the kinds that hold data; they are not recreated either, unless
// they ask for it themselves.
var dataKinds = map[schema.GroupKind]bool{
	{Kind: "PersistentVolumeClaim"}: true,
	{Kind: "PersistentVolume"}:      true,
}

// ownTypes are the types that the objects themselves bring.
type ownTypes struct {
	definitions map[schema.GroupKind]definition
	services    map[schema.GroupVersion]bool
}

// definition holds the facts of a CustomResourceDefinition about its type.
type definition struct {
	scope    scope
	versions map[string]bool // the served versions
}

// typesOf reads the definitions among the items, and checks them on the way.
func typesOf(items []*item) ownTypes {
	own := ownTypes{definitions: map[schema.GroupKind]definition{}, services: map[schema.GroupVersion]bool{}}
	for _, item := range items {
		if item.broken {
			continue
		}
		switch item.key.GroupKind() {
		case kindDefinition:
			item.readDefinition(own)
		case kindAPIService:
			item.readAPIService(own)
		}
	}
	return own
}

func (i *item) readDefinition(own ownTypes) {
	group, kind := text(i.content, "spec", "group"), text(i.content, "spec", "names", "kind")
	if group == "" || kind == "" {
		i.mistake("spec.group or spec.names.kind is missing")
		return
	}
	d := definition{versions: map[string]bool{}}
	switch text(i.content, "spec", "scope") {
	case "Namespaced":
		d.scope = scopeNamespace
	case "Cluster":
		d.scope = scopeCluster
	default:
		i.mistake("spec.scope is neither Namespaced nor Cluster")
		d.scope = scopeUnknown
	}
	versions, _ := at(i.content, "spec", "versions").([]any)
	for _, version := range versions {
		if served, _ := at(version, "served").(bool); served {
			d.versions[text(version, "name")] = true
		}
	}
	if len(d.versions) == 0 {
		i.mistake("spec.versions has no version that is served, so the type could not be used")
	}
	own.definitions[schema.GroupKind{Group: group, Kind: kind}] = d
	i.defines = []v1alpha1.TypeInfo{{Group: group, Kind: kind}}
}

func (i *item) readAPIService(own ownTypes) {
	service := &apiregistrationv1.APIService{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(i.content, service); err != nil {
		i.mistake("cannot be understood: %v", err)
		return
	}
	if service.Spec.Group == "" || service.Spec.Version == "" {
		i.mistake("spec.group or spec.version is missing")
		return
	}
	own.services[schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}] = true
	i.defines = []v1alpha1.TypeInfo{{Group: service.Spec.Group, Kind: "*"}}
}

// at returns the value at a path, or nil.
func at(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// text returns the string at a path, or "".
func text(value any, path ...string) string {
	s, _ := at(value, path...).(string)
	return s
}
