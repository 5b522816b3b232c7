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
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// createOrUpdate brings the dependent objects closer to what the component asks for.
//
// A full reconcile finds out what that is: it loads references, runs hooks and renders. A
// reconcile uses the fast path if nothing but dependents changed: it uses what the last full
// one has found out.
func (h *handler) createOrUpdate(ctx context.Context, obj Component, commit session.Commit) (result.Result, error) {
	key := client.ObjectKeyFromObject(obj)
	h.remembered(obj).planned, h.remembered(obj).unasked = false, false
	fast := h.triggers.StartReconcile(key)
	var before prepared
	if !fast {
		// Even if this reconcile fails, its causes are dropped: the next one must not use what
		// was rendered before them.
		before = h.memory.takeRendered(key)
	}
	if fast {
		if known, ok := h.memory.renderedFor(obj, h.now()); ok {
			res, err := h.applyFast(ctx, obj, commit, known)
			if !errors.Is(err, reconciler.ErrOutdated) {
				return res, err
			}
		}
		before = h.memory.takeRendered(key)
	}
	h.remembered(obj).turn, h.remembered(obj).unasked = "", true
	// Whatever comes out of it, the request is handled at the end.
	request := h.reconcileAt(obj)
	defer func() { obj.GetStatus().LastHandledReconcileAt = request }()
	root := rootOf(obj) // a hook may change it, in memory
	_, rolloutErr := h.rolloutOf(obj)
	resolved, access, absent, err := h.resolve(ctx, obj, rolloutErr, h.loadReferences)
	if err != nil {
		return result.Empty, err
	}
	t, err := h.connect(ctx, obj, access)
	if err != nil {
		return result.Empty, cmp.Or(absent, err)
	}
	defer t.Release()
	ctx = h.basicContext(ctx)
	if absent != nil && !mayRepairAs(obj, access, before) {
		return result.Empty, absent
	}
	if absent != nil {
		return h.repairLast(ctx, obj, commit, t, resolved, before, nil, absent)
	}
	if err := h.revisions.AdoptRelease(ctx, obj, t, h.revisions.Renderer.Generator, &resolved.Deployment, &resolved.policies); err != nil {
		return result.Empty, err
	}
	if err := h.runHooks(ctx, postRead, obj); err != nil {
		return result.Empty, err
	}
	candidate, err := h.revisions.Candidate(ctx, obj, t, resolved.Deployment, h.revisions.Renderer.Generator, h.manifestDigest(t, resolved))
	h.remembered(obj).generator = candidate.Digests.Generator
	if err != nil {
		return result.Empty, err
	}
	digests, pinned := candidate.Digests, candidate.Pin
	allowEmpty, err := flagOf(obj, h.self.Annotation(vocabulary.AnnotationAllowEmpty))
	if err != nil {
		return result.Empty, &verdict.InvalidError{Err: h.self.About(obj, err)}
	}
	known := h.preparedOf(obj, resolved, access, root, allowEmpty)
	needsApproval, err := h.needsApproval(obj, digests, pinned)
	if err != nil {
		return result.Empty, &verdict.InvalidError{Err: h.self.About(obj, err)}
	}
	obj.GetStatus().Approval = nil
	var approved *rendering.Rendering
	if needsApproval {
		if approved, err = h.approvedRendering(ctx, obj, t, resolved, digests, allowEmpty); err != nil {
			return h.repairLast(ctx, obj, commit, t, resolved, before, nil, err)
		}
		if approved == nil {
			return h.applyUnapproved(revision.InRevision(ctx, t, revision.Of(obj).Processing().Component, revision.Of(obj)), obj, commit, t, known, before.desired)
		}
	}
	if held, err := h.isHeld(ctx, obj, digests, pinned); err != nil {
		return result.Empty, err
	} else if held {
		return h.applyHeld(revision.InRevision(ctx, t, revision.Of(obj).Processing().Component, revision.Of(obj)), obj, commit, t, known, before.desired, candidate.RolledBack)
	}
	rendered, err := h.startRevision(ctx, obj, commit, candidate, needsApproval)
	if err != nil {
		return result.Empty, err
	}
	ctx = revision.InRevision(ctx, t, digests.Component, revision.Of(obj))
	if err := h.runHooks(ctx, preReconcile, obj); err != nil {
		return result.Empty, err
	}
	toRender := h.revisions.Request(obj, resolved.Deployment, digests.Revision, rendered)
	if approved == nil {
		var manifests rendering.Rendering
		err := h.reportSlow(ctx, obj, commit, func(ctx context.Context) (err error) {
			manifests, err = h.revisions.Objects(ctx, obj, toRender, pinned, &h.remembered(obj).rendering)
			return err
		})
		if err != nil {
			return h.repairLast(ctx, obj, commit, t, resolved, before, nil, err)
		}
		approved = &manifests
	}
	known.digest, known.pin, known.pinned, known.config.Namespace = digests.Component, pinned, approved.Pinned, approved.Namespace
	outcome, err := h.applySet(ctx, obj, commit, t, known, before.desired, approved.Objects)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); invalid && outcome.Total == 0 {
		return h.repairLast(ctx, obj, commit, t, resolved, before, outcome.Awaited, err)
	}
	if err == nil || outcome.Total > 0 {
		err = errors.Join(err, h.revisions.Renderer.Keep(ctx, toRender, approved, &h.remembered(obj).rendering))
	}
	if current := revision.Of(obj).Current(); current != nil { // an outdated definition drops it
		current.Digest = approved.Stored
	}
	return h.concludeApply(ctx, obj, t, outcome, err, func(ctx context.Context, obj Component) error { return h.runHooks(ctx, postReconcile, obj) })
}

