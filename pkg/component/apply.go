// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// createOrUpdate brings the dependent objects closer to what the component asks for.
//
// There are two kinds of passes. A full one finds out what that is: it loads
// references, runs hooks and renders. A light one follows when nothing but dependents
// changed; it goes by what the last full one has found out.
func (h *handler[T]) createOrUpdate(ctx context.Context, obj T, commit lifecycle.Commit) (result.Result, error) {
	light := h.begins(client.ObjectKeyFromObject(obj))
	if err := h.meetOperator(ctx, obj, commit); err != nil {
		return result.Empty, err
	}
	if light {
		if known, ok := h.memory.renderedFor(obj, h.now()); ok {
			res, err := h.applyAgain(ctx, obj, commit, known)
			if !errors.Is(err, reconciler.ErrOutdated) {
				return res, err
			}
		}
	}
	before := h.memory.takeRendered(client.ObjectKeyFromObject(obj))
	root := rootOf(obj) // a hook may change it, in memory
	wanted, id, err := h.prepareApply(ctx, obj)
	if err != nil {
		return result.Empty, err
	}
	t, err := h.enter(ctx, obj, id)
	if err != nil {
		return result.Empty, err
	}
	defer t.release()
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
	dropped := revision == 0 && obj.GetStatus().AppliedGeneration != 0
	changed := obj.GetStatus().beginProcessing(obj.GetGeneration(), digests, h.now())
	if obj.GetStatus().Revision != revision {
		h.remembered(obj).unlogged.began = true
	}
	if _, reason, _ := obj.GetStatus().GetState(); dropped || reason == v1alpha1.ReasonCRDOutdated {
		// Nothing is written again before the definition keeps what was counted.
		if err := commit(ctx); err != nil {
			return result.Empty, err
		}
	}
	if changed {
		// What was found out about the manifests before says nothing any more.
		h.remembered(obj).idle.Reset()
		h.remembered(obj).causes = nil
	}
	ctx = fullContext(ctx, t, digests.component, obj.GetStatus())
	if err := h.runHooks(ctx, preReconcile, obj); err != nil {
		return result.Empty, err
	}
	allowEmpty, err := flagOf(obj, h.settings.name+"/"+v1alpha1.AnnotationAllowEmpty)
	if err != nil {
		return result.Empty, &verdict.InvalidError{Err: h.about(obj, err)}
	}
	objects, err := h.render(ctx, obj, wanted)
	if err != nil {
		return result.Empty, err
	}
	known := prepared{
		directives: wanted, id: id, digest: digests.component, allowEmpty: allowEmpty,
		root:  root,
		until: h.now().Add(intervalsOf(obj).Requeue),
	}
	outcome, err := h.apply(ctx, obj, commit, t, known, objects)
	if known.wanted = outcome.Desired.Pack(before.wanted); known.wanted != nil {
		known.size = known.wanted.Size()
		h.memory.keepRendered(client.ObjectKeyFromObject(obj), known)
	}
	return h.concludeApply(ctx, obj, t, outcome, err, h.hooksAfter)
}

// applyAgain is a light pass.
func (h *handler[T]) applyAgain(ctx context.Context, obj T, commit lifecycle.Commit, known prepared) (result.Result, error) {
	t, err := h.enter(ctx, obj, known.id)
	if err != nil {
		return result.Empty, err
	}
	defer t.release()
	ctx = fullContext(h.basicContext(ctx, obj), t, known.digest, obj.GetStatus())
	outcome, err := h.apply(ctx, obj, commit, t, known, nil)
	if errors.Is(err, reconciler.ErrOutdated) {
		return result.Empty, err
	}
	return h.concludeApply(ctx, obj, t, outcome, err, h.hooksAfterLight)
}

