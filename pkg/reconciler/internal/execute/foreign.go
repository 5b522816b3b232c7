// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// ForeignInstancesOf returns a sentence about the instances, other than our own,
// of the types that a CustomResourceDefinition or an APIService brings, and these
// types; empty means that there are none. It names what the owner may know of.
func (e *Executor) ForeignInstancesOf(ctx context.Context, owner plan.Owner, key plan.Key, owns Owns) (string, []plan.Obstacle, error) {
	found, err := e.instances(ctx, owner, key, owns, nil)
	if err != nil {
		return "", nil, err
	}
	return found.obstacles(), found.types, nil
}

// ForeignInstances returns a sentence about the instances, other than our own,
// of the types that match a pattern and are served at this moment, and these types;
// empty means that there are none. Types whose objects cannot be listed and deleted, such as
// metrics, hold nothing that could be lost. A group that matches and whose types
// or objects the server cannot tell is named as well: what is not known is not absent.
func (e *Executor) ForeignInstances(ctx context.Context, owner plan.Owner, pattern v1alpha1.TypeInfo, owns Owns) (string, []plan.Obstacle, error) {
	matching, unknown, err := e.types.Matching(ctx, pattern)
	if err != nil {
		return "", nil, err
	}
	found := &census{owns: owns, owner: owner}
	for _, gv := range unknown {
		found.unknown = append(found.unknown, fmt.Sprintf("the server cannot tell the types of %s at the moment", gv))
	}
	for _, resource := range matching {
		if !resource.Can("list") || !resource.Can("delete") {
			continue
		}
		if err := found.take(ctx, e.objects, resource, ""); err != nil {
			sentence, err := e.uncounted(ctx, resource, err)
			if err != nil {
				return "", nil, err
			}
			if sentence != "" {
				found.unknown = append(found.unknown, sentence)
			}
		}
	}
	return found.obstacles(), found.types, nil
}

// uncounted judges a type whose instances could not be listed.
func (e *Executor) uncounted(ctx context.Context, resource cluster.Resource, err error) (sentence string, _ error) {
	what := resource.Kind + " of " + resource.GVR.GroupVersion().String()
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	switch {
	case unserved:
		_, err := e.types.Resolve(ctx, resource.GVK())
		if _, gone := errors.AsType[*cluster.NotServedError](err); gone {
			return "", nil // the type was just removed
		}
		return "instances of " + what + " cannot be listed", nil
	case apierrors.IsMethodNotSupported(err):
		return "", nil // they are computed, not stored
	case apierrors.IsForbidden(err):
		return "we are not allowed to list instances of " + what, nil
	case apierrors.IsServiceUnavailable(err):
		return "the server of " + what + " does not answer", nil
	default:
		return "", err
	}
}
