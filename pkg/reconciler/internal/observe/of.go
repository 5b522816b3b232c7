// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/status"
)

// Of judges an object as the server answered it, to a read or to a write. The
// object is neither changed nor kept. Desired is nil if the object is not
// wanted (any more). In rare cases the definition of a custom type is read.
func (o *Observer) Of(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Observation {
	observation := o.outline(live, desired)
	observation.Status = o.status(ctx, live, desired)
	if desired != nil && desired.Manifest != nil {
		observation.AppliedHash = o.options.Hasher.AppliedHash(withoutScale(live, desired.Manifest), desired.Manifest.Object, desired.Policies.IgnoreFields)
	}
	return observation
}

// outline is what an object itself tells, but for its status.
func (o *Observer) outline(live *unstructured.Unstructured, desired *plan.Desired) plan.Observation {
	observation := plan.Observation{
		Existence:          plan.Present,
		UID:                live.GetUID(),
		ResourceVersion:    live.GetResourceVersion(),
		Ownership:          o.marks(live, desired),
		ObservedHash:       o.options.Hasher.ObservedHash(live.Object),
		Finalizers:         live.GetFinalizers(),
		HasOwnerReferences: len(live.GetOwnerReferences()) > 0,
		Scaled:             scalingOf(live),
		CreationTimestamp:  live.GetCreationTimestamp().Time,
		Finish:             endingOf(live),
	}
	if deleting := live.GetDeletionTimestamp(); deleting != nil {
		observation.DeletionTimestamp = deleting.Time
	}
	return observation
}

// endingOf is how far a Job has come that is removed after its end. Its readiness does not
// tell: an expression may say when it counts as ready.
func endingOf(live *unstructured.Unstructured) plan.Finish {
	if gvk := live.GroupVersionKind(); gvk.Group != "batch" || gvk.Kind != "Job" {
		return plan.FinishUnknown
	}
	if ttl, set, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished"); !set || ttl == nil {
		return plan.FinishUnknown
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, element := range list {
		condition, _ := element.(map[string]any)
		switch {
		case condition["status"] != "True":
		case condition["type"] == "Complete":
			return plan.FinishComplete
		case condition["type"] == "Failed":
			return plan.FinishFailed
		}
	}
	return plan.Unfinished
}

// compared is Of, and says how the object came to differ from what is recorded. If it is
// not known of which manifest the object was made, it says whether it differs from the wanted one.
func (o *Observer) compared(ctx context.Context, live *unstructured.Unstructured, request Request) plan.Observation {
	observation := o.Of(ctx, live, request.Desired)
	recorded, wanted := request.Recorded, request.Desired
	switch {
	case recorded == nil || wanted == nil:
	case plan.IsRekeyed(*recorded):
		observation.Differs = len(DriftOf(live, wanted, "").Fields) > 0 // by any manager
	case recorded.Digest == wanted.Digest && recorded.Accepted != "" && recorded.Accepted != observation.AppliedHash:
		observation.Drift = DriftOf(live, wanted, o.options.FieldOwner)
	}
	return observation
}

// status judges the readiness.
func (o *Observer) status(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Status {
	var hints policy.StatusHints
	var expression string
	if desired != nil {
		hints = desired.Policies.Hints
		expression = o.readyWhen(desired.Policies.ReadyWhen, desired.Key.Group, desired.Key.Kind)
	}
	judged, isUnjudged := o.analyze(live, hints, expression)
	if isUnjudged && !o.declaresConditions(ctx, live.GroupVersionKind()) {
		return plan.Status{Readiness: plan.Ready}
	}
	return judged
}

// analyze judges the readiness from the object itself. Whether the type declares
// conditions matters only to an object whose status is empty; so it is assumed,
// and has to be looked up if it matters.
func (o *Observer) analyze(live *unstructured.Unstructured, hints policy.StatusHints, expression string) (judged plan.Status, isUnjudged bool) {
	program, err := o.options.Compiler.Compile(expression)
	if err != nil {
		return plan.Status{Readiness: plan.NotReady, Message: Sentence("the ready-when expression does not compile: " + err.Error())}, false
	}
	found := status.Analyze(live, status.Options{
		DeclaresConditions: true,
		Hints: status.Hints{
			ObservedGeneration: hints.ObservedGeneration,
			ReadyCondition:     hints.ReadyCondition,
			Conditions:         hints.Conditions,
		},
		ReadyWhen: program,
	})
	return plan.Status{Readiness: readiness[found.Readiness], Message: found.Message}, found.Readiness == status.ReadinessUnknown
}

// declaresConditions tells whether somebody will presumably write conditions. If it
// cannot be found out, the object stays unjudged: the worst that follows is a few
// seconds of waiting.
func (o *Observer) declaresConditions(ctx context.Context, gvk schema.GroupVersionKind) bool {
	declares, err := o.types.DeclaresConditions(ctx, gvk)
	return err != nil || declares
}

// readyWhen is the expression for an object: its own, or the one of its type.
func (o *Observer) readyWhen(own, group, kind string) string {
	if own != "" {
		return own
	}
	for _, rule := range o.options.ReadyWhen {
		if rule.Type.Matches(group, kind) {
			return rule.Expression
		}
	}
	return ""
}

var readiness = map[status.Readiness]plan.Readiness{
	status.NotReady:         plan.NotReady,
	status.Ready:            plan.Ready,
	status.Failed:           plan.Failed,
	status.ReadinessUnknown: plan.ReadinessUnknown,
}
