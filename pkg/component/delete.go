// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// delete removes the dependent objects, unless something blocks that.
func (h *handler[T]) delete(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	h.memory.takeRendered(client.ObjectKeyFromObject(obj))
	if err := h.meetOperator(ctx, obj, commit); err != nil {
		return result.Empty, err
	}
	_, abandonErr := abandonOf(obj, h.settings.name)
	managedTypes, typesErr := managedTypesOf(obj)
	if err := errors.Join(abandonErr, typesErr); err != nil && !isEmpty(obj) {
		return result.Empty, &verdict.InvalidError{Err: h.about(obj, err)}
	}
	absent := h.loadReferences(ctx, obj)
	if err := errors.Join(absent.Failed...); err != nil && !isEmpty(obj) {
		return result.Empty, h.blocked(obj, h.about(obj, err).Error()+h.abandonHint(obj))
	}
	t, err := h.prepareDelete(ctx, obj, errors.Join(absent.Missing...))
	if _, later := errors.AsType[*lifecycle.LaterError](err); later {
		return result.Empty, err
	}
	if err != nil {
		return result.Empty, h.blocked(obj, err.Error()+h.abandonHint(obj))
	}
	defer t.release()
	ctx = h.basicContext(ctx, obj)
	if err := h.runHooks(ctx, postRead, obj); err != nil {
		return result.Empty, err
	}
	digests, err := h.digestsOf(ctx, obj)
	if err != nil && !isEmpty(obj) {
		return result.Empty, err
	}
	ctx = fullContext(ctx, t, digests.component, obj.GetStatus())
	if t.engine != nil {
		empty := isEmpty(obj)
		err = h.deleteDependents(ctx, obj, t, commit, managedTypes, digests.component)
		if _, refused := errors.AsType[*reconciler.UnidentifiedTargetError](err); refused {
			if !empty {
				return result.Empty, h.blocked(obj, h.aboutTarget(obj, err).Error()+h.abandonHint(obj))
			}
			err = nil // nothing was ever written there
		}
		if !empty && verdict.IsForbidden(err) {
			err = h.forbiddenDeletion(ctx, obj, err)
		}
	} else {
		err = h.begin(ctx, obj)
	}
	if err != nil {
		return result.Empty, err
	}
	if err := h.runHooks(ctx, postDelete, obj); err != nil {
		return result.Empty, err
	}
	h.logTransition(ctx, obj, "deleted")
	return result.Success, nil
}

// forbiddenDeletion adds the way out to an error about missing rights. A component that
// lacked rights before its deletion makes no transition, so it gets an event.
func (h *handler[T]) forbiddenDeletion(ctx context.Context, obj T, err error) error {
	hint := h.abandonHint(obj)
	message := verdict.Shorten(verdict.OneLine(redact.From(ctx).Text(err.Error())), conditions.MaxMessage-len(hint)) + hint
	if _, reason, before := obj.GetStatus().GetState(); reason == v1alpha1.ReasonForbidden && !strings.Contains(before, hint) {
		events.Send(h.recorder, obj, 1, events.Event{
			Type: corev1.EventTypeWarning, Reason: reason, Action: string(deleting), Note: message,
		})
	}
	return verdict.Worded{Err: err, Message: message}
}

// prepareDelete returns the target; it has no engine if there never was one that
// anything was written to. So a component that names a target that does not work
// can go if nothing is left of it, and otherwise waits. The error says what is
// missing to find out about the target.
func (h *handler[T]) prepareDelete(ctx context.Context, obj T, missing error) (t connection, err error) {
	defer func() {
		if isEmpty(obj) {
			err = nil
		}
	}()
	if missing != nil {
		return connection{}, h.about(obj, missing)
	}
	id, err := identityOf(obj, h.settings)
	if err != nil {
		return connection{}, h.about(obj, err)
	}
	return h.enter(ctx, obj, id)
}

// isEmpty reports whether the component has no dependents that could be lost.
func isEmpty(c Component) bool { return c.GetStatus().Inventory.IsEmpty() }

