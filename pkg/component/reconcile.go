// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/result"
)

// handler reconciles components. It is immutable. The memories of its parts only avoid requests, and events and log lines that repeat.
type handler struct {
	*steps

	// sessions reads components and writes their status.
	sessions *session.Sessions[Component]
	applier  *applier
	deletion *deleter
	planner  *planner
	previews *previews // nil if it answers none
}

// newHandler returns a handler of components.
func newHandler(s *steps) *handler {
	deletion := &deleter{steps: s}
	planner := &planner{steps: s, deletion: deletion}
	applier := &applier{steps: s, planner: planner}
	// The gates are asked in this order. A component that is suspended, or that another operator has claimed, does not come to them:
	// see internal/session.
	applier.entryGates = []gate{applier.referencesLoaded}
	applier.startGates = []gate{applier.approvalGiven, applier.rolloutTurn}
	return &handler{steps: s, applier: applier, deletion: deletion, planner: planner}
}

// reconcile reconciles one component: it reads the component, does what its phase asks for, and writes its status.
func (h *handler) reconcile(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	h.triggers.StartReconcile(key)
	s, err := h.sessions.Open(ctx, key, h.settingsOf)
	if err != nil {
		return ctrl.Result{}, err
	}
	pending := pendingCreations{}
	h.concluder.Start(key) // not in Run: a session that has an error already runs nothing
	s.Run(ctx, func(ctx context.Context) (result.Result, error) { return h.runPhase(ctx, s, &pending) })
	s.Finalize(ctx, func(ctx context.Context) error {
		h.noteLost(s.Object, false)
		return h.deletion.finalize(ctx, s.Object, s.Policy, s.Commit)
	})
	if s.Gone {
		h.forgetGone(ctx, key, s.Phase, pending)
	}
	priority := trigger.PriorityDefault
	answer, err := s.Close(ctx, func(outcome session.Outcome) result.Verdict {
		verdict := h.end(ctx, s, outcome, pending)
		if verdict.Err == nil && verdict.Reason != vocabulary.ReasonProcessing && verdict.Reason != vocabulary.ReasonDeletionProcessing {
			priority = trigger.PriorityLow
		}
		return verdict
	})
	if !s.Gone && err == nil {
		h.fleet.Written(key)
	}
	if answer.RequeueAfter > 0 || err != nil {
		answer.Priority = &priority // otherwise the next reconcile has the priority of this one
	}
	return answer, err
}

// runPhase does what the phase of the session asks for. Pending becomes the creations that may be under way.
func (h *handler) runPhase(ctx context.Context, s *session.Session[Component], pending *pendingCreations) (result.Result, error) {
	obj := s.Object
	dropForeign(obj.GetStatus())
	if h.self.Former(obj) == "" {
		obj.GetStatus().Reconciler = h.self.Name
	}
	// The rest of the status of a component that SAP component-operator-runtime has made means the same here, or is dropped by the definition.
	if obj.GetStatus().Inventory.Adopt() {
		if err := s.Commit(ctx); err != nil {
			return result.Empty, err
		}
	}
	h.noteLost(obj, s.Claiming())
	h.concluder.WarnOfUnknownAnnotations(obj)
	// The memory has no creations while this reconcile runs: if it panics, the next one assumes that some may be under way.
	known := h.remembered(obj)
	*pending, known.pendingCreations = known.pendingCreations, pendingCreations{}
	if pending.component != obj.GetUID() {
		*pending = pendingCreations{component: obj.GetUID(), last: h.now()}
	}
	switch s.Phase {
	case session.PhaseClaim, session.PhaseApply:
		h.noteFirstSeen(obj)
		// The status that this is the first reconcile becomes durable with the record of the objects.
		if err := s.ClaimMetadata(ctx); err != nil {
			return result.Empty, err
		}
		if s.Phase == session.PhaseClaim && isEmpty(obj) {
			pending.last = time.Time{} // nothing is created before the claim
		}
		return h.applier.createOrUpdate(ctx, obj, s.Commit)
	case session.PhaseDelete:
		// Without the lock, another process may still be creating objects, and so may the former operator.
		known.soleWriter = h.settings.leaderLock != nil && h.self.FormerName(obj) == "" && !pending.mayBeUnderWay(h.now())
		return h.deletion.delete(ctx, obj, s.Commit)
	case session.PhaseSkip:
		h.suspend(obj)
	}
	return result.Empty, nil
}

// noteLost notes that the inventory of a component was lost, if it was. Then the next reconcile is a full one, and looks for all objects
// that are rendered.
func (h *handler) noteLost(obj Component, claiming bool) {
	if h.records.NoteLost(obj, claiming) {
		h.memory.takeRendered(client.ObjectKeyFromObject(obj))
	}
}

