// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Stages of an apply wave. The purge comes at its end; the removals of the same plan come after all
// writes.
const (
	stageNamespace = iota
	stageType
	stageFoundation
	stageConfiguration
	stageRest
	stageLate
	stageInstance
	stagePurge
	stageRemoval
)

// Stages of a delete wave.
const (
	removeReference = iota // orphans, before the garbage collector deletes them with an object that they refer to
	removeWebhook
	removeInstance
	removeAPI
	removeRest
	removeConfiguration
	removeType
	removeRights
	removeNamespace
)

// kind is how objects of a kind are placed.
type kind struct{ apply, remove int }

var rest = kind{stageRest, removeRest}

// kinds places the kinds that need a certain position. Admission webhooks come after everything
// that may serve them, and are removed before it. Workloads are removed before the configuration
// and the rights that they need to shut down. The rights are removed last, because the component
// may act with them. An APIService is removed before the server behind it: without that server it
// is not known whether there are instances of other owners, which would be lost with it.
var kinds = map[schema.GroupKind]kind{
	{Kind: "Namespace"}: {stageNamespace, removeNamespace},

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {stageType, removeType},

	{Kind: "ServiceAccount"}: {stageFoundation, removeConfiguration},
	{Kind: "ResourceQuota"}:  {stageFoundation, removeConfiguration},
	{Kind: "LimitRange"}:     {stageFoundation, removeConfiguration},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               {stageFoundation, removeConfiguration},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   {stageFoundation, removeConfiguration},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      {stageFoundation, removeConfiguration},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                {stageFoundation, removeConfiguration},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                               {stageFoundation, removeConfiguration},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         {stageFoundation, removeRights},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  {stageFoundation, removeRights},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                                {stageFoundation, removeRights},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                         {stageFoundation, removeRights},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        {stageFoundation, removeConfiguration},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: {stageFoundation, removeWebhook},
	{Kind: "ConfigMap"}:             {stageConfiguration, removeConfiguration},
	{Kind: "Secret"}:                {stageConfiguration, removeConfiguration},
	{Kind: "PersistentVolumeClaim"}: {stageConfiguration, removeConfiguration},

	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {stageLate, removeAPI},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {stageLate, removeWebhook},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {stageLate, removeWebhook},
}

func kindOf(key Key) kind {
	if k, listed := kinds[key.GroupKind()]; listed {
		return k
	}
	return rest
}

// ApplyStages returns a function that returns the stage of its wave in which an object is applied.
// The types are the types that the objects themselves bring, and the patterns of additional managed
// types.
func ApplyStages(types, additional []v1alpha1.TypeInfo) func(Key) int {
	managed := slices.Concat(types, additional)
	return func(key Key) int {
		if isInstance(managed, key.GroupKind()) {
			return stageInstance
		}
		return kindOf(key).apply
	}
}

func applyStageOf(u *unit) int {
	if u.instance {
		return stageInstance
	}
	return kindOf(u.key).apply
}

func (w *work) removalStageOf(u *unit, reason Reason) int {
	switch {
	case w.goesFirst(u, reason):
		return removeReference
	case u.instance || u.mayNeedOperator():
		return removeInstance
	}
	return kindOf(u.key).remove
}

// builtIn are the groups of the server's own types, but for those without a dot.
var builtIn = map[string]bool{
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"authentication.k8s.io": true, "authorization.k8s.io": true, "certificates.k8s.io": true, "coordination.k8s.io": true,
	"discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "internal.apiserver.k8s.io": true,
	"lifecycle.k8s.io": true, "networking.k8s.io": true, "node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true,
	"scheduling.k8s.io": true, "storage.k8s.io": true, "storagemigration.k8s.io": true,
}

// mayNeedOperator reports whether the object is of a type that is not built in, and has a finalizer, or may have one: the
// operator that removes the finalizer may be a workload of the same component.
func (u *unit) mayNeedOperator() bool {
	gk := u.key.GroupKind()
	_, placed := kinds[gk]
	return !placed && strings.Contains(gk.Group, ".") && !builtIn[gk.Group] && (!u.live.known() || len(u.live.Finalizers) > 0)
}

// isInstance reports whether an object is placed as an instance of a managed
// type. A kind that has a place of its own keeps it, even if a pattern covers it.
func isInstance(managed []v1alpha1.TypeInfo, gk schema.GroupKind) bool {
	_, placed := kinds[gk]
	return !placed && Covers(managed, gk)
}

// guardOf returns the condition under which the object may be deleted.
func guardOf(u *unit) Guard {
	switch kindOf(u.key).remove {
	case removeType, removeAPI:
		return GuardNoInstances
	case removeNamespace:
		if u.item.Origin == vocabulary.OriginNamespace {
			return GuardEmptyElseOrphan
		}
		return GuardEmpty
	default:
		return GuardNone
	}
}

// typesOf returns the types of managed instances: the types that the objects bring, and the
// additional patterns.
func typesOf(units []*unit, additional []v1alpha1.TypeInfo) []v1alpha1.TypeInfo {
	types := slices.Clone(additional)
	for _, u := range units {
		types = append(types, u.item.Defines...)
	}
	return types
}

// Covers reports whether one of the types, which may be patterns, is the type.
func Covers(types []v1alpha1.TypeInfo, gk schema.GroupKind) bool {
	return slices.ContainsFunc(types, func(t v1alpha1.TypeInfo) bool { return t.Matches(gk.Group, gk.Kind) })
}

// withGuard gives a deletion its guard, and the facts that the guard must know: which instances of
// a type are in the record. An object that is recorded as released, or is just now dropped from the
// record, is not ours, and an orphaned object is no longer recorded.
func (w *work) withGuard(s Step, u *unit) Step {
	s.Guard = guardOf(u)
	if s.Guard != GuardNoInstances {
		return s
	}
	for _, other := range w.units {
		if other.recorded && !other.dropped && other.item.Phase != vocabulary.PhaseReleased && u.definesTypeOf(other) {
			s.OwnInstances = append(s.OwnInstances, other.key)
		}
	}
	return s
}
