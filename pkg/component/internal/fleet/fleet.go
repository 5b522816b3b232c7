// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet rolls out another generator, such as the next version of a chart: each component starts the new revision in its turn. The
// turn follows from the histories of all components, so the next leader decides the same.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// The values of the annotation rollout.
const pin, promote, ignore = "pin", "promote", "ignore"

// ReasonRolloutStopped means that the new version of the operator updates no further component, because a canary
// or too many components have failed.
//
// Conditions: RolloutStopped True on the components that failed
// Event type: Warning
// What to do: correct the cause in the components or the operator. Or set the annotation rollout: ignore on a
// failed component.
const ReasonRolloutStopped = "RolloutStopped"

// waitsForTurn is the message of a component that waits. It has no number of components: each update would be a write to all that wait.
const waitsForTurn = "the next version waits for its turn"

// Options are the settings of a fleet.
type Options struct {
	Self *identity.Operator
	// Generator returns the identity of the operator's generator, as histories have it.
	Generator func() string
	// Limits are nil if each component starts the next version at once.
	Limits *Limits
	// NoHistory: the operator keeps no manifests of revisions.
	NoHistory bool
	// ManagementPolicy applies to components that have no annotation for it.
	ManagementPolicy v1alpha1.ManagementPolicy
	IsSuspended      func(identity.Component) bool
	Timeout          func(identity.Component) time.Duration
	Lister           Lister
	Telemetry        *telemetry.Telemetry
	// Request requests a full reconcile of a component.
	Request func(client.ObjectKey)
	Now     func() time.Time
}

// Fleet says whether it is the turn of a component to start a revision. Calls for different components may overlap.
type Fleet struct {
	Options
	rollout rollout
	notes   sync.Map // the note of each component, by its key
}

// note is the memory of the last reconcile of a component.
type note struct {
	// turn is the reason why the component keeps its version, for people; empty if it does not.
	turn string
	// generator identifies the generator of the last full reconcile; empty if there was none.
	generator string
	// updated is a state that the roll-out learns as soon as the status of the component is written; nil if there is none.
	updated *Member
}

// New returns the fleet of an operator.
func New(o Options) *Fleet {
	f := &Fleet{Options: o}
	f.rollout = rollout{limits: o.Limits, now: o.Now, request: o.Request, list: f.list, round: round{members: members{}}}
	return f
}

func (f *Fleet) note(key client.ObjectKey) *note {
	n, _ := f.notes.LoadOrStore(key, &note{})
	return n.(*note)
}

// Remove forgets a component that is gone.
func (f *Fleet) Remove(key client.ObjectKey) {
	f.notes.Delete(key)
	f.rollout.remove(key)
}

// Start notes that a full reconcile of a component starts, with the generator of now. It may ask for the turn.
func (f *Fleet) Start(key client.ObjectKey) {
	n := f.note(key)
	n.turn, n.generator = "", f.Generator()
}

// Turn returns the reason why a component keeps its version, for people; empty if it does not.
func (f *Fleet) Turn(key client.ObjectKey) string { return f.note(key).turn }

// AddToTurn adds a text to the reason why a component keeps its version, and returns the reason.
func (f *Fleet) AddToTurn(key client.ObjectKey, text string) string {
	n := f.note(key)
	n.turn += text
	return n.turn
}

// Ask returns the reason why a component must not start a revision now; empty if it may. A component that is admitted counts as
// Updating from now on.
func (f *Fleet) Ask(ctx context.Context, obj identity.Component, c revision.Candidate) (turn string, err error) {
	key := client.ObjectKeyFromObject(obj)
	n := f.note(key)
	if n.turn = f.turn(obj, c); n.turn != waitsForTurn {
		return n.turn, nil
	}
	may, err := f.rollout.mayStart(ctx, c.Digests.Generator, key, f.reconciled(obj, false))
	if err != nil {
		return n.turn, f.Self.About(obj, err)
	}
	if may {
		n.turn = ""
	}
	return n.turn, nil
}

// Planned returns the reason why a planned revision is not applied yet; empty if it is. A plan takes no turn, so the message in the
// status counts, and it says nothing about a generator that the operator does not have.
func (f *Fleet) Planned(obj identity.Component, c revision.Candidate) string {
	turn := f.turn(obj, c)
	if _, _, message := obj.GetStatus().GetState(); turn == waitsForTurn && (c.Digests.Generator != f.Generator() || !strings.Contains(message, waitsForTurn)) {
		return ""
	}
	return turn
}

