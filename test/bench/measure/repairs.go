// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/report"
)

// repairs changes and deletes dependents, one at a time, and waits until they are as
// they should be. When one is not repaired in time, the others would not be either.
func (l *life) repairs(ctx context.Context) error {
	for _, damage := range []struct {
		scenario report.Scenario
		do       func(context.Context, *corev1.ConfigMap) error
	}{
		{report.Drift, l.alter},
		{report.Deletion, func(ctx context.Context, object *corev1.ConfigMap) error { return l.Delete(ctx, object) }},
	} {
		for i := range l.Repairs {
			repaired, err := l.repair(ctx, damage.scenario, i, damage.do)
			if err != nil {
				return fmt.Errorf("%s: %w", damage.scenario, err)
			}
			if !repaired {
				break
			}
		}
	}
	return nil
}

func (l *life) repair(ctx context.Context, scenario report.Scenario, i int, damage func(context.Context, *corev1.ConfigMap) error) (bool, error) {
	object := &corev1.ConfigMap{}
	// Objects all over the component, another one each time.
	name := l.load.Objects().Name((i*l.Objects/l.Repairs + 1) % l.Objects)
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, object); err != nil {
		return false, err
	}
	before, want := object.DeepCopy(), l.load.Spec.All
	damaged := false
	whole := func(event watch.Event) bool {
		live, ok := event.Object.(*corev1.ConfigMap)
		if !ok || live.ResourceVersion == before.ResourceVersion {
			return false
		}
		good := event.Type != watch.Deleted && live.Data["all"] == want
		damaged = damaged || !good
		return damaged && good
	}
	took, err := l.seen(ctx, l.Patience, &corev1.ConfigMapList{}, whole,
		func() error { return damage(ctx, object) }, client.MatchingFields{"metadata.name": name})
	missed := errors.Is(err, errUnseen)
	if err != nil && !missed {
		return false, err
	}
	return !missed, l.measureIdle(ctx, scenario, took, missed, 0)
}

// alter changes a value, as a user with kubectl would.
func (l *life) alter(ctx context.Context, object *corev1.ConfigMap) error {
	return l.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"all":"drifted"}}`)), client.FieldOwner("kubectl"))
}
