// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/rollout"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// Another generator, such as the next version of a chart, is a new revision of every component. With
// the option Rollout a component starts it when it is its turn, and keeps its revision until then. What is
// decided follows from the histories of all components, so that the next leader decides the same.

// Rollout limits how many components are updated at the same time when the operator comes with another
// chart or generator. A component that waits keeps its revision, is repaired, and stays Ready. A change of
// its spec is not held back: it is applied with the new version.
type Rollout struct {
	// MaxUnavailable is how many components may be updating or have failed: a number of at least 1, or a percentage
	// of all components of the reconciler, rounded down, to at least 1. When so many have failed, no further one
	// is updated, and they get the condition RolloutStopped. One that was not ready before does not count.
	//
	// Default: none; it is required
	MaxUnavailable intstr.IntOrString
	// Canaries selects the components that are updated first. All others wait until these are ready.
	//
	// Default: none
	Canaries *metav1.LabelSelector
	// Pause is how long the next component waits after one became ready.
	//
	// Default: 0: it does not wait
	Pause time.Duration
}

// The values of the annotation rollout.
const (
	rolloutPin     = "pin"
	rolloutPromote = "promote"
	rolloutIgnore  = "ignore"
)

// reasonRolloutStopped means that no further component is updated to the new version of the operator, because as
// many as may be unavailable have failed, or a canary has. The message says how many wait, and which failed and why.
//
// Conditions: RolloutStopped True on the components that failed; Ready is as it is
// Event type: Warning
// What to do: correct the cause, in the spec of the components or by another version of the operator. Or
// set the annotation rollout: ignore on a component to leave its failure out of the count.
const reasonRolloutStopped = "RolloutStopped"

// errNoDigest is a mistake of the setup.
var errNoDigest = errors.New("option Rollout needs a generator that reports a digest, by which another version is noticed: use one of Corbel's generators for files, " +
	"give yours one by manifests.WithDigest, or set the option BuildDigest, for example to the version of the operator")

// checkRollout returns all mistakes in the option.
func (s *settings) checkRollout() error {
	if s.rollout == nil {
		return nil
	}
	var errs []error
	limits := rollout.Limits{MaxUnavailable: s.rollout.MaxUnavailable, Pause: s.rollout.Pause}
	if err := limits.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			errs = append(errs, errors.New("option Rollout."+line))
		}
	}
	if s.rollout.Canaries != nil {
		if _, err := metav1.LabelSelectorAsSelector(s.rollout.Canaries); err != nil {
			errs = append(errs, fmt.Errorf("option Rollout.Canaries: %w", err))
		}
	}
	if s.historyLimit == 0 {
		errs = append(errs, errors.New("option Rollout needs a RevisionHistoryLimit of at least 1, because a component that waits is kept at the manifests of its revision"))
	}
	return errors.Join(errs...)
}

// said returns the message of condition Ready.
func said(status *Status) string {
	_, _, message := status.GetState()
	return message
}

// canarySelector returns the selector of the canaries; nothing without one.
func (r Rollout) canarySelector() labels.Selector {
	if r.Canaries == nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(r.Canaries)
	if err != nil { // the setup has reported it
		return labels.Nothing()
	}
	return selector
}

// rolloutOf returns the annotation rollout of a component; empty if there is none.
func (h *handler) rolloutOf(obj Component) (string, error) {
	annotation := h.self.Annotation(vocabulary.AnnotationRollout)
	switch value := obj.GetAnnotations()[annotation]; value {
	case "", rolloutPromote, rolloutIgnore:
		return value, nil
	case rolloutPin:
		if h.settings.historyLimit == 0 {
			return "", fmt.Errorf("annotation %s: %q is not possible, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", annotation, value)
		}
		if renders.Digest(h.revisions.Renderer.Generator) == "" {
			return "", fmt.Errorf("annotation %s: %q is not possible, because the generator of the operator reports no digest", annotation, value)
		}
		return value, nil
	default:
		return "", fmt.Errorf(`annotation %s: %q must be "pin", "promote" or "ignore"`, annotation, sentence.Shorten(value, 64))
	}
}

