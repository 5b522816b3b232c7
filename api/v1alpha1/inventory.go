// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InventoryFormat is the version of the inventory's form that this package
// writes if no items are in Secrets, also if there are none. A reader that meets a higher
// number than it knows must not act on the inventory.
const InventoryFormat = 3

// Inventory is the record of every dependent object that a component owns or is about to own. An object is changed
// or deleted only if the object itself, or the seal of its item, shows the owner.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Inventory struct {
	// Format is the version of this form, see InventoryFormat.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Format int32 `json:"format,omitempty"`
	// Target identifies the cluster of the objects: the uid of its namespace kube-system or, without the right to
	// read it, the URL of the server with a hash of its certificate authorities.
	// +optional
	Target types.UID `json:"target,omitempty"`
	// Operator is the operator that sealed the items last.
	// +optional
	Operator *InventoryOperator `json:"operator,omitempty"`
	// The objects, each as a text that only the operator understands, by a name such as
	// "apps/v1 Deployment shop/web".
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Items InventoryItems `json:"objects,omitempty"`
	// Chunks is set if the items are, or were, too many for the status, and are in Secrets.
	// +optional
	Chunks *InventoryChunks `json:"chunks,omitempty"`
	// DeleteHooks is set if there are objects to run before or after the deletion that are not among the items.
	// +optional
	DeleteHooks bool `json:"deleteHooks,omitempty"`
	// Unknown are the fields that a newer version wrote. They are kept as they are.
	Unknown map[string]json.RawMessage `json:"-"`
	// Foreign is the list of SAP component-operator-runtime that the inventory was read from, until it is adopted.
	Foreign json.RawMessage `json:"-"`
}

// InventoryOperator identifies an operator.
type InventoryOperator struct {
	// Key identifies the digest key of the operator.
	Key string `json:"key"`
	// Namespace is where the operator keeps its key.
	Namespace string `json:"namespace"`
	// Lease is the namespace and the name of the Lease of its leader election, separated by a slash; it is empty
	// without a leader lock.
	// +optional
	Lease string `json:"lease,omitempty"`
}

// InventoryItem is the record of one dependent object. Fields hold only values that differ from the
// defaults, to keep the record small.
type InventoryItem struct {
	// Group, Version and Kind are the type that the manifest names; the
	// version is not part of the key of the object.
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID is the uid of the object that we wrote; empty until the server has answered.
	UID types.UID `json:"uid,omitempty"`
	// Seal is a hash over the owner and over the key and the uid of the object, made
	// with the digest key, which only the operator has. It proves that the object is
	// the owner's even if its label and annotation are gone.
	Seal string `json:"seal,omitempty"`
	// Digest identifies the manifest that was last accepted by the server;
	// empty until then. It starts with a question mark if it cannot be compared any
	// more, because it was made with another key.
	Digest string `json:"digest,omitempty"`
	// Intended identifies the first manifest of an object that was not there, until a write of the object
	// is recorded. It is empty if another manifest has been sent since.
	Intended string `json:"intended,omitempty"`
	// A hash over the object as the server answered our last write,
	// without status and server-kept metadata. As long as it matches there is no drift.
	ObservedHash string `json:"seen,omitempty"`
	// A hash over the object's values at the paths that the
	// manifest sets, after the version of the hash. Only a change of these is drift.
	AppliedHash string `json:"accepted,omitempty"`
	// Altered means that the object was not as its manifest right after it was written: the cause,
	// and the changed paths, with ": " between them.
	Altered string `json:"altered,omitempty"`
	// Phase is where the object is in its life: Completing, Completed, Recreating or Released; empty means applied
	// or about to be.
	Phase string `json:"phase,omitempty"`
	// Origin is empty for objects of the manifests, and Namespace for a namespace that was created because objects
	// live in it.
	Origin      string `json:"origin,omitempty"`
	ApplyOrder  int16  `json:"applyOrder,omitempty"`
	DeleteOrder int16  `json:"deleteOrder,omitempty"`
	// DeletePolicy is empty for DeletePolicyDelete.
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`
	// Keeps is set for a namespace or a type after something in it was orphaned by a delete policy.
	// It is deleted only if it is empty by then; otherwise it is orphaned, too.
	Keeps bool `json:"keeps,omitempty"`
	// Kept are the uids of the instances that were orphaned, if this object is
	// a type that keeps them; the newest come last. Other instances are of
	// another owner and block the deletion of the type. Of more than 1000 the
	// oldest are dropped, and block it, too.
	Kept []types.UID `json:"kept,omitempty"`
	// Defines are the types that this object brings if it is a
	// CustomResourceDefinition or an APIService; an APIService defines
	// every kind ("*") of its group.
	Defines []TypeInfo `json:"defines,omitempty"`
	// DependsOn are the dependents, each as group/kind/namespace/name, that
	// this object depended on when it was last written. They are not removed
	// before it.
	DependsOn []string `json:"dependsOn,omitempty"`
	// RunOn is "pre-delete" or "post-delete" for an object that runs before or after the deletion
	// of the ordinary objects. In the phase Completed it has done so, and does not run again.
	RunOn string `json:"runOn,omitempty"`
	// AppliedAt is when we last wrote the object; kept only if the readiness or
	// the refresh of the object depends on it.
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
	// Replicas is the number of replicas in the manifest that was last written, of an
	// object that can be scaled; nil if the manifest does not say it.
	Replicas *int64 `json:"replicas,omitempty"`
	// UnreadSince is set for a namespace that is to be removed, as long as it is unknown
	// whether it is empty, because part of its content cannot be read.
	UnreadSince *metav1.Time `json:"unreadSince,omitempty"`
	// UnreadLast is when that was last tried, to within a quarter of the component's
	// timeout. After half of the timeout without a try UnreadSince starts again.
	UnreadLast *metav1.Time `json:"unreadLast,omitempty"`
	// Inherited is set as long as the record comes from SAP component-operator-runtime, and the
	// object was not taken over: it is ours if it has the label that that runtime gives to our
	// objects.
	Inherited bool `json:"inherited,omitempty"`
	// Finished tells how an object that has a time to live after its end, such as a Job with
	// ttlSecondsAfterFinished, has ended, Complete or Failed; it is empty for all other objects.
	Finished string `json:"finished,omitempty"`
	// Unknown are the fields that a newer version wrote. They are kept as they are.
	Unknown map[string]json.RawMessage `json:"-"`
}

// TypeInfo identifies one or several Kubernetes types.
type TypeInfo struct {
	// Group is an API group, "*" for every group, or "*.suffix", where the
	// asterisk stands for one or more DNS labels.
	Group string `json:"group"`
	// Kind is a kind, or "*" for every kind.
	Kind string `json:"kind"`
}

// Matches reports whether the pattern covers a type.
func (t TypeInfo) Matches(group, kind string) bool {
	if t.Kind != "*" && t.Kind != kind {
		return false
	}
	if suffix, wildcard := strings.CutPrefix(t.Group, "*."); wildcard {
		return strings.HasSuffix(group, "."+suffix) && len(group) > len(suffix)+1
	}
	return t.Group == "*" || t.Group == group
}