// startRevision records the candidate in the status, and reports whether the manifests of the revision were rendered before. An
// approved revision is durable before anything else, because a part of it that was applied would not be as approved; and so is a
// revision of a roll-out, because the next leader has to count it.
func (h *handler) startRevision(ctx context.Context, obj Component, commit session.Commit, candidate revision.Candidate, approved bool) (rendered bool, err error) {
	started, known := h.revisions.Start(obj, candidate), h.remembered(obj)
	if started.New {
		known.activity.StartRevision()
		if obj.GetStatus().IsReady() { // that was another revision, and a status may be written from now on
			h.setVerdict(obj, verdict.Evaluate(verdict.Facts{Waiting: fmt.Sprintf("revision %d has started", obj.GetStatus().Revision)}))
		}
	}
	// Nothing is written again before the definition keeps what was counted.
	if _, reason, _ := obj.GetStatus().GetState(); started.Dropped || approved || started.Updates && h.fleet != nil || reason == vocabulary.ReasonCRDOutdated {
		if err := commit(ctx); err != nil {
			return false, err
		}
	}
	if started.Changed {
		// What was found out about the manifests before says nothing any more.
		known.idle.Reset()
		known.failureReasons = nil
	}
	return started.Rendered, nil
}

// applyFast reconciles on the fast path.
func (h *handler) applyFast(ctx context.Context, obj Component, commit session.Commit, known prepared) (result.Result, error) {
	t, err := h.connect(ctx, obj, known.access)
	if err != nil {
		return result.Empty, err
	}
	defer t.Release()
	ctx = revision.InRevision(h.basicContext(ctx), t, known.digest, revision.Of(obj))
	outcome, err := h.apply(ctx, obj, commit, t, known, nil)
	if errors.Is(err, reconciler.ErrOutdated) {
		return result.Empty, err
	}
	switch {
	case known.approval != nil:
		return h.concludeUnapproved(obj, t, outcome, err)
	case known.held:
		return h.concludeApply(ctx, obj, t, outcome, err, noHooks)
	}
	return h.concludeApply(ctx, obj, t, outcome, err, h.hooksAfterFastPath)
}

