// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// verdict is the result of a guard. The zero value lets the deletion pass.
type verdict struct {
	// blocked is why the deletion must not happen.
	blocked string
	// obstacles are the types of the objects that block it.
	obstacles []report.AwaitedObject
	// orphan: the object is orphaned instead; why is the reason.
	orphan bool
	why    string
	// unread is the reason why it is not known whether a namespace is empty.
	unread string
	// counted is the type of the counted instances; nil if there is none.
	counted *cluster.Resource
}

func (v verdict) passes() bool { return v.blocked == "" && !v.orphan }

func (e *Executor) checkGuard(ctx context.Context, step plan.Step) (verdict, error) {
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
		return verdict{blocked: blocked, obstacles: found.types, orphan: blocked == "" && found.keptTotal > 0, counted: found.counted}, nil
	case plan.GuardEmpty, plan.GuardEmptyElseOrphan, plan.GuardKnownEmptyElseOrphan:
		content, err := e.readContents(ctx, step, "")
		if err != nil || content.String() == "" {
			return verdict{}, err
		}
		return namespaceVerdict(step, content), nil
	default:
		return verdict{}, fmt.Errorf("the guard %q is not known", step.Guard)
	}
}

// namespaceVerdict returns the verdict about a namespace that is not known to be empty. Objects
// that may not be read will not be readable later, either; every other obstacle is worth waiting
// for.
func namespaceVerdict(step plan.Step, content *namespaceContents) verdict {
	v := inUse(step, content.String())
	v.obstacles = content.blockingTypes()
	if content.blocking() > 0 {
		if v.orphan {
			v.why = "it is in use by others: " + v.why
		}
		return v
	}
	v.unread = content.describeUnread()
	if v.orphan && step.Guard != plan.GuardKnownEmptyElseOrphan && len(content.forbidden) == 0 {
		v.orphan, v.blocked = false, "whether objects live in it is not known: "+v.unread
	}
	return v
}

// inUse is the verdict about a namespace that must stay.
func inUse(step plan.Step, why string) verdict {
	if step.Guard.AllowsOrphan() {
		return verdict{orphan: true, why: why}
	}
	return verdict{blocked: why}
}

// isProtected reports whether a namespace must never be deleted.
func isProtected(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-")
}

// noteLost reports objects that another client created after the guard had read and before the
// deletion came in: they are going to be destroyed, and nothing else reports that. The server is
// asked for the objects that existed at the resourceVersion of the deletion, which is in its
// answer. If that version was compacted, nothing is reported.
func (e *Executor) noteLost(ctx context.Context, step plan.Step, after plan.Observation, before verdict) []plan.Note {
	if after.Existence != plan.Present || after.DeletionTimestamp.IsZero() {
		return nil
	}
	switch {
	case step.Guard == plan.GuardNone:
		return nil
	case step.Key.GroupKind() == namespaceKind:
		content, err := e.readContents(ctx, step, after.ResourceVersion)
		if err != nil || content.blocking() == 0 {
			return nil
		}
		return []plan.Note{{Key: step.Key, Reason: report.WarnForeignContentLost, Warning: true,
			Message: "created while the namespace was being deleted, and lost with it: " + fmt.Sprintf("%s (%s)", countText(content.blocking(), "object", content.more), kubectlTypes(content.blockingTypes()))}}
	case step.Key.GroupKind() == definitionKind && before.counted != nil:
		late := &instanceCount{owner: step.Owner}
		if err := late.addType(ctx, e.objects, *before.counted, after.ResourceVersion); err != nil || late.foreignTotal == 0 {
			return nil
		}
		return []plan.Note{{Key: step.Key, Reason: report.WarnForeignInstancesLost, Warning: true,
			Message: "created while the type was being deleted, and lost with it: " + countText(late.foreignTotal, "foreign instance", late.truncated)}}
	default:
		return nil
	}
}
