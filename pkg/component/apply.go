// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// createOrUpdate brings the dependent objects closer to the desired state.
//
// A full reconcile finds out the desired state: it loads references, runs hooks and renders. If only dependents changed, a
// reconcile takes the fast path, with the results of the last full reconcile.
func (p *applier) createOrUpdate(ctx context.Context, obj Component, commit session.Commit) (result.Result, error) {
	key := client.ObjectKeyFromObject(obj)
	if p.triggers.TakeCauses(key) {
		if known, ok := p.memory.renderedFor(obj, p.now()); ok {
			res, err := p.applyFast(ctx, obj, commit, known)
			if !errors.Is(err, reconciler.ErrOutdated) {
				return res, err
			}
		}
	}
	p.fleet.Start(key)
	// Whatever comes out of it, the request is handled at the end.
	request := p.reconcileAt(obj)
	defer func() { obj.GetStatus().LastHandledReconcileAt = request }()
	// Even if this reconcile fails, its causes are dropped: the next one must not use an older rendering.
	a := &attempt{obj: obj, commit: commit, before: p.memory.takeRendered(key)}
	a.renderedFrom = renderInputsOf(obj) // a hook may change it, in memory
	err := p.open(ctx, a)
	if err != nil {
		return result.Empty, err
	}
	defer a.target.Release()
	return p.applyRevision(p.basicContext(ctx), a)
}

// open resolves the configuration of the component, and connects to its target.
func (p *applier) open(ctx context.Context, a *attempt) (err error) {
	if a.config, a.access, a.missingReferences, err = p.resolve(ctx, a.obj, p.annotationMistakes(a.obj), p.loadReferences); err != nil {
		return err
	}
	if a.target, err = p.connect(ctx, a.obj, a.access); err != nil {
		return cmp.Or(a.missingReferences, err)
	}
	return nil
}

// applyRevision applies the revision that the component has now. It goes through the steps of a full reconcile.
func (p *applier) applyRevision(ctx context.Context, a *attempt) (result.Result, error) {
	if ans, err := firstClosed(ctx, a, p.entryGates); err != nil || ans.meanwhile != "" {
		return p.await(ctx, a, ans, err)
	}
	if err := p.revisions.AdoptRelease(ctx, a.obj, a.target, &a.config.Deployment, &a.config.policies); err != nil {
		return result.Empty, err
	}
	if err := p.runHooks(ctx, postRead, a.obj); err != nil {
		return result.Empty, err
	}
	if err := p.findRevision(ctx, a); err != nil {
		return result.Empty, err
	}
	if ans, err := firstClosed(ctx, a, p.startGates); err != nil || ans.meanwhile != "" {
		return p.await(ctx, a, ans, err)
	}
	started, err := p.startRevision(ctx, a)
	if err != nil {
		return result.Empty, err
	}
	ctx = revision.ContextWithRevision(ctx, a.target, a.candidate.Digests.Component, revision.Of(a.obj))
	if err := p.runHooks(ctx, preReconcile, a.obj); err != nil {
		return result.Empty, err
	}
	request := p.revisions.Request(a.obj, a.config.Deployment, a.candidate.Digests.Revision, started.Rendered)
	objects, err := p.objectsOf(ctx, a, request)
	if err != nil {
		return p.repairLast(ctx, a, nil, err)
	}
	outcome, err := p.applySet(ctx, a, a.newCache(a.candidate.Digests.Component, a.candidate.Pin, objects), objects.Objects)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); invalid && outcome.Total == 0 {
		return p.repairLast(ctx, a, outcome.Awaited, err)
	}
	if err == nil || outcome.Total > 0 {
		err = errors.Join(err, p.revisions.Renderer.Keep(ctx, request, &objects, &p.remembered(a.obj).rendering))
	}
	if current := revision.Of(a.obj).Current(); current != nil { // an outdated definition drops it
		current.Digest = objects.Stored
	}
	return p.concluder.FinishApply(ctx, a.obj, a.target, outcome, err, func() error { return p.runHooks(ctx, postReconcile, a.obj) })
}

