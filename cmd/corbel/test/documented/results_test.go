// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
)

// The names and signatures of Flux's model of results.
var (
	_ = []result.Result{result.Empty, result.Requeue, result.Success}

	_ error = &result.Stalling{Reason: "Invalid", Err: errors.New("")}
	_ error = &result.Waiting{RequeueAfter: time.Second, Reason: "Dependency", Err: errors.New("")}
	_ error = &result.Event{Reason: "Network", Err: errors.New("")}
	_ error = &result.Generic{Ignore: true, Reason: "Network", Err: errors.New("")}

	_ func(result.RuntimeResultBuilder, result.Result, error) ctrl.Result = result.RuntimeResultBuilder.BuildRuntimeResult
	_ result.RuntimeResultBuilder                                         = result.AlwaysRequeueResultBuilder{RequeueAfter: time.Minute}
	_ result.RuntimeResultBuilder                                         = result.EventDrivenResultBuilder{RetryAfter: time.Minute}

	_ func(conditions.Setter, result.Result, error, result.RuntimeResultBuilder) ([]patch.Option, ctrl.Result, error) = summarize.ComputeReconcileResult
	_ func(summarize.Recorder, *patch.Helper) *summarize.Helper                                                       = summarize.NewHelper
	_ func(*summarize.Helper, context.Context, conditions.Setter, ...summarize.Option) (ctrl.Result, error)           = (*summarize.Helper).SummarizeAndPatch
	_ summarize.ResultProcessor                                                                                       = func(context.Context, summarize.Recorder, client.Object, result.Result, error) {}

	_                                                                                  = []patch.Option{patch.WithOwnedConditions{Conditions: []string{"Ready"}}, patch.WithStatusObservedGeneration{}}
	_ func(conditions.Setter, ...string)                                               = conditions.Delete
	_ func(conditions.Setter, string, string, ...any)                                  = conditions.MarkStalled
	_ func(conditions.Setter, string, string, ...any)                                  = conditions.MarkReconciling
	_ func(conditions.Setter, string, ...conditions.SummaryOption) bool                = conditions.SetSummary
	_                                                                                  = []conditions.SummaryOption{conditions.WithConditions("a"), conditions.WithNegativePolarityConditions("a")}
	_ func(client.Object, client.Client, ...patch.HelperOption) (*patch.Helper, error) = patch.NewHelper
	_ func(*patch.Helper, context.Context, client.Object, ...patch.Option) error       = (*patch.Helper).Patch
)

var gitRepoReadyConditions = summarize.Conditions{
	Target:           "Ready",
	Owned:            []string{"SourceVerified", "FetchFailed", "IncludeUnavailable", "ArtifactOutdated", "Ready", "Reconciling", "Stalled"},
	Summarize:        []string{"IncludeUnavailable", "SourceVerified", "FetchFailed", "ArtifactOutdated", "Stalled", "Reconciling"},
	NegativePolarity: []string{"FetchFailed", "IncludeUnavailable", "ArtifactOutdated", "Stalled", "Reconciling"},
}

// The example of its documentation.
var _ = func(ctx context.Context, recorder summarize.Recorder, helper *patch.Helper, obj conditions.Setter, recResult result.Result, retErr error) (ctrl.Result, error) {
	summarizeHelper := summarize.NewHelper(recorder, helper)
	summarizeOpts := []summarize.Option{
		summarize.WithConditions(gitRepoReadyConditions),
		summarize.WithBiPolarityConditionTypes("SourceVerified"),
		summarize.WithReconcileResult(recResult),
		summarize.WithReconcileError(retErr),
		summarize.WithIgnoreNotFound(),
		summarize.WithProcessors(
			summarize.RecordContextualError,
			summarize.RecordReconcileReq,
		),
		summarize.WithResultBuilder(result.AlwaysRequeueResultBuilder{RequeueAfter: time.Minute}),
	}
	return summarizeHelper.SummarizeAndPatch(ctx, obj, summarizeOpts...)
}
