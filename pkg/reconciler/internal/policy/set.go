// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Set is the complete, valid set of rules for one dependent object. Only
// Parse and Defaults build one, so code below this package never asks whether a
// value is empty or wrong.
type Set struct {
	Adoption  v1alpha1.AdoptionPolicy
	Reconcile v1alpha1.ReconcilePolicy
	Update    v1alpha1.UpdatePolicy
	// RecreatePropagation is what becomes of the dependents of an object that is
	// recreated; empty means PropagationBackground.
	RecreatePropagation Propagation
	Delete              v1alpha1.DeletePolicy
	Drift               v1alpha1.DriftPolicy
	Order               Order
	// Reapply is the interval of refreshing writes; zero means none.
	Reapply time.Duration
	// Hints say how readiness is judged.
	Hints StatusHints
	// ReadyWhen is a CEL expression over the object; empty means none.
	ReadyWhen string
	// IgnoreFields are JSON pointers (RFC 6901), sorted.
	IgnoreFields []string
	// DependsOn are other dependents that must be ready before.
	DependsOn []Reference
	RunOn     RunOn
	// Revision is the text with which the object counts as changed, in place of its
	// manifest; empty means none.
	Revision string
}

// Order places an object among the waves.
type Order struct {
	Apply, Delete int16
	// Purge is the wave at whose end the object is deleted; nil means never.
	Purge *int16
}

// StatusHints say how readiness is judged.
type StatusHints struct {
	// ObservedGeneration: the object will have a status.observedGeneration,
	// so its absence means not ready.
	ObservedGeneration bool
	// ReadyCondition: the object will have a Ready condition, so its absence
	// means not ready.
	ReadyCondition bool
	// Conditions must all be present and True.
	Conditions []string
}

// Reference names another dependent object. Namespace is empty for
// cluster-scoped objects and for objects in the same namespace.
type Reference struct {
	Group, Kind, Namespace, Name string
}

// Propagation says what becomes of the dependents of a deleted object, which name
// it in their owner references.
type Propagation string

const (
	// PropagationBackground deletes them after the object.
	PropagationBackground Propagation = "background"
	// PropagationOrphan leaves them behind.
	PropagationOrphan Propagation = "orphan"
)

// RunOn says when an object is applied, if not with the others.
type RunOn string

const (
	// RunOnApply is the ordinary case.
	RunOnApply RunOn = ""
	// RunOnPreDelete objects are applied and awaited before the first
	// object is deleted.
	RunOnPreDelete RunOn = "pre-delete"
	// RunOnPostDelete objects are applied and awaited after the last object
	// was deleted.
	RunOnPostDelete RunOn = "post-delete"
)