// await follows the answer of a closed gate.
func (p *applier) await(ctx context.Context, a *attempt, ans answer, err error) (result.Result, error) {
	switch {
	case err != nil:
		return result.Empty, err
	case ans.meanwhile == repair:
		return p.repairLast(ctx, a, nil, ans.why)
	case ans.meanwhile == freeze:
		return result.Empty, ans.why
	}
	return p.keepCurrent(revision.ContextWithRevision(ctx, a.target, revision.Of(a.obj).Processing().Component, revision.Of(a.obj)), a, ans.held)
}

// findRevision finds out which revision the component has, or would have next.
func (p *applier) findRevision(ctx context.Context, a *attempt) (err error) {
	a.candidate, err = p.revisions.Candidate(ctx, a.obj, a.target, a.config.Deployment, p.manifestDigest(a.target, a.config))
	if err != nil {
		return err
	}
	a.allowEmpty, _ = flagOf(a.obj, p.self.Annotation(vocabulary.AnnotationAllowEmpty))
	a.until = p.now().Add(intervalsOf(a.obj).Requeue)
	return nil
}

// objectsOf returns the objects of the candidate: the approved rendering, or a new one.
func (p *applier) objectsOf(ctx context.Context, a *attempt, request rendering.Request) (objects rendering.Rendering, err error) {
	if a.approved != nil {
		objects = *a.approved
	} else {
		err = p.reportSlow(ctx, a.obj, a.commit, func(ctx context.Context) (err error) {
			objects, err = p.revisions.Objects(ctx, a.obj, request, a.candidate.Pin, &p.remembered(a.obj).rendering)
			return err
		})
	}
	if status := a.obj.GetStatus(); err == nil && objects.RestoredFrom != "" && status.RestoredFrom != objects.RestoredFrom {
		// It is recorded before the adoption, after which the objects do not show the previous component.
		status.RestoredFrom = objects.RestoredFrom
		err = a.commit(ctx)
	}
	return objects, err
}

// startRevision records the candidate in the status. It commits an approved revision, because after a crash only a part of what was
// approved might be applied, and a revision of a roll-out, because the next leader has to count it.
func (p *applier) startRevision(ctx context.Context, a *attempt) (revision.Started, error) {
	started, known := p.revisions.Start(a.obj, a.candidate), p.concluder.MemoryOf(a.obj)
	if started.New {
		known.Activity.StartRevision()
		if status := a.obj.GetStatus(); status.IsReady() { // that was another revision, and a status may be written from now on
			conclude.SetVerdict(a.obj, verdict.Evaluate(verdict.Facts{Waiting: fmt.Sprintf("revision %d has started", status.Revision)}))
		}
	}
	// If the definition is outdated and prunes the number of the revision, the commit fails, and no dependent is written.
	if _, reason, _ := a.obj.GetStatus().GetState(); started.Dropped || a.approved != nil || started.Updates && p.settings.rollout != nil || reason == vocabulary.ReasonCRDOutdated {
		if err := a.commit(ctx); err != nil {
			return started, err
		}
	}
	if started.Changed {
		known.Restart()
	}
	return started, nil
}

// applyFast reconciles on the fast path.
func (p *applier) applyFast(ctx context.Context, obj Component, commit session.Commit, known renderCache) (result.Result, error) {
	t, err := p.connect(ctx, obj, known.access)
	if err != nil {
		return result.Empty, err
	}
	defer t.Release()
	ctx = revision.ContextWithRevision(p.basicContext(ctx), t, known.digest, revision.Of(obj))
	outcome, err := p.apply(ctx, obj, commit, t, known, nil)
	if errors.Is(err, reconciler.ErrOutdated) {
		return result.Empty, err
	}
	if known.meanwhile == keep {
		return p.concludeKept(ctx, obj, t, known.held, outcome, err)
	}
	return p.concluder.FinishApply(ctx, obj, t, outcome, err, func() error { return p.hooksAfterFastPath(ctx, obj) })
}

