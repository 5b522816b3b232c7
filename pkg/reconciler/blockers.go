// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// blockersNamed is how many foreign instances a Blocker names.
	blockersNamed = 3
	// instancesPage is the size of the pages in which instances are listed.
	instancesPage = 500
)

// DeletionBlockers returns what blocks the deletion of everything in the
// inventory: the instances of the component's own types, and of the additional
// managed types without wildcards, that the inventory does not contain. They
// would be lost together with their type. Nothing is blocked if none is returned.
//
// The answer holds for the moment; the executor checks again right before it
// deletes a type.
func (r *Reconciler) DeletionBlockers(ctx context.Context, request DeleteRequest) ([]Blocker, error) {
	in, err := r.deleteInput(ctx, request)
	if err != nil {
		return nil, err
	}
	own := make(map[plan.Key]bool, len(in.Recorded))
	for _, item := range in.Recorded {
		own[plan.KeyOf(item)] = true
	}
	var blockers []Blocker
	var errs []error
	check := func(dependent string, group, kind string) {
		found, err := r.foreignInstances(ctx, schema.GroupKind{Group: group, Kind: kind}, own)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: look for foreign instances: %w", dependent, err))
		}
		if found != "" {
			blockers = append(blockers, Blocker{Dependent: dependent, Message: found})
		}
	}
	for _, item := range in.Recorded {
		if item.DeletePolicy == v1alpha1.DeletePolicyOrphan || item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnDelete {
			continue // the type stays, and so do its instances
		}
		if item.UID == "" || item.Phase == v1alpha1.PhaseReleased {
			continue // the type is not known to be ours, so it will not be deleted without another check
		}
		for _, defined := range item.Defines {
			if defined.Kind != "*" {
				check(plan.KeyOf(item).String(), defined.Group, defined.Kind)
			}
		}
	}
	for _, pattern := range request.ManagedTypes {
		if !strings.Contains(pattern.Group, "*") && pattern.Kind != "*" {
			check("type "+schema.GroupKind{Group: pattern.Group, Kind: pattern.Kind}.String(), pattern.Group, pattern.Kind)
		}
	}
	return blockers, errors.Join(errs...)
}

// foreignInstances names the first few instances of a type that are not ours,
// and says how many there are; empty means none.
func (r *Reconciler) foreignInstances(ctx context.Context, gk schema.GroupKind, own map[plan.Key]bool) (string, error) {
	resource, err := r.target.Types().ResolveAny(ctx, gk, "")
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var first []string
	count, next := 0, ""
	for {
		list, err := r.target.Objects().ListMetadata(ctx, resource, "", cluster.ListOptions{Limit: instancesPage, Continue: next})
		if err != nil {
			return "", err
		}
		for _, instance := range list.Items {
			key := plan.Key{Group: gk.Group, Kind: gk.Kind, Namespace: instance.Namespace, Name: instance.Name}
			if own[key] {
				continue
			}
			if count++; len(first) < blockersNamed {
				first = append(first, key.String())
			}
		}
		if next = list.Continue; next == "" {
			return describe(first, count), nil
		}
	}
}

func describe(first []string, count int) string {
	switch {
	case count == 0:
		return ""
	case count == 1:
		return "1 foreign instance: " + first[0]
	case count > len(first):
		return fmt.Sprintf("%d foreign instances: %s and %d more", count, strings.Join(first, ", "), count-len(first))
	default:
		return fmt.Sprintf("%d foreign instances: %s", count, strings.Join(first, ", "))
	}
}
