// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/status"
)

// Of judges an object as the server answered it, to a read or to a write. The
// object is neither changed nor kept. Desired is nil if the object is not
// wanted (any more). In rare cases the definition of a custom type is read.
func (o *Observer) Of(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Observation {
	observation := plan.Observation{
		Existence:       plan.Present,
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Marks:           o.marks(live, desired),
		Seen:            o.options.Hasher.Seen(live.Object),
		Finalizers:      live.GetFinalizers(),
		Scaled:          len(scaledPaths(live)) > 0,
		Created:         live.GetCreationTimestamp().Time,
		Status:          o.status(ctx, live, desired),
	}
	if deleting := live.GetDeletionTimestamp(); deleting != nil {
		observation.Deleting = deleting.Time
	}
	if desired != nil && desired.Manifest != nil {
		observation.Accepted = o.options.Hasher.Accepted(withoutScale(live, desired.Manifest), desired.Manifest.Object, desired.Policies.IgnoreFields)
	}
	return observation
}

// compared is Of, and says how the object came to differ from what is recorded.
func (o *Observer) compared(ctx context.Context, live *unstructured.Unstructured, request Request) plan.Observation {
	observation := o.Of(ctx, live, request.Desired)
	recorded, wanted := request.Recorded, request.Desired
	if recorded != nil && wanted != nil && recorded.Digest == wanted.Digest && recorded.Accepted != "" && recorded.Accepted != observation.Accepted {
		observation.Drift = DriftOf(live, wanted, o.options.FieldOwner)
	}
	return observation
}

// status judges the readiness.
func (o *Observer) status(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Status {
	// Whether the type declares conditions matters only to an object whose
	// status is empty; so it is assumed at first, and looked up if it matters.
	options := status.Options{DeclaresConditions: true}
	if desired != nil {
		hints := desired.Policies.Hints
		options.Hints = status.Hints{
			ObservedGeneration: hints.ObservedGeneration,
			ReadyCondition:     hints.ReadyCondition,
			Conditions:         hints.Conditions,
		}
		program, err := o.options.Compiler.Compile(o.readyWhen(desired))
		if err != nil {
			return plan.Status{Readiness: plan.NotReady, Message: Sentence("the ready-when expression does not compile: " + err.Error())}
		}
		options.ReadyWhen = program
	}
	judged := status.Analyze(live, options)
	if judged.Readiness == status.Unjudged {
		// If it cannot be found out, the object stays unjudged: the worst that
		// follows is a few seconds of waiting.
		if declares, err := o.types.DeclaresConditions(ctx, live.GroupVersionKind()); err == nil && !declares {
			judged = status.Status{Readiness: status.Ready}
		}
	}
	return plan.Status{Readiness: readiness[judged.Readiness], Message: judged.Message}
}

// readyWhen is the expression of an object: its own, or the one of its type.
func (o *Observer) readyWhen(desired *plan.Desired) string {
	if desired.Policies.ReadyWhen != "" {
		return desired.Policies.ReadyWhen
	}
	for _, rule := range o.options.ReadyWhen {
		if rule.Type.Matches(desired.Key.Group, desired.Key.Kind) {
			return rule.Expression
		}
	}
	return ""
}

var readiness = map[status.Readiness]plan.Readiness{
	status.NotReady: plan.NotReady,
	status.Ready:    plan.Ready,
	status.Failed:   plan.Failed,
	status.Unjudged: plan.Unjudged,
}