// applySet applies a set, and remembers it.
func (p *applier) applySet(ctx context.Context, a *attempt, known renderCache, objects []client.Object) (reconciler.Outcome, error) {
	outcome, err := p.apply(ctx, a.obj, a.commit, a.target, known, objects)
	if known.desired = outcome.Desired.Pack(a.before.desired); known.desired != nil {
		known.size = known.desired.Size()
		p.memory.keepRendered(client.ObjectKeyFromObject(a.obj), known)
	}
	return outcome, err
}

// repairLast repairs the objects of the set that was applied last, because no new set can be applied. It removes nothing. It does
// nothing if the set is neither in memory nor in the history. Its error is why, the reason that no new set can be applied.
func (p *applier) repairLast(ctx context.Context, a *attempt, awaited []report.AwaitedObject, why error) (result.Result, error) {
	key, last := client.ObjectKeyFromObject(a.obj), a.before
	p.watches.SetAwaited(key, a.target.Target, awaited)
	status := revision.Of(a.obj)
	at := slices.IndexFunc(status.History, func(entry v1alpha1.RevisionStatus) bool { return entry.Digest != "" })
	if !reflect.DeepEqual(last.config.policies, a.config.policies) {
		last = renderCache{}
	}
	if isEmpty(a.obj) || last.desired == nil && (at < 0 || p.settings.historyLimit == 0) {
		return result.Empty, why
	}
	var stored rendering.Rendering
	if last.desired == nil {
		var pin revision.Pin
		var err error
		stored, pin, err = p.revisions.Stored(ctx, a.obj, a.config.Deployment, &status.History[at], 0)
		if missing, ok := errors.AsType[*rendering.MissingRevisionError](err); ok {
			return result.Empty, verdict.MessageError{Err: why, Message: why.Error() + "; until then the dependent objects are not repaired: " + missing.Error()}
		}
		if err != nil {
			return result.Empty, errors.Join(why, err)
		}
		last = renderCache{inputs: inputs{config: a.config}, appliedRevision: appliedRevision{digest: status.Processing().Component, pin: pin, pinned: stored.Pinned}}
		last.config.Namespace = stored.Namespace
	}
	last.meanwhile, last.until = repair, time.Time{}
	p.memory.keepRendered(key, last)
	again := *a
	again.before = last
	outcome, err := p.applySet(ctx, &again, last, stored.Objects)
	if errors.Is(err, reconciler.ErrOutdated) {
		again.before = renderCache{}
		return p.repairLast(ctx, &again, awaited, why)
	}
	outcome.Awaited = append(outcome.Awaited, awaited...)
	return result.Empty, p.concluder.Repair(a.obj, a.target, outcome, err, why)
}

// keepCurrent goes on applying the current revision, from its set in the history, while the next one waits.
func (p *applier) keepCurrent(ctx context.Context, a *attempt, held verdict.Held) (result.Result, error) {
	status := revision.Of(a.obj)
	if status.Revision == 0 {
		return p.concludeKept(ctx, a.obj, a.target, held, reconciler.Outcome{}, nil)
	}
	failed := int64(0)
	if back := a.candidate.RolledBack; held.Message == "" && back != nil && status.Current().RollbackTo == back.To {
		status.Rollback, failed = back, back.From // it is there because a later one failed: that stays so
	}
	stored, pin, err := p.revisions.Stored(ctx, a.obj, a.config.Deployment, status.Current(), failed)
	if _, missing := errors.AsType[*rendering.MissingRevisionError](err); missing {
		unrepaired := "; until then the dependent objects are not repaired: " + err.Error()
		if held.Message != "" {
			held.Message += unrepaired
			return p.concludeKept(ctx, a.obj, a.target, held, reconciler.Outcome{}, nil)
		}
		turn := p.fleet.AddToTurn(client.ObjectKeyFromObject(a.obj), unrepaired)
		if status.Current().Result == v1alpha1.RevisionReady {
			return result.Success, nil
		}
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: turn, Fallback: verdict.DefaultInterval}}
	}
	if err != nil {
		return result.Empty, err
	}
	current := a.newCache(status.Processing().Component, pin, stored)
	current.meanwhile, current.held, current.approval = keep, held, status.Approval.DeepCopy()
	outcome, err := p.applySet(ctx, a, current, stored.Objects)
	return p.concludeKept(ctx, a.obj, a.target, held, outcome, err)
}