// turn returns the reason why a component may have to keep its version: only the generator is another one. Else it is empty.
func (f *Fleet) turn(obj identity.Component, c revision.Candidate) string {
	status, id := revision.Of(obj), c.Digests.Generator
	current := status.Current()
	asked, _ := f.Annotation(obj) // a mistake was reported
	counted := status.Processing().Generation == strconv.FormatInt(obj.GetGeneration(), 10)
	switch {
	case f.Limits == nil && asked != pin, asked == promote, id == "", c.Pin.IsSet(),
		current == nil, current.Generator == id, status.AppliedGeneration == 0, !counted, !status.Starts(c.Digests):
		return ""
	case asked == pin:
		return fmt.Sprintf("the next version is not applied, because the annotation %s is %s", f.Self.Annotation(vocabulary.AnnotationRollout), pin)
	}
	return waitsForTurn
}

// Annotation returns the annotation rollout of a component; empty if there is none.
func (f *Fleet) Annotation(obj metav1.Object) (string, error) {
	annotation := f.Self.Annotation(vocabulary.AnnotationRollout)
	switch value := obj.GetAnnotations()[annotation]; {
	case value == "", value == promote, value == ignore:
		return value, nil
	case value != pin:
		return "", fmt.Errorf(`annotation %s: %q must be "pin", "promote" or "ignore"`, annotation, sentence.Shorten(value, 64))
	case f.NoHistory:
		return "", fmt.Errorf("annotation %s: %q is not possible, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", annotation, value)
	case f.Generator() == "":
		return "", fmt.Errorf("annotation %s: %q is not possible, because the generator of the operator reports no digest", annotation, value)
	}
	return pin, nil
}

// Report tells the roll-out how a reconcile of a component ended, and brings the condition RolloutStopped in line with it.
func (f *Fleet) Report(ctx context.Context, obj identity.Component, skipped bool) {
	key, setter := client.ObjectKeyFromObject(obj), identity.Conditions(obj)
	if f.Limits == nil || obj.GetDeletionTimestamp() != nil {
		f.rollout.remove(key)
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	m, n := f.reconciled(obj, skipped), f.note(key)
	if n.updated = nil; m.State == Done || m.State == Pinned {
		// The next component takes its place. First, the status has to say that it may, for the next leader.
		n.updated = &m
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	if m.State == Failed && m.said { // the next process has to know whether that is still so
		if err := f.rollout.load(ctx, f.generatorOf(n)); err != nil {
			logf.FromContext(ctx).Error(err, "the components cannot be listed for the roll-out")
			return
		}
	}
	message, first := f.rollout.set(f.generatorOf(n), key, m)
	if message == "" {
		conditions.Delete(setter, v1alpha1.ConditionRolloutStopped)
		return
	}
	message = sentence.Shorten(fmt.Sprintf("%s; correct the cause, or set the annotation %s: %s on those that are not to count",
		message, f.Self.Annotation(vocabulary.AnnotationRollout), ignore), conditions.MaxMessage)
	conditions.Set(setter, metav1.Condition{
		Type: v1alpha1.ConditionRolloutStopped, Status: metav1.ConditionTrue, Reason: ReasonRolloutStopped, Message: message,
	})
	if first {
		f.Telemetry.Warn(obj, ReasonRolloutStopped, "Reconcile", message)
	}
}

// Written notes that the status of a component is written, so that its place is free for the next one.
func (f *Fleet) Written(key client.ObjectKey) {
	known, _ := f.notes.Load(key) // a session that ends early has none
	if n, _ := known.(*note); n != nil && n.updated != nil {
		f.rollout.set(f.generatorOf(n), key, *n.updated)
		n.updated = nil
	}
}

// generatorOf identifies the generator that a component is, or was last, reconciled with.
func (f *Fleet) generatorOf(n *note) string { return cmp.Or(n.generator, f.Generator()) }

// reconciled returns the state of a component that is being reconciled.
func (f *Fleet) reconciled(obj identity.Component, skipped bool) Member {
	n := f.note(client.ObjectKeyFromObject(obj))
	m := f.Member(obj, f.generatorOf(n), skipped)
	// A component that asks may have been ready with the version, and was rolled back by hand since.
	if strings.HasPrefix(n.turn, waitsForTurn) && m.State == Done {
		m.State, m.ReadyAt = Waiting, time.Time{}
	}
	if m.State == Waiting && n.turn == "" { // it did not ask
		m.State = Unable
	}
	return m
}
