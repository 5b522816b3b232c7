// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// ownerKey is a label or an annotation by which a tool claims an object. Labels that only describe
// an object, such as app.kubernetes.io/managed-by, are none.
type ownerKey struct {
	// field is "labels" or "annotations".
	field, key string
	// title names the owner; empty means that the value is not about this object.
	title func(live *unstructured.Unstructured, value string) string
	// more are further keys about the same owner, which mean nothing without the key: label and
	// annotation alike.
	more []string
}

// toolKeys are the labels and annotations of ownership of well-known tools.
var toolKeys = []ownerKey{
	{"annotations", "meta.helm.sh/release-name", func(live *unstructured.Unstructured, value string) string {
		return policy.HelmRelease(live.GetAnnotations()["meta.helm.sh/release-namespace"], value)
	}, []string{"meta.helm.sh/release-namespace"}},
	{"annotations", "argocd.argoproj.io/tracking-id", argoTitle, []string{"argocd.argoproj.io/installation-id"}},
	{"annotations", "config.k8s.io/owning-inventory", func(_ *unstructured.Unstructured, value string) string {
		return "inventory " + value
	}, nil},
	{"labels", "kustomize.toolkit.fluxcd.io/name", func(live *unstructured.Unstructured, value string) string {
		return "Flux Kustomization " + strings.TrimPrefix(live.GetLabels()["kustomize.toolkit.fluxcd.io/namespace"]+"/"+value, "/")
	}, []string{"kustomize.toolkit.fluxcd.io/namespace"}},
	{"labels", "helm.toolkit.fluxcd.io/name", func(live *unstructured.Unstructured, value string) string {
		return policy.FluxRelease(live.GetLabels()["helm.toolkit.fluxcd.io/namespace"], value)
	}, []string{"helm.toolkit.fluxcd.io/namespace"}},
	{"labels", "kapp.k14s.io/app", func(_ *unstructured.Unstructured, value string) string { return "kapp application " + value }, []string{"kapp.k14s.io/association", "kapp.k14s.io/identity"}},
	{"labels", "applyset.kubernetes.io/part-of", func(_ *unstructured.Unstructured, value string) string { return "apply set " + value }, nil},
}

// argoTitle reads "application:group/kind:namespace/name". Controllers copy
// annotations to the objects that they make; such a copy names another object.
func argoTitle(live *unstructured.Unstructured, value string) string {
	parts := strings.SplitN(value, ":", 3) // names may hold colons
	if len(parts) != 3 || !strings.HasSuffix(parts[1], "/"+live.GetKind()) || !strings.HasSuffix("/"+parts[2], "/"+live.GetName()) {
		return ""
	}
	return "Argo CD application " + parts[0]
}

// Annotations of SAP component-operator-runtime, after the name of the reconciler. The label owner-id is there, too.
const (
	sapOwnerID = "owner-id"
	sapDigest  = "digest"
)

// ownership reads the labels and annotations of ownership. Those of our own manifest name no other
// owner.
func (o *Observer) ownership(live *unstructured.Unstructured, desired *plan.Desired) plan.Ownership {
	name := o.options.Name
	values := valuesOf(live)
	found := plan.Ownership{
		OwnerID: values["labels"][name+"/"+vocabulary.LabelOwnerID],
	}
	found.Controller, found.SAPOwner = controllerOf(live), values["annotations"][name+"/"+sapOwnerID]
	found.Ref, _ = plan.ParseOwnerRef(values["annotations"][name+"/"+vocabulary.AnnotationOwner])

	for _, m := range o.otherOwners(live, desired, values) {
		found.OtherOwners = append(found.OtherOwners, m.title(live, values[m.field][m.key]))
		if other, ok := strings.CutSuffix(m.key, "/"+vocabulary.LabelOwnerID); ok {
			ref, _ := plan.ParseOwnerRef(values["annotations"][other+"/"+vocabulary.AnnotationOwner])
			found.Marks = append(found.Marks, plan.Mark{Reconciler: other, OwnerID: values[m.field][m.key], Ref: ref})
		}
	}
	return found
}

// sharedMark returns the annotation of a definition that has the label of the types that all components share.
func (o *Observer) sharedMark(live *unstructured.Unstructured) string {
	if live.GetLabels()[o.options.Name+"/"+vocabulary.LabelShared] == "" {
		return ""
	}
	return cmp.Or(live.GetAnnotations()[o.options.Name+"/"+vocabulary.LabelShared], "none")
}

