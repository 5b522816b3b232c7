// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/bench/operator"
)

const (
	fewest, most = 5, 30 // objects of a component
	// requeue is how often each component is reconciled without a change, so that at
	// rest there are passes that could send something.
	requeue = 15 * time.Second
)

func name(i int) string { return fmt.Sprintf("load-%d", i) }

// component is a new one of that number.
func (s *soak) component(i int) *operator.Load {
	return &operator.Load{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name(i)},
		Spec: operator.LoadSpec{
			RequeueSpec: component.RequeueSpec{RequeueInterval: &types.Duration{Duration: requeue}},
			Objects:     fewest + s.random.IntN(most-fewest+1), All: s.word(), One: s.word(),
		},
	}
}

func (s *soak) word() string { return fmt.Sprintf("%08x", s.random.Uint32()) }

// disturbance changes, damages, or deletes something, or puts something back. That the
// object is not there just now, or the server does not answer, is part of it.
func (s *soak) disturbance(ctx context.Context) error {
	i := s.random.IntN(s.Components)
	key := client.ObjectKey{Namespace: s.namespace, Name: name(i)}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", key.Name, s.random.IntN(fewest))}}
	var err error
	switch n := s.random.IntN(100); {
	case n < 15:
		err = s.edit(ctx, key, map[string]string{"one": quoted(s.word())})
	case n < 30:
		err = s.edit(ctx, key, map[string]string{"all": quoted(s.word())})
	case n < 40:
		err = s.edit(ctx, key, map[string]string{"note": quoted(s.word())})
	case n < 50:
		err = s.edit(ctx, key, map[string]string{"objects": fmt.Sprint(fewest + s.random.IntN(most-fewest+1))})
	case n < 70:
		err = s.merge(ctx, dependent, fmt.Sprintf(`{"data":{"all":%q}}`, s.word()))
	case n < 85:
		err = s.Delete(ctx, dependent)
	case n < 90:
		err = s.Delete(ctx, &operator.Load{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	default:
		err = s.Create(ctx, s.component(i)) // most are there
	}
	switch status := apierrors.APIStatus(nil); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		s.outcome.Disturbances++
	case errors.As(err, &status) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
		return fmt.Errorf("disturb %s: %w", key, err)
	}
	return nil
}

// edit changes fields of a component's spec, given as JSON.
func (s *soak) edit(ctx context.Context, key client.ObjectKey, fields map[string]string) error {
	load := &operator.Load{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	for field, value := range fields {
		if err := s.merge(ctx, load, fmt.Sprintf(`{"spec":{%q:%s}}`, field, value)); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) merge(ctx context.Context, object client.Object, patch string) error {
	return s.Patch(ctx, object, client.RawPatch(apitypes.MergePatchType, []byte(patch)), client.FieldOwner("somebody"))
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

// recovery changes a dependent, and returns how long it takes until that is undone.
func (s *soak) recovery(ctx context.Context) (time.Duration, error) {
	objects := &corev1.ConfigMapList{}
	if err := s.List(ctx, objects, client.InNamespace(s.namespace), client.Limit(1)); err != nil || len(objects.Items) == 0 {
		return 0, errors.Join(err, fmt.Errorf("look for a dependent: there are %d", len(objects.Items)))
	}
	object, begun, word := &objects.Items[0], time.Now(), s.word()
	if err := s.merge(ctx, object, fmt.Sprintf(`{"data":{"all":%q}}`, word)); err != nil {
		return 0, err
	}
	for time.Since(begun) < settling {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || err == nil && object.Data["all"] != word {
			return time.Since(begun), nil // repaired, or its component is gone
		}
		if err != nil {
			return 0, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("ConfigMap %s is not repaired %s after the outage", object.Name, settling)
}

// restore creates the components that were deleted, when they are gone.
func (s *soak) restore(ctx context.Context) error {
	deadline := time.Now().Add(settling)
	for i := range s.Components {
		for {
			live := &operator.Load{}
			err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name(i)}, live)
			if err == nil && live.DeletionTimestamp == nil {
				break
			}
			if apierrors.IsNotFound(err) {
				err = s.Create(ctx, s.component(i))
			}
			if err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("component %s is not deleted after %s", name(i), settling)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