// turnOf says why a component may have to keep its version: a revision would start only because the operator has another
// generator. It is empty if the revision starts in any case.
func (h *handler) turnOf(obj Component, next revision.Digests, pinned revision.Pin) string {
	status, id := revision.Of(obj), next.Generator
	current, recorded := status.Current(), status.Processing()
	asked, _ := h.rolloutOf(obj) // a mistake was reported
	counted := recorded.Generation == strconv.FormatInt(obj.GetGeneration(), 10)
	switch {
	case h.fleet == nil && asked != rolloutPin, asked == rolloutPromote, id == "", pinned.IsSet():
		return ""
	case current == nil || current.Generator == id || status.AppliedGeneration == 0 || !counted || !h.revisions.Starts(obj, next):
		return ""
	case asked == rolloutPin:
		return fmt.Sprintf("the next version is not applied, because the annotation %s/%s is %s", h.self.Name, vocabulary.AnnotationRollout, rolloutPin)
	}
	return waitsForTurn
}

// plannedTurn says why what is planned is not applied yet; empty if it is. A plan takes no turn, so what the status says counts.
func (h *handler) plannedTurn(obj Component, next revision.Digests, pinned revision.Pin) string {
	turn := h.turnOf(obj, next, pinned)
	if turn == waitsForTurn && !strings.Contains(said(obj.GetStatus()), waitsForTurn) {
		return ""
	}
	return turn
}

// isHeld reports whether a component keeps its version, because it is not its turn. One that is admitted counts from now on.
func (h *handler) isHeld(ctx context.Context, obj Component, next revision.Digests, pinned revision.Pin) (bool, error) {
	turn := h.turnOf(obj, next, pinned)
	if turn == "" {
		return false, nil
	}
	h.remembered(obj).turn = turn
	if turn != waitsForTurn {
		return true, nil
	}
	h.remembered(obj).unasked = false
	may, err := h.fleet.mayStart(ctx, next.Generator, client.ObjectKeyFromObject(obj), h.reconciledMember(obj, false))
	if err != nil {
		return false, h.self.About(obj, err)
	}
	if may {
		h.remembered(obj).turn = ""
	}
	return !may, nil
}

// waitsForTurn is what a component says that waits. It does not say for how many others: then each of
// their updates would be a write to all that wait.
const waitsForTurn = "the next version waits for its turn"

// reconciledMember is fleetMember for a component that is being reconciled.
func (h *handler) reconciledMember(obj Component, skipped bool) rollout.Component {
	known := h.remembered(obj)
	c := h.fleetMember(obj, h.generatorOf(known), skipped)
	// One that asks may have been ready with the version, and was rolled back by hand since.
	if waits := strings.HasPrefix(known.turn, waitsForTurn); waits && c.State == rollout.Done {
		c.State, c.ReadyAt = rollout.Waiting, time.Time{}
	}
	if c.State == rollout.Waiting && known.unasked {
		c.State = rollout.Unable
	}
	return c
}

// generatorOf identifies the generator that a component is, or was last, reconciled with.
func (h *handler) generatorOf(known *remembered) string {
	return cmp.Or(known.generator, revision.GeneratorID(renders.Digest(h.revisions.Renderer.Generator)))
}

// fleetMember returns what a roll-out of a generator has to know of a component, by its status alone. Skipped says
// that it is not reconciled.
func (h *handler) fleetMember(obj Component, generator string, skipped bool) (c rollout.Component) {
	status := revision.Of(obj)
	c.Canary = h.fleet.canaries.Matches(labels.Set(obj.GetLabels()))
	asked, _ := h.rolloutOf(obj)
	a := status.RenderedBy(generator)
	pinned := asked == rolloutPin || h.self.Value(obj, vocabulary.AnnotationRollbackTo) != ""
	madeWith := ""
	if of := status.Processing().Generator; of != "" {
		madeWith = revision.GeneratorID(of[1:])
	}
	neverApplied := status.Current() == nil || status.AppliedGeneration == 0
	switch {
	case a.Ready != nil:
		c.State = rollout.Done
		if a.Before != nil {
			c.ReadyAt = a.Ready.ReadyAt.Add(time.Second) // which has lost its fraction, and no pause ends early
		}
	case skipped:
		c.State = rollout.Pinned
	case a.Last == nil && neverApplied:
		c.State = rollout.Done // it is installed with the version, at once
	case a.Last == nil && pinned:
		c.State = rollout.Pinned
	case a.Last == nil && madeWith == generator:
		c.State = rollout.Done // the version that it leaves renders the same
	case a.Last == nil:
		c.State = rollout.Waiting
	case a.Before == nil, madeWith != "" && madeWith != generator: // the version renders the same
		c.State = rollout.Done
	case a.Last.Revision == status.Revision && a.Last.Result == v1alpha1.RevisionProcessing && !h.isStuck(obj):
		c.State = rollout.Updating
	case asked == rolloutIgnore || a.Before.Result != v1alpha1.RevisionReady:
		c.State = rollout.Done
	default:
		c.State, c.Why = rollout.Failed, failureOf(obj)
	}
	return c
}