// apply lets the engine bring the dependent objects closer to what is wanted: those
// that were rendered, if they are not known from an earlier pass.
func (h *handler[T]) apply(ctx context.Context, obj T, commit lifecycle.Commit, t connection, known prepared, rendered []client.Object) (reconciler.Outcome, error) {
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
		Desired:         known.wanted,
		Inventory:       record.inventory(),
		ComponentDigest: known.digest,
		Policies:        known.policies,
		ManagedTypes:    known.managedTypes,
		Timeout:         intervalsOf(obj).Timeout,
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
	found, _ := h.finder.Find(obj.GetSpec())
	for _, reference := range found {
		if secret, ok := reference.Pointer.(*SecretKeyReference); ok && bytes.Equal(secret.Value(), own.GetKubeConfig()) {
			name = fmt.Sprintf("the kubeconfig in Secret %s (%s)", secret.Name, reference.Path)
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
	if err := absent.Retry(); err != nil {
		return err
	}
	return h.runHooks(ctx, postReconcile, obj)
}

// prepareApply resolves what the component wants and refers to, and where.
func (h *handler[T]) prepareApply(ctx context.Context, obj T) (directives, identity, error) {
	wanted, wantedErr := directivesOf(obj, h.settings)
	found, _ := h.finder.Find(obj.GetSpec())
	if err := errors.Join(wantedErr, references.Mistakes(found, obj.GetNamespace())); err != nil {
		return directives{}, identity{}, &verdict.InvalidError{Err: h.about(obj, err)}
	}
	if err := h.loadReferences(ctx, obj).Retry(); err != nil {
		return directives{}, identity{}, err
	}
	id, err := identityOf(obj, h.settings)
	if err != nil {
		return directives{}, identity{}, &verdict.InvalidError{Err: h.about(obj, err)}
	}
	return wanted, id, nil
}

// about names the component in the messages about itself.
func (h *handler[T]) about(obj T, err error) error {
	return fmt.Errorf("%s: %w", objectName(h.kind.Kind, obj), err)
}

// concludeApply takes over what the engine reports, and says whether it is enough.
func (h *handler[T]) concludeApply(ctx context.Context, obj T, t connection, outcome reconciler.Outcome, err error, after func(context.Context, T) error) (result.Result, error) {
	key, status, now := client.ObjectKeyFromObject(obj), obj.GetStatus(), h.now()
	known := h.remembered(obj)
	if err == nil || outcome.Total > 0 {
		outcome.Notes = append(outcome.Notes, h.noteDrift(obj, outcome.Drifted, now)...)
	}
	known.untold.add(outcome)
	h.lookouts.wait(key, t, outcome.Foreign)
	err = h.nameMissing(ctx, obj, outcome, err)
	if !outcome.NextDriftCheck.IsZero() {
		h.later(key, max(outcome.NextDriftCheck.Sub(now), minNet))
	}
	before := status.Progress
	status.noteManifests(outcome.ManifestDigest, now)
	if err == nil || outcome.Total > 0 {
		status.Progress = progress(outcome.Settled, outcome.Total)
	}
	if len(outcome.Steps) > 0 || status.Progress != before {
		known.idle.Reset()
	}
	switch {
	case err != nil && !verdict.StillMoving(outcome.Waiting):
		if next := verdict.NextChange(outcome.Waiting); !next.IsZero() {
			h.later(key, max(next.Sub(now), minNet))
		}
		return result.Empty, err
	case err != nil:
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Err: err, Net: h.net(known, outcome.Waiting)}, Cause: err}
	case !outcome.Done():
		causes := known.causes.Explain(ctx, now, outcome.Waiting, t.client)
		message := verdict.WaitingMessage(outcome.Waiting, causes)
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: message, Failed: verdict.AnyFailed(outcome.Waiting), Net: h.net(known, outcome.Waiting)}}
	}
	known.idle.Reset()
	known.causes = nil
	known.timeoutPassed = 0
	if err := after(ctx, obj); err != nil {
		return result.Empty, err
	}
	known.unlogged.applied = status.AppliedGeneration
	status.noteApplied(obj.GetGeneration(), len(outcome.Steps) > 0, now)
	return result.Success, nil
}

// confirm returns what the engine asks before it creates objects and it is some time
// ago that anybody knew: whether the component is still as this pass read it, and
// whether it is for this process to act. The server cannot refuse a stale creation,
// as it refuses a stale update.
func (h *handler[T]) confirm(obj T) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := h.settings.leaderLock.leadingFor(creating); err != nil {
			return err
		}
		current := newComponent[T]()
		switch err := h.local.Get(ctx, client.ObjectKeyFromObject(obj), current); {
		case cluster.IsGone(err, obj.GetName()):
			return superseded("it is not there any more")
		case err != nil:
			return fmt.Errorf("read %s again: %w", objectName(h.kind.Kind, obj), err)
		}
		switch {
		case current.GetUID() != obj.GetUID():
			return superseded("it was deleted and created again")
		case current.GetGeneration() != obj.GetGeneration():
			return superseded("its spec changed")
		case current.GetDeletionTimestamp().IsZero() != obj.GetDeletionTimestamp().IsZero():
			return superseded("it is being deleted")
		case !equality.Semantic.DeepEqual(current.GetStatus().Inventory, obj.GetStatus().Inventory):
			return superseded("another process writes its inventory")
		case !maps.Equal(h.instructions(current), h.instructions(obj)):
			return superseded("its annotations ask for something else")
		}
		return nil
	}
}

// instructions are the annotations that say what is to be done with the component. They
// belong to no generation. Others may be a hook's, in memory.
func (h *handler[T]) instructions(obj T) map[string]string {
	own := maps.Clone(obj.GetAnnotations())
	maps.DeleteFunc(own, func(key, _ string) bool { return !strings.HasPrefix(key, h.settings.name+"/") })
	return own
}

// protected returns what the component, and its operator, cannot live without. In
// another cluster objects of the same names are other objects.
func (h *handler[T]) protected(obj T) ([]reconciler.Key, error) {
	if own, ok := configurationOf[ClientConfiguration](obj); ok && own.GetKubeConfig() != nil {
		return nil, nil
	}
	mapping, err := h.mapper.RESTMapping(h.kind.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("find the definition of the type %s: %w", h.kind, err)
	}
	return []reconciler.Key{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: mapping.Resource.GroupResource().String()},
		{Kind: "Namespace", Name: h.settings.operatorNamespace},
		{Kind: "Secret", Namespace: h.settings.operatorNamespace, Name: h.settings.name + digestKeySuffix},
	}, nil
}
