// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// verdict is what a guard found. The zero value lets the deletion pass.
type verdict struct {
	// blocked is why the deletion must not happen.
	blocked string
	// obstacles are the types whose objects block it.
	obstacles []plan.Obstacle
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
	case plan.GuardNoInstances, plan.GuardNoInstancesOrRelease:
		var kept []types.UID
		if step.Guard.Releases() {
			kept = step.Then.Kept
		}
		found, err := e.instances(ctx, step.Owner, step.Key, func(key plan.Key, _ types.UID) bool { return slices.Contains(step.Own, key) }, kept)
		if err != nil {
			return verdict{}, err
		}
		blocked := found.String()
		return verdict{blocked: blocked, obstacles: found.types, release: blocked == "" && found.keptTotal > 0, counted: found.counted}, nil
	case plan.GuardEmpty, plan.GuardEmptyOrRelease, plan.GuardKnownEmptyOrRelease:
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
	if v.release && step.Guard != plan.GuardKnownEmptyOrRelease && len(content.forbidden) == 0 {
		v.release, v.blocked = false, "whether objects live in it is not known: "+v.unread
	}
	return v
}

// inUse is the verdict about a namespace that must stay.
func inUse(step plan.Step, why string) verdict {
	if step.Guard.Releases() {
		return verdict{release: true, why: why}
	}
	return verdict{blocked: why}
}

// isProtected tells whether a namespace must never be deleted.
func isProtected(name string) bool {
	return name == "default" || strings.HasPrefix(name, "kube-")
}