// concludeKept ends a reconcile that has applied the current revision. Its hooks belong to the next one, which has not started.
func (p *applier) concludeKept(ctx context.Context, obj Component, t targets.Connection, held verdict.Held, outcome reconciler.Outcome, err error) (result.Result, error) {
	if held.Message == "" {
		return p.concluder.FinishApply(ctx, obj, t, outcome, err, nil)
	}
	return p.concluder.Hold(obj, t, outcome, err, held)
}

// apply lets the engine bring the dependent objects closer to what is desired: those
// that were rendered, if they are not known from an earlier reconcile.
func (p *applier) apply(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, known renderCache, rendered []client.Object) (reconciler.Outcome, error) {
	if err := p.records.NoteRendered(obj, known.config.Namespace, rendered); err != nil {
		return reconciler.Outcome{}, err
	}
	stored, err := p.records.Open(ctx, obj, commit, t.Engine, known.config.policies.Delete, known.desired != nil)
	if err != nil {
		return reconciler.Outcome{}, err
	}
	request, err := p.applyRequest(obj, known, rendered, stored.Inventory())
	if err != nil {
		return reconciler.Outcome{}, err
	}
	request.Record, request.Confirm, request.Urgent = stored.Save, p.confirm(obj), p.triggers.IsUrgent(client.ObjectKeyFromObject(obj))
	outcome, err := t.Engine.Apply(ctx, request)
	p.concluder.MemoryOf(obj).Run = conclude.Run{Planned: outcome.Total > 0, Pin: known.pin.Describe(p.self.Name, known.pinned, outcome.Retained)}
	if err = p.aboutTarget(obj, err); err == nil || outcome.Total > 0 {
		err = errors.Join(err, p.outputs.Publish(ctx, obj, outcome.Outputs, commit))
	}
	return outcome, stored.SaveOutcome(ctx, outcome.Inventory, err)
}

// hooksAfterFastPath runs the hooks at the end of the fast path if it makes the component
// ready. They see the references of the spec, as always. But nothing was rendered from them, so a
// change meanwhile still has to requeue the component.
func (p *applier) hooksAfterFastPath(ctx context.Context, obj Component) error {
	status := revision.Of(obj)
	ran := obj.GetStatus().IsReady() && status.AppliedGeneration == obj.GetGeneration() && status.ProcessingSince == nil
	if status.Rollback != nil {
		current := status.Current()
		ran = current != nil && current.Result == v1alpha1.RevisionReady && status.ProcessingSince == nil
	}
	if ran || len(p.code.hooks[postReconcile]) == 0 {
		return nil
	}
	absent, _ := p.readReferences(ctx, obj)
	if err := absent.Err(); err != nil {
		return err
	}
	return p.runHooks(ctx, postReconcile, obj)
}

// reportSlow calls render, and writes its progress into the status if it takes long. A verdict about this generation stays, unless
// it says that an earlier revision is ready: the same rendering may lead to it again.
func (p *applier) reportSlow(ctx context.Context, obj Component, commit session.Commit, render func(context.Context) error) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, at := renders.WithProgress(ctx)
	var refused error
	ctx = guard.WithSlow(ctx, p.code.slowAfter, func(passed time.Duration) {
		state, _, _ := obj.GetStatus().GetState()
		if obj.GetStatus().ObservedGeneration == obj.GetGeneration() && state != v1alpha1.StatePending && state != v1alpha1.StateProcessing || refused != nil {
			return
		}
		message := fmt.Sprintf("the manifests have been rendered for %s: %s", passed.Round(time.Second), cmp.Or(at(), "generator"))
		conclude.SetVerdict(obj, verdict.Evaluate(verdict.Facts{Waiting: message}))
		if refused = commit(outer); refused != nil {
			cancel()
		}
	})
	err := render(ctx)
	return cmp.Or(refused, err)
}
