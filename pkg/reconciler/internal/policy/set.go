// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Set is the complete, valid set of rules for one dependent object. Only
// Parse and Defaults build one, so code below this package never asks whether a
// value is empty or wrong.
type Set struct {
	Adoption v1alpha1.AdoptionPolicy
	// AdoptFrom are owners of other tools, as messages name them. An object that has only these
	// owners is adopted under each adoption policy. It is empty if there are none.
	AdoptFrom []string
	// AdoptBeside is an owner that an object may have beside one of AdoptFrom; empty if there is none. Alone it proves nothing.
	AdoptBeside string
	Reconcile   v1alpha1.ReconcilePolicy
	Update      v1alpha1.UpdatePolicy
	// RecreatePropagation is the propagation of a deletion that recreates the object; empty means
	// PropagationBackground.
	RecreatePropagation Propagation
	Delete              v1alpha1.DeletePolicy
	Drift               v1alpha1.DriftPolicy
	Order               Order
	// Reapply is the interval of refreshing writes; zero means none.
	Reapply time.Duration
	// Hints say how readiness is assessed.
	Hints StatusHints
	// ReadyWhen is a CEL expression over the object; empty means none.
	ReadyWhen string
	// Outputs are values of the object that its owner publishes.
	Outputs []Output
	// IgnoreFields are JSON pointers (RFC 6901), sorted.
	IgnoreFields []string
	// AllowBreakingChanges lets a definition be changed so that objects or clients of its type break.
	AllowBreakingChanges bool
	// DependsOn are other dependents that must be ready before.
	DependsOn []Reference
	RunOn     RunOn
	// Revision is the text with which the object counts as changed, in place of its
	// manifest; empty means none.
	Revision string
}

// Adopts returns the meaning of the adoption policy.
func (s Set) Adopts() vocabulary.Adoption { return vocabulary.Adoptions[s.Adoption] }

// UsesServerSideApply reports whether the object is written by server-side apply.
func (s Set) UsesServerSideApply() bool {
	return s.Update == v1alpha1.UpdatePolicySsaMerge || s.Update == v1alpha1.UpdatePolicySsaOverride
}

// Recreates reports whether the object may be deleted to be created again.
func (s Set) Recreates() bool {
	return s.Update == v1alpha1.UpdatePolicyRecreate || s.Update == v1alpha1.UpdatePolicyRecreateOnImmutable
}

// ToleratesDrift reports whether the changes of other clients are not undone.
func (s Set) ToleratesDrift() bool {
	return s.Drift == v1alpha1.DriftPolicyReport || s.Drift == v1alpha1.DriftPolicyIgnore
}

// OrphansOnApply reports whether an object is orphaned when the manifests do not contain it any more.
func OrphansOnApply(p v1alpha1.DeletePolicy) bool {
	return p == v1alpha1.DeletePolicyOrphan || p == v1alpha1.DeletePolicyOrphanOnApply
}

// OrphansOnDelete reports whether an object is orphaned when its component is deleted.
func OrphansOnDelete(p v1alpha1.DeletePolicy) bool {
	return p == v1alpha1.DeletePolicyOrphan || p == v1alpha1.DeletePolicyOrphanOnDelete
}

// Order places an object among the waves.
type Order struct {
	Apply, Delete int16
	// Purge is the wave at the end of which the object is deleted; nil means never.
	Purge *int16
}

// StatusHints say how readiness is assessed.
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

// Output is a value of an object that its owner publishes.
type Output struct {
	Name string
	// Expression is a CEL expression over the object.
	Expression string
	// Secret: the value is published in a Secret.
	Secret bool
}

// Reference names another dependent object. Namespace is empty for
// cluster-scoped objects and for objects in the same namespace.
type Reference struct {
	Group, Kind, Namespace, Name string
}

// Propagation decides about the dependents of a deleted object, which name it in their owner
// references.
type Propagation string

