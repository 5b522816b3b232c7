// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"context"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/result"
)

// Recorder records events. A nil Recorder records none.
type Recorder = events.EventRecorder

// Conditions defines how one condition summarises a list of conditions.
type Conditions struct {
	// Target is the condition to set, usually Ready.
	Target string
	// Owned are the conditions that no other client writes. After a conflict our
	// side is right about them.
	Owned []string
	// Summarize are the conditions that the target depends on, the most
	// important first. If it is empty, or the object has none of them, and the
	// target is Ready, then Ready follows from the result and the error.
	Summarize []string
	// NegativePolarity are those for which True is bad news.
	NegativePolarity []string
}

// ResultProcessor looks at a reconcile before its result is computed. It may change
// the object in memory. It cannot fail the reconcile.
type ResultProcessor func(ctx context.Context, recorder Recorder, obj client.Object, res result.Result, err error)

// helperOptions are the resolved options of SummarizeAndPatch. The functions that set them describe them.
type helperOptions struct {
	Conditions      []Conditions
	Processors      []ResultProcessor
	ReconcileResult result.Result
	ReconcileError  error
	// Without a ResultBuilder nothing is computed, and the caller ignores the result of SummarizeAndPatch.
	ResultBuilder result.RuntimeResultBuilder
	// Verdict is nil if it is to be computed.
	Verdict    *result.Verdict
	BiPolarity []string

	IgnoreNotFound, ObservedGenerationAlways, TransitionEvents bool
}

// Option configures SummarizeAndPatch.
type Option func(*helperOptions)

// WithConditions adds summaries, which are set in this order.
func WithConditions(conditions ...Conditions) Option {
	return func(o *helperOptions) { o.Conditions = append(o.Conditions, conditions...) }
}

// WithProcessors adds processors, which run first, in this order.
func WithProcessors(processors ...ResultProcessor) Option {
	return func(o *helperOptions) { o.Processors = append(o.Processors, processors...) }
}

// WithBiPolarityConditionTypes names conditions that are set to True when all is well and to False
// when not, such as "SourceVerified". A False condition makes Ready False, with its reason and
// message, even while the object is Reconciling; of several the first counts.
func WithBiPolarityConditionTypes(types ...string) Option {
	return func(o *helperOptions) { o.BiPolarity = append(o.BiPolarity, types...) }
}

// WithReconcileResult sets the result of the reconcile.
func WithReconcileResult(res result.Result) Option {
	return func(o *helperOptions) { o.ReconcileResult = res }
}

// WithReconcileError sets the error of the reconcile.
func WithReconcileError(err error) Option {
	return func(o *helperOptions) { o.ReconcileError = err }
}

// WithResultBuilder sets the builder, and thereby asks for the result to be computed.
func WithResultBuilder(builder result.RuntimeResultBuilder) Option {
	return func(o *helperOptions) { o.ResultBuilder = builder }
}

// WithVerdict sets the verdict about the reconcile, for a caller that has computed it already.
func WithVerdict(verdict result.Verdict) Option {
	return func(o *helperOptions) { o.Verdict = &verdict }
}

// WithIgnoreNotFound makes it no error that an object under deletion is gone.
func WithIgnoreNotFound() Option {
	return func(o *helperOptions) { o.IgnoreNotFound = true }
}

// WithObservedGenerationAlways sets status.observedGeneration to the generation
// that was reconciled, whatever the outcome. Default is only after success, when
// there was nothing to do, and when stalled.
func WithObservedGenerationAlways() Option {
	return func(o *helperOptions) { o.ObservedGenerationAlways = true }
}

// WithTransitionEvents makes an event of every change of Ready's status or
// reason, after it is on the server. The event has Ready's reason and message. A verdict
// that is Announced has no such event.
func WithTransitionEvents() Option {
	return func(o *helperOptions) { o.TransitionEvents = true }
}
