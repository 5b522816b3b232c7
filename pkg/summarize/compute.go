// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// ComputeReconcileResult computes what a pass returns, and brings Reconciling and
// Stalled of the object in line with it. The options are for writing the object.
//
// Reconciling is never added here: the code that finds a difference does that.
// It is removed on success and when stalled, and else it stays.
func ComputeReconcileResult(obj conditions.Setter, res result.Result, err error, builder result.RuntimeResultBuilder) ([]patch.Option, ctrl.Result, error) {
	verdict := result.Compute(res, err, builder)
	applyVerdict(obj, time.Now(), verdict)
	return patchOptions(verdict), verdict.Result, verdict.Err
}

func patchOptions(verdict result.Verdict) []patch.Option {
	if !verdict.Observed {
		return nil
	}
	return []patch.Option{patch.WithStatusObservedGeneration{}}
}

func applyVerdict(obj conditions.Setter, now time.Time, verdict result.Verdict) {
	if verdict.Reconciling == result.Remove {
		conditions.Delete(obj, v1alpha1.ConditionReconciling)
	}
	switch verdict.Stalled {
	case result.Mark:
		conditions.MarkStalled(obj, now, verdict.Reason, "%s", verdict.Message)
	case result.Remove:
		conditions.Delete(obj, v1alpha1.ConditionStalled)
	}
}