// deleteDependents returns nil when nothing is left.
func (h *handler[T]) deleteDependents(ctx context.Context, obj T, t connection, commit lifecycle.Commit, managedTypes []reconciler.TypeInfo, componentDigest string) error {
	record, err := h.openRecord(ctx, obj, commit, t, policiesOf(obj, h.settings.policies), false)
	if err != nil {
		return err
	}
	protected, err := h.protected(obj)
	if err != nil {
		return err
	}
	request := reconciler.DeleteRequest{
		Owner: h.owner(obj), Inventory: record.inventory(), ManagedTypes: managedTypes, Timeout: intervalsOf(obj).Timeout, Protected: protected, Record: record.save,
	}
	var blockers []reconciler.Blocker
	if !isEmpty(obj) { // otherwise nothing is deleted that instances could need
		if blockers, err = t.engine.DeletionBlockers(ctx, request); err != nil {
			return err
		}
	}
	if len(blockers) > 0 {
		var foreign []reconciler.Foreign
		for _, blocker := range blockers {
			foreign = append(foreign, blocker.Foreign...)
		}
		h.lookouts.wait(client.ObjectKeyFromObject(obj), t, foreign)
		return h.blocked(obj, verdict.BlockersMessage(blockers))
	}
	if err := h.begin(ctx, obj); err != nil {
		return err
	}
	h.noteDrift(obj, nil, h.now()) // what goes need not be as its manifest says
	if err := h.addDeleteHooks(ctx, obj, &request, componentDigest); err != nil {
		return err
	}
	outcome, err := t.engine.Delete(ctx, request)
	err = record.keep(ctx, outcome.Inventory, err)
	key, status, known := client.ObjectKeyFromObject(obj), obj.GetStatus(), h.remembered(obj)
	known.untold.add(outcome)
	h.lookouts.wait(key, t, outcome.Foreign)
	err = h.nameMissing(ctx, obj, outcome, err)
	before := status.Progress
	if err == nil || outcome.Total > 0 {
		status.Progress = progress(outcome.Settled, outcome.Total)
	}
	if len(outcome.Steps) > 0 || status.Progress != before {
		known.idle.Reset()
	}
	switch {
	case err != nil:
		return err
	case !outcome.Done():
		return &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: verdict.WaitingMessage(outcome.Waiting, nil), Net: h.net(known, outcome.Waiting)}}
	}
	h.tell(ctx, obj, deleting)
	return record.close(ctx)
}

// begin comes right before the first deletion: a hook must not undo what the
// component still needs while something blocks its deletion.
func (h *handler[T]) begin(ctx context.Context, obj T) error {
	if err := h.checkFinalizers(obj); err != nil {
		return err
	}
	return h.runHooks(ctx, preDelete, obj)
}

// checkFinalizers lets foreign finalizers on the component block its deletion:
// whoever put them there still needs what depends on it.
func (h *handler[T]) checkFinalizers(obj T) error {
	foreign := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(finalizer string) bool {
		return finalizer == h.settings.finalizer || slices.Contains(serverFinalizers, finalizer)
	})
	if len(foreign) == 0 {
		return nil
	}
	return h.blocked(obj, fmt.Sprintf("%s: has the finalizer %s, which is not ours",
		objectName(h.kind.Kind, obj), strings.Join(foreign, ", ")))
}

func (h *handler[T]) blocked(obj T, message string) error {
	return &verdict.UnfinishedError{Facts: verdict.Facts{Blocked: message, Net: h.remembered(obj).idle.Idle()}}
}

// addDeleteHooks renders what runs before and after the deletion. That is done
// only if the record says that there is any, and the component does not skip it.
func (h *handler[T]) addDeleteHooks(ctx context.Context, obj T, request *reconciler.DeleteRequest, componentDigest string) error {
	if !request.Inventory.DeleteHooks {
		return nil
	}
	annotation := h.settings.name + "/" + v1alpha1.AnnotationSkipDeleteHooks
	skip, err := flagOf(obj, annotation)
	if err != nil {
		return &verdict.InvalidError{Err: h.about(obj, err)}
	}
	if request.SkipHooks = skip; skip {
		return nil
	}
	wanted, err := directivesOf(obj, h.settings)
	if err != nil {
		return &verdict.InvalidError{Err: h.about(obj, err)}
	}
	objects, err := h.render(ctx, obj, wanted)
	if err != nil {
		delay := h.remembered(obj).idle.Idle()
		return types.NewRetriableError(fmt.Errorf(
			`render what runs before and after the deletion: %w; to delete without that, set the annotation %s: "true"`, err, annotation), &delay)
	}
	request.Objects, request.Namespace, request.Policies = objects, wanted.namespace, wanted.policies
	request.ComponentDigest, request.Confirm = componentDigest, h.confirm(obj)
	return nil
}

// flagOf reads an annotation that is true or false; by default it is false.
func flagOf(c Component, annotation string) (bool, error) {
	switch value := c.GetAnnotations()[annotation]; value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf(`annotation %s: %q must be "true" or "false"`, annotation, value)
	}
}