// applySet applies a set, and remembers it. Before is what was remembered.
func (h *handler) applySet(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, known prepared, before *reconciler.DesiredSet, objects []client.Object) (reconciler.Outcome, error) {
	outcome, err := h.apply(ctx, obj, commit, t, known, objects)
	if known.desired = outcome.Desired.Pack(before); known.desired != nil {
		known.size = known.desired.Size()
		h.memory.keepRendered(client.ObjectKeyFromObject(obj), known)
	}
	return outcome, err
}

// mayRepairAs reports whether dependents are written with this access although a reference is missing: the user may come from it, but
// not that of an ImpersonationSpec.
func mayRepairAs(obj Component, access target.Access, before prepared) bool {
	if before.desired != nil && !before.repairs {
		return reflect.DeepEqual(access, before.access)
	}
	if own, ok := configurationOf[ImpersonationConfiguration](obj); !ok || own.GetImpersonationUser() != "" {
		return true
	}
	spec := reflect.Indirect(reflect.ValueOf(obj.GetSpec()))
	return spec.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(spec.Type()), func(field reflect.StructField) bool {
		return field.Type == reflect.TypeFor[ImpersonationSpec]()
	})
}

// repairLast repairs the objects of the set that was applied last, because there is no new one, for this reason, which it returns. The
// set is kept in memory or in the history; otherwise nothing is done. Nothing is removed.
func (h *handler) repairLast(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, resolved resolvedConfig, last prepared, awaited []report.AwaitedObject, why error) (result.Result, error) {
	h.watches.SetAwaited(client.ObjectKeyFromObject(obj), t.Target, awaited)
	status := revision.Of(obj)
	at := slices.IndexFunc(status.History, func(entry v1alpha1.RevisionStatus) bool { return entry.Digest != "" })
	if !reflect.DeepEqual(last.config.policies, resolved.policies) {
		last = prepared{}
	}
	if isEmpty(obj) || last.desired == nil && (at < 0 || h.settings.historyLimit == 0) {
		return result.Empty, why
	}
	var stored rendering.Rendering
	if last.desired == nil {
		last = prepared{config: resolved, digest: status.Processing().Component}
		var err error
		stored, last.pin, err = h.revisions.Stored(ctx, obj, resolved.Deployment, &status.History[at])
		if missing, ok := errors.AsType[*rendering.MissingRevisionError](err); ok {
			return result.Empty, verdict.Worded{Err: why, Message: why.Error() + "; until then the dependent objects are not repaired: " + missing.Error()}
		}
		if err != nil {
			return result.Empty, errors.Join(why, err)
		}
		last.pinned, last.config.Namespace = stored.Pinned, stored.Namespace
	}
	last.repairs, last.until = true, time.Time{}
	h.memory.keepRendered(client.ObjectKeyFromObject(obj), last)
	outcome, err := h.applySet(ctx, obj, commit, t, last, last.desired, stored.Objects)
	if errors.Is(err, reconciler.ErrOutdated) {
		return h.repairLast(ctx, obj, commit, t, resolved, prepared{}, awaited, why)
	}
	h.remembered(obj).planned = false // what is planned for the new set decides whether it failed
	outcome.Awaited = append(outcome.Awaited, awaited...)
	h.noteOutcome(obj, t, &outcome, err)
	if next := verdict.NextChange(outcome.Waiting); !next.IsZero() {
		h.triggers.RequestFast(client.ObjectKeyFromObject(obj), max(next.Sub(h.now()), minFallback))
	}
	if err != nil || outcome.Total == 0 {
		return result.Empty, errors.Join(why, err)
	}
	return result.Empty, verdict.Worded{Err: why, Message: why.Error() + "; until then, what was applied last is repaired"}
}