// isStuck reports whether a revision that is applied does not become ready by itself.
func (h *handler) isStuck(obj Component) bool {
	timedOut := revision.Of(obj).TimedOut(intervalsOf(obj).Timeout, h.now())
	_, reason, _ := obj.GetStatus().GetState() // Processing after the timeout: see Facts.Settling
	return conditions.IsTrue(conditionsOf(obj), v1alpha1.ConditionStalled) || timedOut && reason != vocabulary.ReasonProcessing
}

// failureOf says why a component failed, and which field manager wrote that into its status: a forged status can stop a roll-out.
func failureOf(obj Component) string {
	status := obj.GetStatus()
	text := sentence.Shorten(said(status), verdict.MaxSentence)
	if status.Rollback != nil {
		text = status.Rollback.Message
	}
	var last metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "status" && (last.Manager == "" || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	if last.Manager != "" {
		text += fmt.Sprintf(" (status written by %s)", last.Manager)
	}
	return text
}

// noteTurn notes what became of a component for the roll-out, and brings condition RolloutStopped in line
// with it.
func (h *handler) noteTurn(ctx context.Context, obj Component, skipped bool) {
	key, setter := client.ObjectKeyFromObject(obj), conditionsOf(obj)
	condition := conditions.Get(setter, v1alpha1.ConditionRolloutStopped)
	if h.fleet == nil || obj.GetDeletionTimestamp() != nil {
		h.fleet.remove(key)
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	c := h.reconciledMember(obj, skipped)
	h.remembered(obj).updated = nil
	if c.State == rollout.Done || c.State == rollout.Pinned {
		// The next one takes its place. First, the status has to say that it may, for the next leader.
		h.remembered(obj).updated = &c
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	if c.State == rollout.Failed && condition != nil { // the next process has to know whether that is still so
		if err := h.fleet.load(ctx, h.generatorOf(h.remembered(obj))); err != nil {
			logf.FromContext(ctx).Error(err, "the components cannot be listed for the roll-out")
			return
		}
	}
	stopped, message, first := h.fleet.set(h.generatorOf(h.remembered(obj)), key, c, condition != nil)
	if c.State != rollout.Failed || !stopped {
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	message = sentence.Shorten(fmt.Sprintf("%s; correct the cause, or set the annotation %s/%s: %s on those that are not to count",
		message, h.self.Name, vocabulary.AnnotationRollout, rolloutIgnore), conditions.MaxMessage)
	conditions.Set(setter, metav1.Condition{
		Type: v1alpha1.ConditionRolloutStopped, Status: metav1.ConditionTrue, Reason: reasonRolloutStopped, Message: message,
	})
	if first {
		h.telemetry.Warn(obj, reasonRolloutStopped, "Reconcile", message)
	}
}

// noteUpdated notes that a component takes no place any more, if its status was written.
func (h *handler) noteUpdated(key client.ObjectKey, err error) {
	if h.fleet == nil {
		return
	}
	if known := h.memory.entryOf(key); known.updated != nil && err == nil {
		h.fleet.set(h.generatorOf(known), key, *known.updated, false)
		known.updated = nil
	}
}

// isSkipped reports whether a component that was listed is not reconciled.
func (h *handler) isSkipped(obj Component) bool {
	policy := h.settings.management
	if own := h.self.Value(obj, v1alpha1.AnnotationManagementPolicy); own != "" {
		policy = v1alpha1.ManagementPolicy(own)
	}
	return strings.EqualFold(string(policy), string(v1alpha1.ManagementPolicySkip)) || h.isSuspended(obj)
}

// listed is a component that was listed.
type listed struct {
	rollout.Component
	// said: it has the condition RolloutStopped.
	said bool
}

// isForbidden reports whether the server refuses a request to the user.
func isForbidden(err error) bool { return apierrors.IsForbidden(err) }
