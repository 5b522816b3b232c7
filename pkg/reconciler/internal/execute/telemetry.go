// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// wave executes a stage in a span.
func (e *Executor) wave(ctx context.Context, steps []plan.Step) []plan.Result {
	ctx, span := e.options.Tracer.Start(ctx, "corbel.wave")
	span.SetInt("corbel.stage", steps[0].Stage)
	span.SetInt("corbel.steps", len(steps))
	results := e.stage(ctx, steps)
	span.End(nil)
	return results
}

// told executes a step and tells about it: in a span, in the log and in the
// metrics. The text of an error is not among it: the caller tells that, once.
func (e *Executor) told(ctx context.Context, step plan.Step) plan.Result {
	ctx, span := e.options.Tracer.Start(ctx, "corbel.write")
	result := e.contained(ctx, step)
	verb, class := step.Verb, classOf(result)
	if result.Released {
		verb = plan.VerbOrphan
	}
	describe(span, step, verb, result)
	controller := metrics.ControllerOf(ctx, e.options.Name)
	if class == "" && verb != plan.VerbDryRun {
		metrics.Wrote(controller, string(verb), string(step.Because))
	} else if class != "" {
		metrics.WriteFailed(controller, string(step.Verb), string(class))
	}
	if logger := log.FromContext(ctx).V(1); logger.Enabled() {
		logger = logger.WithValues("verb", verb, "object", step.Key.String(), "because", step.Because, "uid", uidOf(result))
		switch {
		case class != "":
			logger.Info("an object was not written", "class", class)
		case verb == plan.VerbDryRun:
			logger.Info("the server would accept an object")
		default:
			logger.Info("wrote an object")
		}
	}
	return result
}

// blocked is the class of a step that its guard held back.
const blocked Class = "Blocked"

// classOf is empty if the step succeeded.
func classOf(result plan.Result) Class {
	switch failure, ok := errors.AsType[*Error](result.Err); {
	case result.Blocked != "":
		return blocked
	case result.Err == nil:
		return ""
	case ok:
		return failure.Class
	default:
		return Failed
	}
}

func uidOf(result plan.Result) types.UID {
	if result.Observation.UID != "" {
		return result.Observation.UID
	}
	return result.Step.UID
}

func describe(span trace.Span, step plan.Step, verb plan.Verb, result plan.Result) {
	if span.On() {
		span.Set("corbel.verb", string(verb))
		span.Set("corbel.object", step.Key.String())
		span.Set("corbel.because", string(step.Because))
		span.Set("corbel.uid", string(uidOf(result)))
		if result.Blocked != "" {
			span.Set("corbel.blocked", result.Blocked)
		}
	}
	span.End(result.Err)
}
