// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Options tune an Executor.
type Options struct {
	// Name is the name of the reconciler: the prefix of our label and annotation.
	Name string
	// FieldOwner is the field manager of all writes.
	FieldOwner string
	// Parallelism is how many steps are under way at once, for all calls together,
	// before it is known how much the server can do; it is at least 1.
	Parallelism int
	// Tracer makes a span of every stage and every step; none by default.
	Tracer trace.Tracer
}

// Executor executes the steps of plans on one target. Between calls it keeps only how fast
// the server is. It is safe for concurrent use.
type Executor struct {
	limiter  *limiter
	objects  *cluster.Objects
	types    *cluster.Types
	observer *observe.Observer
	options  Options
	mutators *mutators // nil in a preview
	// removed are objects that guards count as gone; nil except in a preview.
	removed map[types.UID]bool
	// reclaimed are the fields that a second apply removes; nil except in a preview, which sends only the first.
	reclaimed *fieldpath.Set
}

// New returns an Executor. The observer evaluates the server's answers.
func New(target cluster.Target, observer *observe.Observer, options Options) *Executor {
	return &Executor{limiter: newLimiter(options.Parallelism), objects: target.Objects(), types: target.Types(), observer: observer, options: options, mutators: &mutators{}}
}

// Run executes steps, which are ordered by stage, and returns their results in the same order. A
// stage in which a step failed or was blocked is the last one. Steps that were not started have no
// result: the steps of later stages, the steps that were skipped when the context ended, and the
// rest of a stage in which the server does not answer any more, or has too much to do.
func (e *Executor) Run(ctx context.Context, steps []plan.Step) []plan.Result {
	var results []plan.Result
	for len(steps) > 0 {
		end := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Stage != steps[0].Stage })
		if end < 0 {
			end = len(steps)
		}
		done := e.runStage(ctx, steps[:end])
		results = append(results, done...)
		failed := slices.ContainsFunc(done, func(r plan.Result) bool { return r.Err != nil || r.Blocked != "" })
		if failed || len(done) < end || ctx.Err() != nil {
			break
		}
		steps = steps[end:]
	}
	return results
}

// runStage executes steps that do not depend on each other.
func (e *Executor) runStage(ctx context.Context, steps []plan.Step) []plan.Result {
	ctx, span := e.options.Tracer.Start(ctx, "corbel.stage")
	defer span.End(nil)
	span.SetInt("corbel.stage.number", steps[0].Stage)
	span.SetInt("corbel.steps", len(steps))
	var unavailable atomic.Int64 // failures in a row because the server is not available
	results := make([]plan.Result, len(steps))
	var group errgroup.Group
	group.SetLimit(maxSpeedup * e.options.Parallelism)
	for i, step := range steps {
		if ctx.Err() != nil || unavailable.Load() >= int64(e.options.Parallelism) {
			break
		}
		if e.limiter.acquire(ctx) != nil {
			break
		}
		group.Go(func() error {
			start := time.Now()
			results[i] = e.runStep(ctx, step)
			e.limiter.release(time.Since(start))
			if IsUnavailable(results[i].Err) {
				unavailable.Add(1)
			} else {
				unavailable.Store(0)
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return slices.DeleteFunc(results, func(result plan.Result) bool { return result.Step.Verb == "" })
}

// runStep executes one step, lets the observer know the answer, and records it in a
// span, the log and the metrics. A panic, which only a bug in this repository can
// cause, becomes a failure of this step.
func (e *Executor) runStep(ctx context.Context, step plan.Step) (result plan.Result) {
	ctx, span := e.options.Tracer.Start(ctx, "corbel.write")
	answered := func(plan.Result) {}
	err := guard.Call(func() error {
		if step.Verb != plan.VerbDryRun {
			answered = e.observer.BeginWrite(ctx, step)
		}
		result = e.tryStep(ctx, step)
		return nil
	})
	if err != nil {
		guard.Log(log.FromContext(ctx), err, "executing a step", "verb", step.Verb, "object", step.Key.String())
		result = failed(step, fmt.Errorf("internal error of the operator (%w); the outcome is not known, and the log has the stack", err))
	}
	answered(result)
	e.report(ctx, span, step, result)
	return result
}

// tryStep executes one step. It neither records nor reports the result.
func (e *Executor) tryStep(ctx context.Context, step plan.Step) (result plan.Result) {
	packed := step.Desired
	step.Desired = packed.Unpacked()
	result = e.execute(ctx, step)
	if _, unserved := errors.AsType[*cluster.UnservedPathError](result.Err); unserved {
		// The path of the type is not served, so nothing was done. The second try asks the
		// server for the path.
		result = e.execute(ctx, step)
	}
	result.Step.Desired = packed // the manifest is not needed any more
	adviseOnImmutable(result.Err, step.Reason, e.options.Name)
	adviseOnUntyped(result.Err, e.options.Name)
	conceal(ctx, &result)
	return result
}

func (e *Executor) execute(ctx context.Context, step plan.Step) plan.Result {
	switch step.Verb {
	case plan.VerbCreate, plan.VerbReplace, plan.VerbMerge, plan.VerbOverride, plan.VerbMark:
		return e.write(ctx, step)
	case plan.VerbDryRun:
		return e.dryRun(ctx, step)
	case plan.VerbDelete:
		return e.retryOnConflict(ctx, step, e.deleteStep)
	case plan.VerbOrphan:
		return e.retryOnConflict(ctx, step, e.orphan)
	default:
		return failed(step, fmt.Errorf("the verb %q is not known", step.Verb))
	}
}

// failed is the result of a step that did nothing or has an unknown outcome.
func failed(step plan.Step, err error) plan.Result {
	classified := classify(step, err)
	return plan.Result{
		Step:        step,
		Observation: plan.Observation{Message: observe.Sentence(classified.Error())},
		Err:         classified,
	}
}

// report records a result in the span, the metrics and the log. The text of an error
// is not in it: the caller reports that, once.
func (e *Executor) report(ctx context.Context, span trace.Span, step plan.Step, result plan.Result) {
	verb, class := step.Verb, ClassOf(result.Err)
	if result.Orphaned {
		verb = plan.VerbOrphan
	}
	if result.Blocked != "" {
		class = blocked
	}
	uid := cmp.Or(result.Observation.UID, result.Step.UID)
	if span.On() {
		span.Set("corbel.verb", string(verb))
		span.Set("corbel.object", step.Key.String())
		span.Set("corbel.because", string(step.Reason))
		span.Set("corbel.uid", string(uid))
		if result.Blocked != "" {
			span.Set("corbel.blocked", result.Blocked)
		}
	}
	span.End(result.Err)
	controller := metrics.ControllerOf(ctx, e.options.Name)
	if class == "" && verb != plan.VerbDryRun {
		metrics.Wrote(controller, string(verb), string(step.Reason))
	} else if class != "" {
		metrics.WriteFailed(controller, string(step.Verb), string(class))
	}
	if logger := log.FromContext(ctx).V(1); logger.Enabled() {
		logger = logger.WithValues("verb", verb, "object", step.Key.String(), "because", step.Reason, "uid", uid)
		switch {
		case class != "":
			logger.Info("an object was not written", "class", class)
		case verb == plan.VerbDryRun:
			logger.Info("the server would accept an object")
		default:
			logger.Info("wrote an object")
		}
	}
}

// blocked is the class of a step that its guard held back.
const blocked Class = "Blocked"
