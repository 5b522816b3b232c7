// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// lost looks for what somebody created after the guard had looked and before
// the deletion came in, and says so: it is going to be destroyed, and nobody else
// would tell. The server is asked what existed at the very moment of the deletion,
// whose resourceVersion is in its answer. It is no error if it does not know any
// more; then nothing is said.
func (e *Executor) lost(ctx context.Context, step plan.Step, after plan.Observation, before verdict) []plan.Note {
	if after.Existence != plan.Present || after.Deleting.IsZero() {
		return nil
	}
	switch {
	case step.Guard == plan.GuardNone:
		return nil
	case step.Key.GroupKind() == namespaceKind:
		content, err := e.content(ctx, step, after.ResourceVersion)
		if err != nil || len(content.names()) == 0 {
			return nil
		}
		log.FromContext(ctx).Info("Objects of others were lost with their namespace", "namespace", step.Key.Name, "objects", enumerate(content.names(), len(content.names())))
		return []plan.Note{{Key: step.Key, Warning: plan.WarnContentLost,
			Message: "created while the namespace was being deleted, and lost with it: " + content.lost()}}
	case step.Key.GroupKind() == definitionKind && before.counted != nil:
		late := &census{owner: step.Owner}
		if err := late.take(ctx, e.objects, *before.counted, after.ResourceVersion); err != nil || late.foreignTotal == 0 {
			return nil
		}
		return []plan.Note{{Key: step.Key, Warning: plan.WarnInstancesLost,
			Message: "created while the type was being deleted, and lost with it: " + late.lost()}}
	default:
		return nil
	}
}
