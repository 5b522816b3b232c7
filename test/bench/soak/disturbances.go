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

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/bench/operator"
)

const (
	fewest, most = 5, 30 // objects of a component
	// requeue is how often each component is reconciled without a change, so that at
	// rest there are reconciles that could send something.
	requeue = 15 * time.Second
)

// name is that of the component of that number.
func (s *soak) name(i int) string { return fmt.Sprintf("load-%d", i) }

// key is where the component of that number is: some are in namespaces that are deleted.
func (s *soak) key(i int) client.ObjectKey {
	if s.Faults && i%10 == 9 {
		return client.ObjectKey{Namespace: s.deletedNamespace(i / 10 % deletedNamespaces), Name: s.name(i)}
	}
	return client.ObjectKey{Namespace: s.namespace, Name: s.name(i)}
}

// component is a new one of that number.
func (s *soak) component(i int) *operator.Load {
	return &operator.Load{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key(i).Namespace, Name: s.key(i).Name},
		Spec: operator.LoadSpec{
			RequeueSpec: component.RequeueSpec{RequeueInterval: &types.Duration{Duration: s.fleet.requeue()}},
			Objects:     s.objects(), All: s.word(), One: s.word(), Away: s.isAway(i), Job: s.Faults && !s.Fleet && i%8 == 3, Versioned: s.Fleet,
		},
	}
}

// objects is how many a component is to have.
func (s *soak) objects() int {
	if s.Fleet {
		return fewest
	}
	return fewest + s.random.IntN(most-fewest+1)
}

// isAway reports whether the component of that number has objects in a namespace of its own.
func (s *soak) isAway(i int) bool { return s.Faults && !s.Fleet && i%4 == 1 }

func (s *soak) word() string { return fmt.Sprintf("%08x", s.random.Uint32()) }

// patience is how long a disturbance may take; the API server may not answer.
const patience = 15 * time.Second

// disturbance changes, damages, or deletes something, or puts something back. That the
// object is not there just now, or the server does not answer, is part of it.
func (s *soak) disturbance(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.disturbOne(bounded)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		s.outcome.Disturbances++
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err):
		return fmt.Errorf("disturb: %w", err) // the mistake is ours
	}
	return nil
}

func (s *soak) disturbOne(ctx context.Context) error {
	i, n, k := s.random.IntN(s.Components), s.random.IntN(100), s.random.IntN(fewest)
	load := &operator.Load{ObjectMeta: metav1.ObjectMeta{Namespace: s.key(i).Namespace, Name: s.key(i).Name}}
	load.Spec.Away = s.isAway(i)
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: load.NamespaceOf(k), Name: fmt.Sprintf("%s-%d", load.Name, k)}}
	away := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operator.Away(load.Namespace, load.Name)}}
	switch {
	case n < 12:
		return s.edit(ctx, load, map[string]string{"one": quoted(s.word())})
	case n < 24:
		return s.edit(ctx, load, map[string]string{"all": quoted(s.word())})
	case n < 32:
		return s.edit(ctx, load, map[string]string{"note": quoted(s.word())})
	case n < 42:
		return s.edit(ctx, load, map[string]string{"objects": fmt.Sprint(s.objects())})
	case n < 56:
		return s.merge(ctx, dependent, fmt.Sprintf(`{"data":{"all":%q}}`, s.word()))
	case n < 68:
		return s.Delete(ctx, dependent)
	case n < 78 && s.Faults:
		return s.strip(ctx, load, dependent)
	case n < 80 && s.Faults && load.Spec.Away:
		return s.strip(ctx, load, away)
	case n < 82 && s.Faults && load.Spec.Away:
		return s.Delete(ctx, away)
	case n < 83 && s.Faults:
		return s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.deletedNamespace(i % deletedNamespaces)}})
	case n < 89:
		return s.Delete(ctx, load)
	default:
		if s.Faults {
			if err := s.createDeletedNamespaces(ctx); err != nil {
				return err
			}
		}
		s.fleet.touch(s.name(i))
		return s.Create(ctx, s.component(i)) // most are there
	}
}

// edit changes fields of a component's spec, given as JSON.
func (s *soak) edit(ctx context.Context, load *operator.Load, fields map[string]string) error {
	s.fleet.touch(load.Name)
	for field, value := range fields {
		if err := s.merge(ctx, load, fmt.Sprintf(`{"spec":{%q:%s}}`, field, value)); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) merge(ctx context.Context, object client.Object, patch string) error {
	return s.Patch(ctx, object, client.RawPatch(apitypes.MergePatchType, []byte(patch)), client.FieldOwner("another-client"))
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

// recovery changes a dependent, and returns how long it takes until that is undone.
func (s *soak) recovery(ctx context.Context) (time.Duration, error) {
	objects := &corev1.ConfigMapList{}
	if err := s.List(ctx, objects, client.InNamespace(s.namespace), client.HasLabels{operator.Name + "/" + vocabulary.LabelOwnerID}, client.Limit(1)); err != nil || len(objects.Items) == 0 {
		return 0, errors.Join(err, fmt.Errorf("look for a dependent: there are %d", len(objects.Items)))
	}
	object, started, word := &objects.Items[0], time.Now(), s.word()
	if err := s.merge(ctx, object, fmt.Sprintf(`{"data":{"all":%q}}`, word)); err != nil {
		return 0, err
	}
	for time.Since(started) < settling {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || err == nil && object.Data["all"] != word {
			return time.Since(started), nil // repaired, or its component is gone
		}
		if err != nil {
			return 0, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("ConfigMap %s is not repaired %s after the outage", object.Name, settling)
}

// restore creates the components, and their namespaces, that were deleted, when they are gone.
func (s *soak) restore(ctx context.Context) error {
	deadline := time.Now().Add(settling)
	for i := range s.Components {
		for {
			live := &operator.Load{}
			err := s.Get(ctx, s.key(i), live)
			if err == nil && live.DeletionTimestamp == nil {
				break
			}
			if apierrors.IsNotFound(err) {
				if err = s.Create(ctx, s.component(i)); err == nil {
					break
				}
			}
			if s.Faults && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
				err = s.createDeletedNamespaces(ctx) // the namespace is gone, or is being deleted
			}
			if err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("component %s, deletion %v, finalizers %q, conditions %v, is not deleted after %s: %w", s.key(i), live.DeletionTimestamp, live.Finalizers, live.Status.Conditions, settling, err)
			}
			if !sleep(ctx, 50*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return nil
}
