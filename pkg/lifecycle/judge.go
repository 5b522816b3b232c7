// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
)

// standard are the conditions of a handler that does not word its own.
var standard = summarize.Conditions{
	Target: v1alpha1.ConditionReady,
	Owned:  []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled},
}

// judge lets the handler word the conditions, or does it. It returns what goes
// into the summary.
func (p *pass[T]) judge(ctx context.Context) ([]summarize.Conditions, result.Result, error) {
	now := p.options.Clock()
	judge, ok := p.handler.(Judge[T])
	if !ok {
		return p.judgeByDefault(p.result, p.err)
	}
	var (
		res result.Result
		err error
	)
	panicked := contain(func() error {
		res, err = judge.Judge(ctx, p.obj, Pass{Stage: p.stage, Policy: p.policy, Result: p.result, Err: p.err, Now: now})
		return nil
	})
	if panicked != nil {
		logPanic(ctx, panicked)
		return p.judgeByDefault(result.Empty, panicked)
	}
	return nil, res, err
}

// judgeByDefault says that somebody is at work as long as there is something to
// come. Ready itself follows from the summary.
func (p *pass[T]) judgeByDefault(res result.Result, err error) ([]summarize.Conditions, result.Result, error) {
	obj, now := p.options.Conditions(p.obj), p.options.Clock()
	acted := p.stage == StageClaim || p.stage == StageApply
	if acted && err == nil && res == result.Empty && !conditions.IsTrue(obj, v1alpha1.ConditionReady) {
		// Nothing was to be done and nothing is to come. What Ready says is of an earlier pass.
		res = result.Success
	}
	verdict := result.Compute(res, err, p.builder())
	switch {
	case p.stage == StageSkip && err == nil:
		message := "suspended: nothing is created or updated"
		if p.policy == Skip {
			message = "the management policy is skip: nothing is created, updated or deleted"
		}
		conditions.Delete(obj, v1alpha1.ConditionReconciling)
		conditions.MarkUnknown(obj, now, v1alpha1.ConditionReady, v1alpha1.ReasonSuspended, "%s", message)
	case verdict.Outcome == result.Requeued, verdict.Outcome == result.Waited, verdict.Outcome == result.Failed:
		conditions.MarkReconciling(obj, now, verdict.Reason, "%s", cmp.Or(verdict.Message, "work goes on"))
	}
	return []summarize.Conditions{standard}, res, err
}
