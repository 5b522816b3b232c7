// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

var (
	kindNamespace  = schema.GroupKind{Kind: "Namespace"}
	kindSecret     = schema.GroupKind{Kind: "Secret"}
	kindJob        = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	kindAPIService = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// bearers are the kinds that take other objects with them when they are deleted.
// They are never purged, and never recreated unless they ask for it themselves.
var bearers = map[schema.GroupKind]bool{
	kindNamespace:  true,
	kindDefinition: true,
	kindAPIService: true,
}

// holders are the kinds that hold data; they are not recreated either, unless
// they ask for it themselves.
var holders = map[schema.GroupKind]bool{
	{Kind: "PersistentVolumeClaim"}: true,
	{Kind: "PersistentVolume"}:      true,
}

// ownTypes are the types that the objects themselves bring.
type ownTypes struct {
	definitions map[schema.GroupKind]definition
	services    map[schema.GroupVersion]bool
}

// definition is what a CustomResourceDefinition says about its type.
type definition struct {
	scope    scope
	versions map[string]bool // those that are served
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
		d.scope = scopeLater
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