func controllerOf(live *unstructured.Unstructured) plan.Controller {
	controller := metav1.GetControllerOfNoCopy(live)
	if controller == nil {
		return plan.Controller{}
	}
	return plan.Controller{Kind: controller.Kind, Name: controller.Name, UID: controller.UID}
}

// otherOwners returns the labels and annotations on the object that name another owner.
func (o *Observer) otherOwners(live *unstructured.Unstructured, desired *plan.Desired, values map[string]map[string]string) []ownerKey {
	return slices.DeleteFunc(slices.Concat(toolKeys, o.reconcilerKeys(values["labels"])), func(m ownerKey) bool {
		value := values[m.field][m.key]
		return value == "" || o.setByUs(live, desired, m.field, m.key, value) || m.title(live, value) == ""
	})
}

// OtherOwnerKeys returns the keys of the labels and annotations by which other tools claim the
// object, and of the annotations that go with them. Keys of our own manifest are not among them.
func (o *Observer) OtherOwnerKeys(live *unstructured.Unstructured, desired *plan.Desired) (labels, annotations []string) {
	values, keys := valuesOf(live), map[string][]string{}
	for _, m := range o.otherOwners(live, desired, values) {
		keys[m.field] = append(keys[m.field], m.key)
		for _, field := range []string{"labels", "annotations"} {
			for _, key := range m.more {
				if value := values[field][key]; value != "" && !o.setByUs(live, desired, field, key, value) {
					keys[field] = append(keys[field], key)
				}
			}
		}
	}
	for _, key := range o.SAPAnnotations() {
		if value := values["annotations"][key]; value != "" && !o.setByUs(live, desired, "annotations", key, value) {
			keys["annotations"] = append(keys["annotations"], key)
		}
	}
	return keys["labels"], keys["annotations"]
}

// SAPAnnotations are the keys of the annotations that SAP component-operator-runtime gives to the objects of the
// reconciler.
func (o *Observer) SAPAnnotations() []string {
	return []string{o.options.Name + "/" + sapOwnerID, o.options.Name + "/" + sapDigest}
}

// valuesOf are the labels and annotations of an object, by field and key.
func valuesOf(live *unstructured.Unstructured) map[string]map[string]string {
	return map[string]map[string]string{"labels": live.GetLabels(), "annotations": live.GetAnnotations()}
}

// reconcilerKeys returns the ownership labels of other reconcilers, which are not known by name.
func (o *Observer) reconcilerKeys(labels map[string]string) []ownerKey {
	var found []ownerKey
	for key := range labels {
		if other, ok := strings.CutSuffix(key, "/"+vocabulary.LabelShared); ok && other != o.options.Name {
			found = append(found, ownerKey{"labels", key, func(*unstructured.Unstructured, string) string { return "the components of " + other }, []string{key}})
		}
		other, ok := strings.CutSuffix(key, "/"+vocabulary.LabelOwnerID)
		if !ok || other == o.options.Name {
			continue
		}
		found = append(found, ownerKey{"labels", key, func(live *unstructured.Unstructured, value string) string {
			if ref, ok := plan.ParseOwnerRef(live.GetAnnotations()[other+"/"+vocabulary.AnnotationOwner]); ok {
				return ref.Title() + " of " + other
			}
			return "an owner of " + other
		}, []string{other + "/" + vocabulary.AnnotationOwner}})
	}
	slices.SortFunc(found, func(a, b ownerKey) int { return strings.Compare(a.key, b.key) })
	return found
}

// setByUs reports whether a label or an annotation comes from our own manifest. Without a
// manifest, as in deletion, the field manager decides.
func (o *Observer) setByUs(live *unstructured.Unstructured, desired *plan.Desired, field, key, value string) bool {
	if desired == nil || desired.Manifest == nil {
		return Owns(live, o.options.FieldOwner, "f:metadata", "f:"+field, "f:"+key)
	}
	ours, _, _ := unstructured.NestedString(desired.Manifest.Object, "metadata", field, key)
	return ours == value
}

// Owns reports whether a field manager owns the field with the path.
func Owns(live *unstructured.Unstructured, manager string, path ...string) bool {
	for entry := range managed(live) {
		if entry.manager != manager {
			continue
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(entry.fields, path...); found {
			return true
		}
	}
	return false
}
