// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Options tune an Executor.
type Options struct {
	// Name is the name of the reconciler: the prefix of our marks.
	Name string
	// FieldOwner is the field manager of all writes.
	FieldOwner string
	// Parallelism is how many steps are under way at once, for all calls together,
	// before it is known how much the server can do. Defaults to observe.DefaultParallelism.
	Parallelism int
	// TypeFence keeps everybody from creating instances of a type, or objects in
	// a namespace, from the last look at them until the deletion came in.
	TypeFence bool
	// Tracer makes a span of every stage and every step; none by default.
	Tracer trace.Tracer
}

// Executor executes the steps of plans on one target. All that it remembers
// between calls is which owners have left no fence behind, and how fast the server
// is. It is safe for concurrent use.
type Executor struct {
	pace     *pace
	swept    sync.Map // by the id of the owner
	objects  *cluster.Objects
	types    *cluster.Types
	observer *observe.Observer
	options  Options
}

// New returns an Executor. The observer judges the server's answers.
func New(target cluster.Target, observer *observe.Observer, options Options) *Executor {
	options.Parallelism = cmp.Or(max(options.Parallelism, 0), observe.DefaultParallelism)
	return &Executor{pace: newPace(options.Parallelism), objects: target.Objects(), types: target.Types(), observer: observer, options: options}
}

// Run executes steps, which are ordered by stage, and returns what became of
// them, in their order. A stage in which a step failed or was blocked is the
// last one. Steps that were not started have no result: those of later stages,
// those that were left when the context ended, and the rest of a stage in which
// the server does not answer any more, or has too much to do.
func (e *Executor) Run(ctx context.Context, steps []plan.Step) []plan.Result {
	var results []plan.Result
	for len(steps) > 0 {
		end := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Stage != steps[0].Stage })
		if end < 0 {
			end = len(steps)
		}
		done := e.wave(ctx, steps[:end])
		results = append(results, done...)
		failed := slices.ContainsFunc(done, func(r plan.Result) bool { return r.Err != nil || r.Blocked != "" })
		if failed || len(done) < end || ctx.Err() != nil {
			break
		}
		steps = steps[end:]
	}
	return results
}

// stage executes steps that do not depend on each other.
func (e *Executor) stage(ctx context.Context, steps []plan.Step) []plan.Result {
	var silent atomic.Int64 // failures in a row because the server is not available
	results := make([]*plan.Result, len(steps))
	var group sync.WaitGroup
	room := make(chan struct{}, maxSpeedup*e.options.Parallelism)
	for i, step := range steps {
		room <- struct{}{} // before the turn: whoever has one does not wait for anything
		if ctx.Err() != nil || silent.Load() >= int64(e.options.Parallelism) {
			break
		}
		turn := &turn{pace: e.pace}
		if turn.take(ctx) != nil {
			break
		}
		group.Go(func() {
			defer func() { <-room }()
			defer turn.end()
			result := e.told(withTurn(ctx, turn), step)
			if IsUnavailable(result.Err) {
				silent.Add(1)
			} else {
				silent.Store(0)
			}
			results[i] = &result
		})
	}
	group.Wait()
	done := make([]plan.Result, 0, len(steps))
	for _, result := range results {
		if result != nil {
			done = append(done, *result)
		}
	}
	return done
}

// contained executes one step and turns a panic, which only a mistake of ours
// can cause, into a failure of this step.
func (e *Executor) contained(ctx context.Context, step plan.Step) (result plan.Result) {
	defer func() {
		if value := recover(); value != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", value), "executing a step",
				"verb", step.Verb, "object", step.Key.String(), "stack", string(debug.Stack()))
			result = failed(step, fmt.Errorf("internal error of the operator (%v); the outcome is not known, and the log has the stack", value))
		}
	}()
	if step.Verb != plan.VerbDryRun {
		written := e.observer.Writing(ctx, step)
		defer func() { written(result) }()
	}
	kept := step.Desired
	step.Desired = kept.Unpacked()
	result = e.execute(ctx, step)
	result.Step.Desired = kept // the manifest is not needed any more
	advise(result.Err, step.Because, e.options.Name)
	return result
}

func (e *Executor) execute(ctx context.Context, step plan.Step) plan.Result {
	switch step.Verb {
	case plan.VerbCreate:
		return e.write(ctx, step, e.create)
	case plan.VerbReplace:
		return e.write(ctx, step, e.replace)
	case plan.VerbMerge:
		return e.write(ctx, step, e.merge)
	case plan.VerbOverride:
		return e.write(ctx, step, e.override)
	case plan.VerbMark:
		return e.write(ctx, step, e.mark)
	case plan.VerbDryRun:
		return e.dryRun(ctx, step)
	case plan.VerbDelete:
		return e.whileMeant(ctx, step, e.remove)
	case plan.VerbOrphan:
		return e.whileMeant(ctx, step, e.orphan)
	default:
		return failed(step, fmt.Errorf("the verb %q is not known", step.Verb))
	}
}

// failed is the result of a step whose outcome is not known or that did nothing.
func failed(step plan.Step, err error) plan.Result {
	classified := classify(step, err)
	return plan.Result{
		Step:        step,
		Observation: plan.Observation{Why: observe.Sentence(classified.Error())},
		Err:         classified,
	}
}
