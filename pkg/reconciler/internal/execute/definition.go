// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/definition"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// breakingError means that a manifest changes a definition that exists so that objects or clients of
// its type break. Nothing was written.
type breakingError string

func (e breakingError) Error() string { return string(e) }

const maxChanges = 3

// checkDefinition reads the definition that a step changes in place, and returns an error if the
// change breaks something and is not allowed. It reads the definition only if the step writes it,
// and returns it, or nil.
func (e *Executor) checkDefinition(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	policies := step.Desired.Policies
	switch {
	case step.Key.GroupKind() != definitionKind, policies.AllowBreakingChanges, step.Verb == plan.VerbCreate, step.Verb == plan.VerbMark:
		return nil, nil
	case step.Reason == plan.ReasonReapply:
		return nil, nil // neither the manifest nor the live definition has changed
	}
	live, err := e.readFirst(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	changes := definition.Breaking(live.Object, step.Desired.Manifest.Object)
	if policies.Update == v1alpha1.UpdatePolicyRecreateOnImmutable {
		// The server refuses these, and then the definition is recreated, if there are no objects of its type.
		changes = slices.DeleteFunc(changes, func(c definition.Change) bool { return c.Rule.Immutable() })
	}
	if len(changes) == 0 {
		return live, nil
	}
	var named []string
	for _, change := range changes[:min(len(changes), maxChanges)] {
		named = append(named, change.String())
	}
	more := ""
	if len(changes) > maxChanges {
		more = fmt.Sprintf(" and %d more", len(changes)-maxChanges)
	}
	return nil, breakingError("it is not changed, because objects or clients of its type would break, and its manifest does not have the annotation " +
		e.options.Name + "/" + v1alpha1.AnnotationAllowBreakingChanges + ": \"true\": " + strings.Join(named, "; ") + more)
}
