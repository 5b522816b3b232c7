// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// mark is a sign by which a tool says that it owns an object. Labels that only
// describe an object, such as app.kubernetes.io/managed-by, are none.
type mark struct {
	// field is "labels" or "annotations".
	field, key string
	// title names the owner; empty means that the mark is not about this object.
	title func(live *unstructured.Unstructured, value string) string
}

// foreignMarks are the marks of tools that are known.
var foreignMarks = []mark{
	{"annotations", "meta.helm.sh/release-name", func(live *unstructured.Unstructured, value string) string {
		return "Helm release " + join(live.GetAnnotations()["meta.helm.sh/release-namespace"], value)
	}},
	{"annotations", "argocd.argoproj.io/tracking-id", argoTitle},
	{"annotations", "config.k8s.io/owning-inventory", func(_ *unstructured.Unstructured, value string) string {
		return "inventory " + value
	}},
	{"labels", "kustomize.toolkit.fluxcd.io/name", func(live *unstructured.Unstructured, value string) string {
		return "Flux Kustomization " + join(live.GetLabels()["kustomize.toolkit.fluxcd.io/namespace"], value)
	}},
	{"labels", "helm.toolkit.fluxcd.io/name", func(live *unstructured.Unstructured, value string) string {
		return "Flux HelmRelease " + join(live.GetLabels()["helm.toolkit.fluxcd.io/namespace"], value)
	}},
	{"labels", "kapp.k14s.io/app", func(_ *unstructured.Unstructured, value string) string { return "kapp application " + value }},
	{"labels", "applyset.kubernetes.io/part-of", func(_ *unstructured.Unstructured, value string) string { return "apply set " + value }},
}

// argoTitle reads "application:group/kind:namespace/name". Controllers copy
// annotations to the objects that they make; such a copy names another object.
func argoTitle(live *unstructured.Unstructured, value string) string {
	parts := strings.Split(value, ":")
	if len(parts) != 3 || !strings.HasSuffix(parts[1], "/"+live.GetKind()) || !strings.HasSuffix("/"+parts[2], "/"+live.GetName()) {
		return ""
	}
	return "Argo CD application " + parts[0]
}

func join(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// marks reads the signs of ownership. A mark that our own manifest sets is not foreign.
func (o *Observer) marks(live *unstructured.Unstructured, desired *plan.Desired) plan.Marks {
	name := o.options.Name
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	found := plan.Marks{
		OwnerID: labels[name+"/"+v1alpha1.LabelOwnerID],
		Written: wrote(live, o.options.FieldOwner),
	}
	found.Ref, _ = plan.ParseOwnerRef(annotations[name+"/"+v1alpha1.AnnotationOwner])

	values := map[string]map[string]string{"labels": labels, "annotations": annotations}
	for _, m := range slices.Concat(foreignMarks, o.reconcilerMarks(labels)) {
		value := values[m.field][m.key]
		if value == "" || o.setByUs(live, desired, m.field, m.key, value) {
			continue
		}
		if title := m.title(live, value); title != "" {
			found.Others = append(found.Others, title)
		}
	}
	return found
}

// reconcilerMarks are the marks of other reconcilers, which are not known by name.
func (o *Observer) reconcilerMarks(labels map[string]string) []mark {
	var marks []mark
	for key := range labels {
		other, ok := strings.CutSuffix(key, "/"+v1alpha1.LabelOwnerID)
		if !ok || other == o.options.Name {
			continue
		}
		marks = append(marks, mark{"labels", key, func(live *unstructured.Unstructured, value string) string {
			if ref, ok := plan.ParseOwnerRef(live.GetAnnotations()[other+"/"+v1alpha1.AnnotationOwner]); ok {
				return ref.Title() + " of " + other
			}
			return "an owner of " + other
		}})
	}
	slices.SortFunc(marks, func(a, b mark) int { return strings.Compare(a.key, b.key) })
	return marks
}

// setByUs tells whether a mark comes from our own manifest. When the manifest
// is not at hand, as in deletion, the field manager tells.
func (o *Observer) setByUs(live *unstructured.Unstructured, desired *plan.Desired, field, key, value string) bool {
	if desired == nil || desired.Manifest == nil {
		return owns(live, o.options.FieldOwner, "f:metadata", "f:"+field, "f:"+key)
	}
	ours, _, _ := unstructured.NestedString(desired.Manifest.Object, "metadata", field, key)
	return ours == value
}
