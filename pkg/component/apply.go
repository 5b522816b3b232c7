// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// CreateOrUpdate brings the dependent objects closer to what the component asks for.
//
// There are two kinds of passes. A full one finds out what that is: it loads
// references, runs hooks and renders. A light one follows when nothing but dependents
// changed; it goes by what the last full one has found out.
func (h *handler[T]) CreateOrUpdate(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	light := h.begins(client.ObjectKeyFromObject(obj))
	if err := h.meetOperator(ctx, obj, commit); err != nil {
		return result.Empty, err
	}
	if light {
		if known, ok := h.lately.of(obj, h.now()); ok {
			res, err := h.applyAgain(ctx, obj, commit, known)
			if !errors.Is(err, reconciler.ErrOutdated) {
				return res, err
			}
		}
	}
	before := h.lately.forget(client.ObjectKeyFromObject(obj))
	root := rootOf(obj) // a hook may change it, in memory
	wanted, id, err := h.prepareApply(ctx, obj)
	if err != nil {
		return result.Empty, err
	}
	t, err := h.enter(ctx, obj, id)
	if err != nil {
		return result.Empty, err
	}
	defer t.leave()
	ctx = h.basicContext(ctx, obj)
	if err := h.runHooks(ctx, postRead, obj); err != nil {
		return result.Empty, err
	}
	digests, err := h.digestsOf(ctx, obj)
	if err != nil {
		return result.Empty, err
	}
	if err := h.keepRevision(ctx, obj, digests); err != nil {
		return result.Empty, err
	}
	revision := obj.GetStatus().Revision
	changed := obj.GetStatus().beginProcessing(digests, h.now())
	if obj.GetStatus().Revision != revision {
		h.journal.of(client.ObjectKeyFromObject(obj)).began = true
	}
	if changed {
		// What was found out about the manifests before says nothing any more.
		h.activity.Reset(client.ObjectKeyFromObject(obj))
		h.causes.forget(client.ObjectKeyFromObject(obj))
	}
	ctx = fullContext(ctx, t, digests.component, obj.GetStatus())
	if err := h.runHooks(ctx, preReconcile, obj); err != nil {
		return result.Empty, err
	}
	allowEmpty, err := flagOf(obj, h.settings.name+"/"+v1alpha1.AnnotationAllowEmpty)
	if err != nil {
		return result.Empty, &invalidError{h.about(obj, err)}
	}
	objects, err := h.render(ctx, obj, wanted)
	if err != nil {
		return result.Empty, err
	}
	known := prepared{
		directives: wanted, id: id, digest: digests.component, allowEmpty: allowEmpty,
		root:  root,
		until: h.now().Add(intervalsOf(obj).requeue),
	}
	outcome, err := h.apply(ctx, obj, commit, t, known, objects)
	if known.wanted = outcome.Wanted.Pack(before.wanted); known.wanted != nil {
		known.size = known.wanted.Size()
		h.lately.keep(client.ObjectKeyFromObject(obj), known)
	}
	return h.concludeApply(ctx, obj, t, outcome, err, h.hooksAfter)
}

// applyAgain is a light pass.
func (h *handler[T]) applyAgain(ctx context.Context, obj T, commit lifecycle.Commit, known prepared) (result.Result, error) {
	t, err := h.enter(ctx, obj, known.id)
	if err != nil {
		return result.Empty, err
	}
	defer t.leave()
	ctx = fullContext(h.basicContext(ctx, obj), t, known.digest, obj.GetStatus())
	outcome, err := h.apply(ctx, obj, commit, t, known, nil)
	if errors.Is(err, reconciler.ErrOutdated) {
		return result.Empty, err
	}
	return h.concludeApply(ctx, obj, t, outcome, err, h.hooksAfterLight)
}

// apply lets the engine bring the dependent objects closer to what is wanted: those
// that were rendered, if they are not known from an earlier pass.
func (h *handler[T]) apply(ctx context.Context, obj T, commit lifecycle.Commit, t target, known prepared, rendered []client.Object) (reconciler.Outcome, error) {
	protected, err := h.protected(obj)
	if err != nil {
		return reconciler.Outcome{}, err
	}
	record, err := h.openRecord(ctx, obj, commit, t, known.policies, known.wanted != nil)
	if err != nil {
		return reconciler.Outcome{}, err
	}
	outcome, err := t.engine.Apply(ctx, reconciler.ApplyRequest{
		Owner:           h.owner(obj),
		Namespace:       known.namespace,
		Objects:         rendered,
		Wanted:          known.wanted,
		Inventory:       record.inventory(),
		ComponentDigest: known.digest,
		Policies:        known.policies,
		ManagedTypes:    known.managedTypes,
		Timeout:         intervalsOf(obj).timeout,
		AllowEmpty:      known.allowEmpty,
		Protected:       protected,
		Record:          record.save,
		Confirm:         h.confirm(obj),
	})
	return outcome, record.keep(ctx, outcome.Inventory, h.aboutTarget(obj, err))
}

// aboutTarget names the kubeconfig that leads to a target which does not say who it is.
// Other errors stay as they are.
func (h *handler[T]) aboutTarget(obj T, err error) error {
	if _, refused := errors.AsType[*reconciler.UnidentifiedTargetError](err); !refused {
		return err
	}
	own, ok := configurationOf[ClientConfiguration](obj)
	if !ok || own.GetKubeConfig() == nil {
		return h.about(obj, err)
	}
	name := "its kubeconfig"
	references, _ := h.finder.find(obj.GetSpec())
	for _, reference := range references {
		if secret, ok := reference.pointer.(*SecretKeyReference); ok && bytes.Equal(secret.Value(), own.GetKubeConfig()) {
			name = fmt.Sprintf("the kubeconfig in Secret %s (%s)", secret.Name, reference.path)
		}
	}
	return h.about(obj, fmt.Errorf("%s is of no use: %w; correct the credentials and the server in it", name, err))
}