// apply lets the engine bring the dependent objects closer to what is desired: those
// that were rendered, if they are not known from an earlier reconcile.
func (h *handler) apply(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, known prepared, rendered []client.Object) (reconciler.Outcome, error) {
	if err := h.noteRendered(obj, known.config.Namespace, rendered); err != nil {
		return reconciler.Outcome{}, err
	}
	stored, err := h.openInventory(ctx, obj, commit, t, known.config.policies, known.desired != nil)
	if err != nil {
		return reconciler.Outcome{}, err
	}
	request, err := h.applyRequest(obj, known, rendered, stored.inventory())
	if err != nil {
		return reconciler.Outcome{}, err
	}
	request.Record, request.Confirm = stored.save, h.confirm(obj)
	outcome, err := t.Engine.Apply(ctx, request)
	remembered := h.remembered(obj)
	remembered.planned = outcome.Total > 0
	remembered.transient = err == nil && stored.isTransient(outcome.Inventory)
	remembered.pin = known.pin.Describe(h.self.Name, known.pinned, outcome.Retained)
	return outcome, stored.saveOutcome(ctx, outcome.Inventory, h.aboutTarget(obj, err))
}

// applyRequest returns what the engine is asked for: to apply what was rendered, or is known from an
// earlier reconcile.
func (h *handler) applyRequest(obj Component, known prepared, rendered []client.Object, inventory v1alpha1.Inventory) (reconciler.ApplyRequest, error) {
	protected, err := h.protected(obj)
	if err != nil {
		return reconciler.ApplyRequest{}, err
	}
	_, reason, _ := obj.GetStatus().GetState() // it was reported first, so that a rollback comes before anything is removed
	timedOut := reason == vocabulary.ReasonTimeout && revision.Of(obj).TimedOut(intervalsOf(obj).Timeout, h.now())
	request := reconciler.ApplyRequest{
		Owner:           h.self.Owner(obj),
		Namespace:       known.config.Namespace,
		Objects:         rendered,
		Desired:         known.desired,
		Inventory:       inventory,
		ComponentDigest: known.digest,
		Policies:        known.config.policies,
		ManagedTypes:    known.config.managedTypes,
		Timeout:         intervalsOf(obj).Timeout,
		AllowEmpty:      known.allowEmpty,
		TimedOut:        timedOut,
		RepairOnly:      known.repairs,
		Stored:          known.repairs || known.held || known.approval != nil || known.pin.IsSet(),
		Urgent:          h.triggers.IsUrgent(client.ObjectKeyFromObject(obj)),
		Protected:       protected,
	}
	if known.pin.IsSet() {
		request.Retain = revision.Retained(inventory.Items, known.pinned.Hooks)
	}
	return request, nil
}

// manifestDigest returns a function for the digest of the manifests that would be applied.
func (h *handler) manifestDigest(t targets.Connection, resolved resolvedConfig) revision.ManifestDigest {
	return func(ctx context.Context, obj identity.Component, objects []client.Object, digest string) (string, error) {
		request, err := h.applyRequest(obj, prepared{config: resolved, digest: digest, allowEmpty: true}, objects, v1alpha1.Inventory{})
		if err != nil {
			return "", err
		}
		return t.Engine.ManifestDigest(ctx, request)
	}
}

// hooksAfterFastPath runs the hooks at the end of the fast path if it makes the component
// ready. They see what the spec refers to, as always. But nothing was rendered from it, so a
// change meanwhile still has to requeue the component.
func (h *handler) hooksAfterFastPath(ctx context.Context, obj Component) error {
	status := revision.Of(obj)
	ran := obj.GetStatus().IsReady() && status.AppliedGeneration == obj.GetGeneration() && status.ProcessingSince == nil
	if status.Rollback != nil {
		current := status.Current()
		ran = current != nil && current.Result == v1alpha1.RevisionReady && status.ProcessingSince == nil
	}
	if ran || len(h.code.hooks[postReconcile]) == 0 {
		return nil
	}
	absent, _ := h.readReferences(ctx, obj)
	if err := absent.Retry(); err != nil {
		return err
	}
	return h.runHooks(ctx, postReconcile, obj)
}

