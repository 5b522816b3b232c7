// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
)

// wrongError lists what is not as it should be.
type wrongError struct{ things []string }

// Error names the first of them.
func (e *wrongError) Error() string {
	if len(e.things) == 0 {
		return "nothing is wrong"
	}
	return fmt.Sprintf("%d things are not as they should be; the first: %s", len(e.things), e.things[0])
}

// wrong compares the components with what there is.
func (s *soak) wrong(ctx context.Context) ([]string, error) {
	loads, objects := &operator.LoadList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{loads, objects} {
		if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, err
		}
	}
	live := map[string]corev1.ConfigMap{}
	for _, object := range objects.Items {
		live[object.Name] = object
	}
	var wrong []string
	for i := range loads.Items {
		load := &loads.Items[i]
		if load.DeletionTimestamp != nil {
			wrong = append(wrong, fmt.Sprintf("component %s is being deleted", load.Name))
			continue
		}
		if state, reason, message := load.Status.GetState(); !load.Status.IsReady() || load.Status.ObservedGeneration != load.Generation {
			wrong = append(wrong, fmt.Sprintf("component %s, generation %d, observed %d: %s (%s): %s", load.Name, load.Generation, load.Status.ObservedGeneration, state, reason, message))
		}
		wrong = append(wrong, dependentsOf(load, live)...)
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		wrong = append(wrong, fmt.Sprintf("ConfigMap %s belongs to no component", name))
	}
	return wrong, nil
}

// dependentsOf compares those of a component, and takes them out of the live ones.
func dependentsOf(load *operator.Load, live map[string]corev1.ConfigMap) (wrong []string) {
	objects := load.Objects()
	for i := range objects.N {
		name := objects.Name(i)
		object, there := live[name]
		delete(live, name)
		switch {
		case !there:
			wrong = append(wrong, fmt.Sprintf("ConfigMap %s is missing", name))
		case object.Data["all"] != objects.All || i == 0 && object.Data["one"] != objects.One:
			wrong = append(wrong, fmt.Sprintf("ConfigMap %s holds %v, not what component %s says", name, object.Data, load.Name))
		}
	}
	return wrong
}

// audit judges every write of the operator.
func (s *soak) audit(ctx context.Context) error {
	events, err := s.env.AuditEvents(ctx)
	if err != nil {
		return err
	}
	violations, judged := audit.Violations(events, audit.Options{
		Name:      operator.Name,
		Component: schema.GroupResource{Group: operator.GroupVersion.Group, Resource: "loads"},
		User:      measure.User(report.Corbel),
	})
	s.outcome.Judged = judged
	for _, violation := range violations {
		s.outcome.Violations = append(s.outcome.Violations, violation.String())
	}
	return nil
}