// hooksAfter runs the hooks at the end of a full pass after which nothing is left to do.
func (h *handler[T]) hooksAfter(ctx context.Context, obj T) error {
	return h.runHooks(ctx, postReconcile, obj)
}

// hooksAfterLight runs them at the end of a light pass if it makes the component
// ready. They get to see what the spec refers to, as ever; but nothing was rendered
// from it, so what has changed meanwhile still has to wake the component.
func (h *handler[T]) hooksAfterLight(ctx context.Context, obj T) error {
	status := obj.GetStatus()
	ran := status.IsReady() && status.AppliedGeneration == obj.GetGeneration() && status.ProcessingSince == nil
	if ran || len(h.hooks[postReconcile]) == 0 {
		return nil
	}
	absent, _ := h.readReferences(ctx, obj)
	if err := absent.retry(); err != nil {
		return err
	}
	return h.runHooks(ctx, postReconcile, obj)
}

// prepareApply resolves what the component wants and refers to, and where.
func (h *handler[T]) prepareApply(ctx context.Context, obj T) (directives, identity, error) {
	wanted, wantedErr := directivesOf(obj, h.settings)
	references, _ := h.finder.find(obj.GetSpec())
	if err := errors.Join(wantedErr, referenceMistakes(obj, references)); err != nil {
		return directives{}, identity{}, &invalidError{h.about(obj, err)}
	}
	if err := h.loadReferences(ctx, obj).retry(); err != nil {
		return directives{}, identity{}, err
	}
	id, err := identityOf(obj, h.settings)
	if err != nil {
		return directives{}, identity{}, &invalidError{h.about(obj, err)}
	}
	return wanted, id, nil
}

// about names the component in the messages about itself.
func (h *handler[T]) about(obj T, err error) error {
	return fmt.Errorf("%s: %w", objectName(h.kind.Kind, obj), err)
}

// render is generate, told about.
func (h *handler[T]) render(ctx context.Context, obj T, wanted directives) (objects []client.Object, err error) {
	redact.From(ctx).Renew()
	var read *answers
	err = h.telemetry.part(ctx, metrics.PhaseRender, func(ctx context.Context) error {
		objects, read, err = h.generate(ctx, obj, wanted)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.probe(ctx, obj, wanted, objects, read)
	return h.hold(ctx, obj, objects, read), nil
}

// generate renders the dependent objects, and returns what was read for it. The
// generator gets a copy of the component: if it does not come back in time, it is left
// behind with it.
func (h *handler[T]) generate(ctx context.Context, obj T, wanted directives) ([]client.Object, *answers, error) {
	theirs, err := copyOf(obj)
	if err != nil {
		return nil, nil, err
	}
	ctx = manifests.WithComponent(ctx, theirs)
	read := &answers{}
	if target, err := manifests.ClientFromContext(ctx); err == nil {
		ctx = manifests.WithClient(ctx, read.client(target))
	}
	if local, err := manifests.LocalClientFromContext(ctx); err == nil {
		ctx = manifests.WithLocalClient(ctx, read.client(local))
	}
	var objects []client.Object
	rendered := make(chan []client.Object, 1)
	err = h.guests.run(ctx, client.ObjectKeyFromObject(obj), "generator", h.generateTimeout, func(ctx context.Context) error {
		result, err := manifests.Generate(ctx, patched(h.generator, theirs), wanted.namespace, wanted.name, theirs.GetSpec())
		rendered <- result
		return err
	})
	if err == nil {
		objects = <-rendered
		read.noteServed(ctx)
	}
	return objects, read, err
}

// concludeApply takes over what the engine reports, and says whether it is enough.
func (h *handler[T]) concludeApply(ctx context.Context, obj T, t target, outcome reconciler.Outcome, err error, after func(context.Context, T) error) (result.Result, error) {
	key, status, now := client.ObjectKeyFromObject(obj), obj.GetStatus(), h.now()
	if err == nil || outcome.Total > 0 {
		outcome.Notes = append(outcome.Notes, h.noteDrift(obj, outcome.Drifted, now)...)
	}
	h.tallies.add(key, outcome)
	h.lookouts.wait(key, t, outcome.Foreign)
	err = h.nameMissing(ctx, obj, outcome, err)
	if !outcome.Again.IsZero() {
		h.later(key, max(outcome.Again.Sub(now), minNet))
	}
	before := status.Progress
	status.noteManifests(outcome.ManifestDigest, now)
	if err == nil || outcome.Total > 0 {
		status.Progress = progress(outcome.Settled, outcome.Total)
	}
	if len(outcome.Steps) > 0 || status.Progress != before {
		h.activity.Reset(key)
	}
	switch {
	case err != nil && !stillMoving(outcome.Waiting):
		if next := nextOf(outcome.Waiting); !next.IsZero() {
			h.later(key, max(next.Sub(now), minNet))
		}
		return result.Empty, err
	case err != nil:
		return result.Empty, &unsettledError{err: err, net: h.net(key, outcome.Waiting)}
	case !outcome.Done():
		causes := h.causes.explain(ctx, key, outcome.Waiting, t.client)
		message := waitingMessage(outcome.Waiting, causes)
		return result.Empty, &unsettledError{message: message, failed: anyFailed(outcome.Waiting), net: h.net(key, outcome.Waiting)}
	}
	h.activity.Reset(key)
	h.causes.forget(key)
	if err := after(ctx, obj); err != nil {
		return result.Empty, err
	}
	h.journal.of(key).applied = status.AppliedGeneration
	status.noteApplied(obj.GetGeneration(), len(outcome.Steps) > 0, now)
	return result.Success, nil
}