const (
	// PropagationBackground deletes them after the object.
	PropagationBackground Propagation = "background"
	// PropagationOrphan orphans them.
	PropagationOrphan Propagation = "orphan"
)

// RunOn tells when an object is applied, if not with the ordinary objects.
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

// minReapply is the shortest interval of refreshing writes.
const minReapply = time.Minute

// Layer is one source of defaults, such as a component or the options of a reconciler. Zero values
// mean unset.
type Layer struct {
	Adoption v1alpha1.AdoptionPolicy
	// AdoptFrom and AdoptBeside are as in Set.
	AdoptFrom   []string
	AdoptBeside string
	Reconcile   v1alpha1.ReconcilePolicy
	Update      v1alpha1.UpdatePolicy
	Delete      v1alpha1.DeletePolicy
	Drift       v1alpha1.DriftPolicy
	// Reapply is the interval of refreshing writes, at least one minute; zero and less mean unset.
	Reapply time.Duration
}

// Defaults unites layers, given in the order of precedence, with the built-in defaults. The error
// lists every mistake of every layer, also of values that another layer overrides.
func Defaults(layers ...Layer) (Set, error) {
	var set Set
	var errs []error
	for _, layer := range layers {
		errs = append(errs,
			setDefault(&set.Adoption, "adoption policy", vocabulary.AdoptionPolicies, layer.Adoption),
			setDefault(&set.Reconcile, "reconcile policy", vocabulary.ReconcilePolicies, layer.Reconcile),
			setDefault(&set.Update, "update policy", vocabulary.UpdatePolicies, layer.Update),
			setDefault(&set.Delete, "delete policy", vocabulary.DeletePolicies, layer.Delete),
			setDefault(&set.Drift, "drift policy", vocabulary.DriftPolicies, layer.Drift),
		)
		if layer.Reapply > 0 && layer.Reapply < minReapply {
			errs = append(errs, fmt.Errorf("reapply interval %s is shorter than %s", layer.Reapply, minReapply))
		}
		if len(set.AdoptFrom) == 0 {
			set.AdoptFrom, set.AdoptBeside = layer.AdoptFrom, layer.AdoptBeside
		}
		set.Reapply = cmp.Or(set.Reapply, max(layer.Reapply, 0))
	}
	if err := errors.Join(errs...); err != nil {
		return Set{}, err
	}
	return set.filled(), nil
}

// ParseMissingNamespaces validates the policy; empty means the default, to create them.
func ParseMissingNamespaces(value v1alpha1.MissingNamespacesPolicy) (v1alpha1.MissingNamespacesPolicy, error) {
	policy := v1alpha1.MissingNamespacesPolicy("")
	if err := setDefault(&policy, "missing namespaces policy", vocabulary.MissingNamespacesPolicies, value); err != nil {
		return "", err
	}
	return cmp.Or(policy, vocabulary.MissingNamespacesPolicies[0]), nil
}

// ParseDrift reads a drift policy, in kebab-case or CamelCase; empty is a mistake.
func ParseDrift(value string) (v1alpha1.DriftPolicy, error) {
	return parseEnum(vocabulary.DriftPolicies, value)
}

// setDefault validates a value, and uses it unless an earlier one was set.
func setDefault[T ~string](target *T, name string, values []T, value T) error {
	if value == "" {
		return nil
	}
	parsed, err := parseEnum(values, string(value))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*target = cmp.Or(*target, parsed)
	return nil
}

// filled puts the built-in defaults where the set has zero values.
func (s Set) filled() Set {
	s.Adoption = cmp.Or(s.Adoption, vocabulary.AdoptionPolicies[0])
	s.Reconcile = cmp.Or(s.Reconcile, vocabulary.ReconcilePolicies[0])
	s.Update = cmp.Or(s.Update, vocabulary.UpdatePolicies[0])
	s.Delete = cmp.Or(s.Delete, vocabulary.DeletePolicies[0])
	s.Drift = cmp.Or(s.Drift, vocabulary.DriftPolicies[0])
	return s
}
