// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// namespaceDigest is the digest of every namespace that is created because
// objects live in it: its manifest never changes.
const namespaceDigest = "namespace"

// Namespaces returns the keys of the namespaces that objects to be created
// live in. The observations of a plan must include them: missing ones are
// created, and in terminating ones nothing is.
func Namespaces(desired []Desired, live map[Key]Observation) []Key {
	seen := map[Key]bool{}
	var keys []Key
	for _, d := range desired {
		if d.Key.Namespace == "" || live[d.Key].Existence == Present {
			continue
		}
		key := namespaceKey(d.Key.Namespace)
		if _, observed := live[key]; !observed && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// addNamespaces makes wanted units of the namespaces that are missing, and
// keeps those that were created before and are still lived in.
func (w *work) addNamespaces() {
	if w.in.MissingNamespaces != v1alpha1.MissingNamespacesPolicyCreate {
		return
	}
	first := map[string]int16{} // the first wave that needs the namespace
	for i := range w.in.Desired {
		d := &w.in.Desired[i]
		if d.Key.Namespace == "" {
			continue
		}
		order, known := first[d.Key.Namespace]
		if !known || d.Policies.Order.Apply < order {
			first[d.Key.Namespace] = d.Policies.Order.Apply
		}
	}
	for name, order := range first {
		w.addNamespace(name, order)
	}
	slices.SortFunc(w.units, func(a, b *unit) int { return a.key.Compare(b.key) })
}

func (w *work) addNamespace(name string, order int16) {
	key := namespaceKey(name)
	u := w.byKey[key]
	if u != nil && u.desired != nil {
		return // the manifests bring it
	}
	if u != nil && u.item.Origin != v1alpha1.OriginNamespace {
		// The manifests brought it once and no longer do; it stays as long as
		// it is needed.
		u.item.Origin = v1alpha1.OriginNamespace
	}
	live := w.in.Live[key]
	if u == nil {
		if live.Existence != Absent {
			return // it exists, or nobody asked; it is not ours
		}
		u = &unit{key: key}
		w.add(u)
	}
	u.want(w.namespace(key, order))
	u.item.Origin = v1alpha1.OriginNamespace
	u.observe(w.in)
	if u.live.Existence == Present && !u.isOurs() {
		// Somebody else has it now. We only need it to be there.
		u.desired, u.dropped, u.settled = nil, true, true
	}
}

// namespace returns the wanted form of a namespace that no manifest brings.
// Nothing of it is ever compared or written again, except our marks.
func (w *work) namespace(key Key, order int16) *Desired {
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata": map[string]any{
			"name":        key.Name,
			"labels":      map[string]any{w.in.Name + "/" + v1alpha1.LabelOwnerID: w.in.Owner.ID},
			"annotations": map[string]any{w.in.Name + "/" + v1alpha1.AnnotationOwner: w.in.Owner.Ref.String()},
		},
	}}
	return &Desired{
		Key:     key,
		Version: "v1",
		Digest:  namespaceDigest,
		Policies: policy.Set{
			Adoption:  v1alpha1.AdoptionPolicyNever,
			Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
			Update:    v1alpha1.UpdatePolicySsaMerge,
			Delete:    v1alpha1.DeletePolicyDelete,
			Order:     policy.Order{Apply: order},
		},
		Manifest: manifest,
	}
}

// namespaceTerminating tells whether objects cannot be created in a namespace
// because it is being deleted.
func (w *work) namespaceTerminating(name string) bool {
	if name == "" {
		return false
	}
	live := w.in.Live[namespaceKey(name)]
	return live.Existence == Present && !live.Deleting.IsZero()
}
