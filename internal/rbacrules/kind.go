// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"cmp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/internal/cluster"
)

// Kind is a kind of objects.
type Kind struct {
	Group, Version, Kind string
	// Resource is the plural name.
	Resource   string
	Namespaced bool
	// Origins are the files that it was found in, sorted.
	Origins []string
	// Optional is set if the kind is neither built in nor defined by the manifests themselves.
	Optional bool
	// Rendered is set if samples render it.
	Rendered bool
	// Defined is set if the manifests define the kind, and hold no objects of it.
	Defined bool
	// Read is set if templates look objects of the kind up, and render none.
	Read bool
}

func (k Kind) groupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// isNamespace reports whether the objects of the kind are namespaces that are written.
func (k Kind) isNamespace() bool { return k.Group == "" && k.Kind == "Namespace" && !k.Read }

// clusterScoped are the built-in kinds without a namespace.
var clusterScoped = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "ComponentStatus", "CSIDriver", "CSINode",
	"CustomResourceDefinition", "DeviceClass", "DeviceTaintRule", "FlowSchema", "IngressClass", "IPAddress", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
	"PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview", "ServiceCIDR",
	"StorageClass", "StorageVersion", "StorageVersionMigration", "SubjectAccessReview", "TokenReview", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// servedElsewhere are kinds of Kubernetes that are not in the scheme of client-go.
var servedElsewhere = map[schema.GroupKind]string{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "v1",
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             "v1",
}

// removed are kinds that Kubernetes does not serve any more, in groups that it has.
var removed = []string{"PodSecurityPolicy"}

// builtIn returns the groups of a built-in kind, the ones with stable versions first.
func builtIn(kind string) (found []Kind) {
	if slices.Contains(removed, kind) {
		return []Kind{{Group: "policy", Version: "v1beta1", Kind: kind, Resource: "podsecuritypolicies", Optional: true}}
	}
	for gvk := range cluster.BuiltIn().AllKnownTypes() {
		if gvk.Kind == kind && gvk.Version != "__internal" && gvk.Group != "extensions" {
			found = append(found, kindOf(gvk, false))
		}
	}
	for groupKind, version := range servedElsewhere {
		if groupKind.Kind == kind {
			found = append(found, kindOf(groupKind.WithVersion(version), false))
		}
	}
	slices.SortFunc(found, func(a, b Kind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), len(a.Version)-len(b.Version), strings.Compare(b.Version, a.Version))
	})
	return slices.CompactFunc(found, func(a, b Kind) bool { return a.Group == b.Group })
}

// kindOf returns the kind of a type, with a plural name that follows from it.
func kindOf(gvk schema.GroupVersionKind, optional bool) Kind {
	plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
	return Kind{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: plural.Resource, Optional: optional,
		Namespaced: !slices.Contains(clusterScoped, gvk.Kind) && !(optional && strings.HasPrefix(gvk.Kind, "Cluster")),
	}
}

// kindIn returns the kind in a group, which may have moved: a chart for older clusters may still
// have extensions.
func kindIn(apiVersion, kind string) Kind {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	known := builtIn(kind)
	if at := slices.IndexFunc(known, func(k Kind) bool { return k.Group == gvk.Group }); at >= 0 {
		return known[at]
	}
	if gvk.Group == "extensions" && len(known) > 0 {
		return known[0]
	}
	return kindOf(gvk, true)
}

// OfObjects returns the kinds of objects.
func OfObjects(objects []*unstructured.Unstructured) []Kind {
	var kinds []Kind
	var defined []Kind
	for _, object := range objects {
		k := kindIn(object.GetAPIVersion(), object.GetKind())
		k.Rendered = true
		kinds = append(kinds, k)
		defined = append(defined, definedBy(object)...)
	}
	return complete(kinds, defined)
}

// definedBy returns the kind that a CustomResourceDefinition defines.
func definedBy(object *unstructured.Unstructured) []Kind {
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
		return value
	}
	return []Kind{{Group: text("group"), Kind: text("names", "kind"), Resource: text("names", "plural"), Namespaced: text("scope") != string(apiextensionsv1.ClusterScoped)}}
}

// isValid reports whether a server can have the kind. The names of another kind could hold actions of a template, or rules.
func (k Kind) isValid() bool {
	isGroup := k.Group == "" || len(validation.IsDNS1123Subdomain(k.Group)) == 0
	return isGroup && len(validation.IsDNS1123Label(k.Resource)) == 0 && len(validation.IsDNS1035Label(strings.ToLower(k.Kind))) == 0
}

// complete merges the kinds that a server can have, and addresses them as their definitions do.
func complete(kinds, defined []Kind) []Kind {
	for _, d := range defined {
		d.Defined = true
		kinds = append(kinds, d)
	}
	return Merge(slices.DeleteFunc(kinds, func(k Kind) bool { return !k.isValid() }), nil)
}

// Without returns the kinds that are not in another list.
func Without(kinds, others []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool {
		return slices.ContainsFunc(others, func(other Kind) bool { return other.groupKind() == k.groupKind() })
	})
}

// Merge joins two lists of kinds.
func Merge(a, b []Kind) []Kind {
	byKind := map[schema.GroupKind]Kind{}
	for _, k := range slices.Concat(a, b) {
		known, there := byKind[k.groupKind()]
		if !there {
			known = k
			known.Origins = nil
		}
		known.Origins = append(known.Origins, k.Origins...)
		slices.Sort(known.Origins)
		known.Origins = slices.Compact(known.Origins)
		known.Rendered = known.Rendered || k.Rendered
		known.Defined = known.Defined && k.Defined
		known.Read = known.Read && k.Read
		if known.Optional && !k.Optional {
			known.Optional, known.Resource, known.Namespaced = false, k.Resource, k.Namespaced
		}
		byKind[k.groupKind()] = known
	}
	merged := make([]Kind, 0, len(byKind))
	for _, k := range byKind {
		merged = append(merged, k)
	}
	slices.SortFunc(merged, func(a, b Kind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	return merged
}