// forgetGone drops the memory of a component that is gone, but for creations that may be under way.
func (h *handler) forgetGone(ctx context.Context, key client.ObjectKey, phase session.Phase, pending pendingCreations) {
	late := h.memory.entryOf(key).pendingCreations
	h.forgetComponent(ctx, key)
	if phase == session.PhaseFinalize {
		late = pending
		late.ended = pending.mayBeUnderWay(h.now())
	}
	h.eraseLateRevisions(ctx, key, late)
}

// end remembers what the next reconcile has to know, and reports the outcome.
func (h *handler) end(ctx context.Context, s *session.Session[Component], outcome session.Outcome, pending pendingCreations) result.Verdict {
	obj := s.Object
	h.noteLost(obj, s.Claiming()) // perhaps the session had an error before
	verdict := h.report(ctx, obj, outcome)
	if !isClean(outcome.Err) || ctx.Err() != nil {
		pending.last = h.now()
	}
	h.remembered(obj).pendingCreations = pending
	return verdict
}

// report writes the verdict about the reconcile into the status, the events and the log.
func (h *handler) report(ctx context.Context, obj Component, outcome session.Outcome) result.Verdict {
	key := client.ObjectKeyFromObject(obj)
	return h.concluder.Report(ctx, obj, outcome, conclude.Findings{
		NextFull: h.memory.cacheOf(key).until, Notices: h.remembered(obj).rendering.Notices(), Turn: h.fleet.Turn(key), Dependents: h.records.Count(obj),
		NoteTurn: func() { h.fleet.Report(ctx, obj, outcome.Phase == session.PhaseSkip) },
	})
}

// isClean reports whether nothing has failed in a reconcile that ended with this error.
func isClean(err error) bool {
	unfinished, ok := errors.AsType[*verdict.UnfinishedError](err)
	return err == nil || ok && unfinished.Cause == nil && unfinished.Facts.Err == nil
}

// settingsOf returns the settings of the component for its reconcile. A component that is abandoned can be
// deleted, whatever else is wrong with it.
func (h *handler) settingsOf(obj Component) session.Settings {
	return session.Settings{Suspended: h.isSuspended(obj), Orphan: h.isAbandoned(obj)}
}

// noteFirstSeen records in the status of a new component that it is reconciled.
func (h *handler) noteFirstSeen(obj Component) {
	if status := obj.GetStatus(); status.State == "" {
		status.Inventory.Format = cmp.Or(status.Inventory.Format, v1alpha1.InventoryFormat) // nothing was lost
		conclude.SetVerdict(obj, verdict.Evaluate(verdict.Facts{FirstSeen: true}))
	}
}

// suspend is for a component that is suspended: its dependents are not reconciled, their
// changes do not requeue it, and its timeout does not go on.
func (h *handler) suspend(obj Component) {
	h.watches.ForgetComponent(client.ObjectKeyFromObject(obj))
	h.memory.takeRendered(client.ObjectKeyFromObject(obj))
	h.targets.ForgetOwner(h.self.OwnerOf(client.ObjectKeyFromObject(obj)))
	h.concluder.Suspend(obj)
}

// eraseLateRevisions is for a component that is gone. If a creation of the Secret of its revisions may arrive yet, the Secret is
// deleted once none can be under way any more.
func (h *handler) eraseLateRevisions(ctx context.Context, key client.ObjectKey, pending pendingCreations) {
	if !pending.ended { // perhaps it only belongs to another process
		return
	}
	if pending.mayBeUnderWay(h.now()) {
		h.triggers.RequestFast(key, unansweredFor-h.now().Sub(pending.last))
	} else {
		err := h.revisions.Renderer.Revisions.Erase(ctx, revisions.Component{GroupVersionKind: h.self.Kind, Namespace: key.Namespace, Name: key.Name, UID: pending.component}, nil)
		if err == nil {
			return
		}
		h.records.RetryForget(ctx, key, err)
	}
	h.memory.entryOf(key).pendingCreations = pending
}

// forgetComponent drops the memory of a component that is gone, or does not belong to this
// process any more.
func (h *handler) forgetComponent(ctx context.Context, key client.ObjectKey) {
	h.records.Forget(ctx, key)
	h.telemetry.ForgetComponent(ctx, key)
	h.triggers.Forget(key)
	h.targets.ForgetOwner(h.self.OwnerOf(key))
	h.watches.ForgetComponent(key)
	h.concluder.Forget(key)
	h.memory.deleteEntry(key)
	h.fleet.Remove(key)
}