// concludeApply copies the outcome of the engine into the status, and returns Success if nothing is left to do.
func (h *handler) concludeApply(ctx context.Context, obj Component, t targets.Connection, outcome reconciler.Outcome, err error, after func(context.Context, Component) error) (result.Result, error) {
	key, status, now := client.ObjectKeyFromObject(obj), revision.Of(obj), h.now()
	known, before := h.remembered(obj), status.Progress
	h.noteOutcome(obj, t, &outcome, err)
	err = h.nameMissing(ctx, obj, outcome, err)
	status.NoteManifests(outcome.ManifestDigest, now)
	h.noteProgress(obj, outcome, err, status.Progress != before)
	switch {
	case err != nil && !verdict.StillMoving(outcome.Waiting):
		if next := verdict.NextChange(outcome.Waiting); !next.IsZero() {
			h.triggers.RequestFast(key, max(next.Sub(now), minFallback))
		}
		return result.Empty, err
	case err != nil:
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Err: err, Fallback: h.fallback(known, outcome.Waiting)}, Cause: err}
	case !outcome.Done():
		reasons := known.failureReasons.Explain(ctx, now, outcome.Waiting, t.Client)
		message := verdict.WaitingMessage(outcome.Waiting, reasons)
		return result.Empty, &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: message, Failed: verdict.AnyFailed(outcome.Waiting), Fallback: h.fallback(known, outcome.Waiting)}}
	}
	if err := h.awaitAvailable(ctx, obj, t, outcome.Desired); err != nil {
		return result.Empty, err
	}
	known.idle.Reset()
	known.failureReasons = nil
	known.timeoutPassed = 0
	if err := after(ctx, obj); err != nil {
		return result.Empty, err
	}
	known.activity.SetInstalled(status.AppliedGeneration != 0)
	status.NoteApplied(obj.GetGeneration(), len(outcome.Steps) > 0, now)
	return result.Success, nil
}

// awaitAvailable returns an UnfinishedError as long as a container without a probe, of a revision that was not ready yet, has not run for
// long enough.
func (h *handler) awaitAvailable(ctx context.Context, obj Component, t targets.Connection, desired *reconciler.DesiredSet) error {
	if !revision.Of(obj).IsNew() {
		return nil
	}
	facts, unread, err := verdict.Unavailable(ctx, desired.Workloads(h.settings.readyWhen), h.settings.minReady, h.now(), t.Client)
	if err != nil {
		return err
	}
	if facts.Waiting != "" {
		h.remembered(obj).transient = false // it takes longer than the status may be put off
		return &verdict.UnfinishedError{Facts: facts}
	}
	h.remembered(obj).activity.Add(reconciler.Outcome{Notes: unread})
	return nil
}

// noteOutcome notes what the engine did and found.
func (h *handler) noteOutcome(obj Component, t targets.Connection, outcome *reconciler.Outcome, err error) {
	key, status, now := client.ObjectKeyFromObject(obj), obj.GetStatus(), h.now()
	if err == nil || outcome.Total > 0 {
		outcome.Notes = append(outcome.Notes, h.noteDrift(obj, outcome.Drifted)...)
	}
	h.remembered(obj).activity.Add(*outcome)
	h.watches.SetAwaited(key, t.Target, outcome.Awaited)
	if !outcome.NextDriftCheck.IsZero() {
		h.triggers.RequestFast(key, max(outcome.NextDriftCheck.Sub(now), minFallback))
	}
	status.OwnerID = cmp.Or(outcome.OwnerID, status.OwnerID)
	if err == nil && outcome.OwnerID != "" || outcome.Total > 0 {
		status.Progress = progress(outcome.Settled, outcome.Total)
	}
}
