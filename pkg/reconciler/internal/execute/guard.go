// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// verdict is what a guard found. The zero value lets the deletion pass.
type verdict struct {
	// blocked is why the deletion must not happen.
	blocked string
	// obstacles are the types whose objects block it.
	obstacles []plan.BlockingType
	// release: the object is left behind without our marks instead; why is the reason.
	release bool
	why     string
	// unread is what keeps it from being known whether a namespace is empty.
	unread string
	// counted is the type whose instances were counted; nil if there is none.
	counted *cluster.Resource
}

func (v verdict) passes() bool { return v.blocked == "" && !v.release }

func (e *Executor) guard(ctx context.Context, step plan.Step) (verdict, error) {
	if step.Key.Group == "" && step.Key.Kind == "Namespace" && isProtected(step.Key.Name) {
		return inUse(step, "it is never deleted"), nil
	}
	switch step.Guard {
	case plan.GuardNone:
		return verdict{}, nil
	case plan.GuardNoInstances, plan.GuardNoInstancesElseOrphan:
		var kept []types.UID
		if step.Guard.AllowsOrphan() {
			kept = step.ItemAfter.Kept
		}
		found, err := e.instances(ctx, step.Owner, step.Key, func(key plan.Key, _ types.UID) bool { return slices.Contains(step.OwnInstances, key) }, kept)
		if err != nil {
			return verdict{}, err
		}
		blocked := found.String()
		return verdict{blocked: blocked, obstacles: found.types, release: blocked == "" && found.keptTotal > 0, counted: found.counted}, nil
	case plan.GuardEmpty, plan.GuardEmptyElseOrphan, plan.GuardKnownEmptyElseOrphan:
		content, err := e.content(ctx, step, "")
		if err != nil || content.String() == "" {
			return verdict{}, err
		}
		return judge(step, content), nil
	default:
		return verdict{}, fmt.Errorf("the guard %q is not known", step.Guard)
	}
}

// judge is the verdict about a namespace that is not known to be empty. What may not be
// read will not be readable later, either; everything else is worth waiting for.
func judge(step plan.Step, content *inhabitants) verdict {
	v := inUse(step, content.String())
	v.obstacles = content.obstacles()
	if len(content.names()) > 0 {
		if v.release {
			v.why = "it is in use by others: " + v.why
		}
		return v
	}
	v.unread = content.hidden()
	if v.release && step.Guard != plan.GuardKnownEmptyElseOrphan && len(content.forbidden) == 0 {
		v.release, v.blocked = false, "whether objects live in it is not known: "+v.unread
	}
	return v
}

// inUse is the verdict about a namespace that must stay.
func inUse(step plan.Step, why string) verdict {
	if step.Guard.AllowsOrphan() {
		return verdict{release: true, why: why}
	}
	return verdict{blocked: why}
}

// isProtected tells whether a namespace must never be deleted.
func isProtected(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-")
}

// lost looks for what somebody created after the guard had looked and before
// the deletion came in, and says so: it is going to be destroyed, and nobody else
// would tell. The server is asked what existed at the very moment of the deletion,
// whose resourceVersion is in its answer. It is no error if it does not know any
// more; then nothing is said.
func (e *Executor) lost(ctx context.Context, step plan.Step, after plan.Observation, before verdict) []plan.Note {
	if after.Existence != plan.Present || after.DeletionTimestamp.IsZero() {
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
		return []plan.Note{{Key: step.Key, Warning: plan.WarnForeignContentLost,
			Message: "created while the namespace was being deleted, and lost with it: " + content.lost()}}
	case step.Key.GroupKind() == definitionKind && before.counted != nil:
		late := &census{owner: step.Owner}
		if err := late.take(ctx, e.objects, *before.counted, after.ResourceVersion); err != nil || late.foreignTotal == 0 {
			return nil
		}
		return []plan.Note{{Key: step.Key, Warning: plan.WarnForeignInstancesLost,
			Message: "created while the type was being deleted, and lost with it: " + late.lost()}}
	default:
		return nil
	}
}
