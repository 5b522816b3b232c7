// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// name is a Go name: package, and one or two names.
var name = regexp.MustCompile("`([a-z]+\\.[A-Z][A-Za-z0-9]*)(?:\\.([A-Z][A-Za-z0-9]*))?`")

// TestEveryDocumentedNameIsUsed looks for the names in the tables of seeds.md among the uses below, which compile.
func TestEveryDocumentedNameIsUsed(t *testing.T) {
	document := check.Must(os.ReadFile(filepath.Join(root, "docs/contributing/seeds.md")))(t)
	uses := check.Must(os.ReadFile("seeds_test.go"))(t)
	isUsed := func(name string) bool { return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).Match(uses) }
	total := 0
	for line := range strings.Lines(string(document)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		// The second column of a table is ours, the first one theirs.
		for _, match := range name.FindAllStringSubmatch(cells[2], -1) {
			total++
			if !isUsed(match[1]) || match[2] != "" && !isUsed(match[2]) {
				t.Errorf("seeds.md names %s, which is not used below", match[0])
			}
		}
	}
	if total < 150 {
		t.Errorf("%d names are documented: something is not seen", total)
	}
}

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

// MyKind stands for a kind.
type MyKind = corev1.ConfigMap

// The names and signatures of the reconcilers and watchers of the Grafana app SDK.
var (
	_ func(changes.Reconciler, context.Context, changes.ReconcileRequest) (changes.ReconcileResult, error) = changes.Reconciler.Reconcile

	_ = changes.ReconcileRequest{Action: changes.ReconcileActionUnknown, Object: &MyKind{}, Old: &MyKind{}, State: map[string]any{}}
	_ = changes.TypedReconcileRequest[*MyKind]{Action: changes.ReconcileActionUpdated, Object: &MyKind{}, Old: &MyKind{}, State: map[string]any{}}
	_ = changes.ReconcileResult{RequeueAfter: time.Minute, State: map[string]any{}}
	_ = []changes.ReconcileAction{
		changes.ReconcileActionUnknown, changes.ReconcileActionCreated, changes.ReconcileActionUpdated,
		changes.ReconcileActionDeleted, changes.ReconcileActionResynced,
	}
	_ func(changes.ReconcileAction) changes.ResourceAction = changes.ResourceActionFromReconcile
	_ func(changes.ResourceAction) changes.ReconcileAction = changes.ReconcileActionFromResource

	_ changes.Reconciler = &changes.Watcher[*MyKind]{
		AddFunc:    func(context.Context, *MyKind) error { return nil },
		UpdateFunc: func(context.Context, *MyKind, *MyKind) error { return nil },
		DeleteFunc: func(context.Context, *MyKind) error { return nil },
		SyncFunc:   func(context.Context, *MyKind) error { return nil },
	}
	_ changes.Reconciler = &changes.OpinionatedReconciler{Finalizer: "example.com/mykind"}
	_ changes.Reconciler = &changes.OpinionatedWatcher[*MyKind]{Finalizer: "example.com/mykind"}
	_ error              = (*changes.CannotCastError)(nil)

	_ func(string, client.Object, changes.Reconciler, changes.Options) *changes.Controller = changes.NewController
	_ func(*changes.Controller, ctrl.Manager) error                                        = (*changes.Controller).SetupWithManager
	_                                                                                      = changes.Options{
		RetryPolicy: changes.DefaultRetryPolicy, Changed: changes.ContentChanged, ResyncInterval: time.Hour,
		CacheOptions: &cache.Options{}, NewCache: cache.New,
	}
	_                     = changes.AnythingChanged
	_ changes.RetryPolicy = func(error, int) (bool, time.Duration) { return true, 0 }
	_                     = []changes.RetryPolicy{
		changes.ExponentialBackoffRetryPolicy(time.Second, time.Minute), changes.FixedRetryPolicy(time.Second), changes.NoRetryPolicy(),
	}
)

// The example of its documentation.
var _ = func(apply, remove func(namespace, name string) error, isRetryable func(error) bool, handled func(*MyKind) bool) changes.Reconciler {
	return &changes.TypedReconciler[*MyKind]{
		ReconcileFunc: func(ctx context.Context, req changes.TypedReconcileRequest[*MyKind]) (changes.ReconcileResult, error) {
			ctrl.LoggerFrom(ctx).Info("Reconcile request", "name", req.Object.GetName(), "action", changes.ResourceActionFromReconcile(req.Action))
			if req.Action == changes.ReconcileActionDeleted {
				return changes.ReconcileResult{}, remove(req.Object.GetNamespace(), req.Object.GetName())
			}
			if handled(req.Object) {
				return changes.ReconcileResult{}, nil
			}
			if err := apply(req.Object.GetNamespace(), req.Object.GetName()); err != nil {
				if isRetryable(err) {
					return changes.ReconcileResult{
						RequeueAfter: time.Minute,
					}, nil
				}
				return changes.ReconcileResult{}, err
			}
			return changes.ReconcileResult{}, nil
		},
	}
}

type (
	handler = lifecycle.Handler[*MyKind]
	options = lifecycle.Options[*MyKind]
)

// The names and signatures of the generic reconciler of the Azure Service Operator.
var (
	_ func(handler, context.Context, *MyKind) error                                    = lifecycle.Handler[*MyKind].Claim
	_ func(handler, context.Context, *MyKind, lifecycle.Commit) (result.Result, error) = lifecycle.Handler[*MyKind].CreateOrUpdate
	_ func(handler, context.Context, *MyKind, lifecycle.Commit) (result.Result, error) = lifecycle.Handler[*MyKind].Delete
	_ func(handler, context.Context, *MyKind) error                                    = lifecycle.Handler[*MyKind].UpdateStatus

	_ func(handler, options) (*lifecycle.Reconciler[*MyKind], error) = lifecycle.NewReconciler[*MyKind]
	_ reconcile.Reconciler                                           = (*lifecycle.Reconciler[*MyKind])(nil)
	_ func(ctrl.Manager, handler, options) error                     = lifecycle.SetupWithManager[*MyKind]
	_ func(ctrl.Manager, *ctrl.Builder, handler, options) error      = lifecycle.SetupWithManagerAndBuilder[*MyKind]
	_                                                                = lifecycle.Options[*MyKind]{
		Finalizer: "example.com/mykind", OperatorNamespace: "operators", ManagementPolicy: v1alpha1.ManagementPolicyManage,
	}

	_                                                    = []v1alpha1.ManagementPolicy{v1alpha1.ManagementPolicyManage, v1alpha1.ManagementPolicySkip, v1alpha1.ManagementPolicyDetachOnDelete}
	_ func(error, result.Severity, string) *result.Error = result.NewError

	_ error = &result.Error{
		Severity: result.SeverityWarning, Reason: "WaitingForOwner", Retry: result.RetryFast, After: time.Second, Err: errors.New(""),
	}
	_ = []result.Severity{result.SeverityInfo, result.SeverityWarning, result.SeverityError}
	_ = []result.Retry{result.RetryFast, result.RetrySlow, result.RetryVerySlow}
)

type (
	// Thing stands for a component.
	Thing struct{ component.Component }

	things = component.Reconciler[*Thing]
	hook   = component.HookFunc[*Thing]
)

// The names and signatures of the component reconciler.
var (
	_ func(string, manifests.Generator, component.ReconcilerOptions) *things = component.NewReconciler[*Thing]
	_ reconcile.Reconciler                                                   = (*component.Reconciler[*Thing])(nil)
	_ func(*things, ctrl.Manager) error                                      = (*component.Reconciler[*Thing]).SetupWithManager
	_ func(context.Context, client.Client, *Thing) error                     = component.HookFunc[*Thing](nil)
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostReadHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPreReconcileHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostReconcileHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPreDeleteHook
	_ func(*things, hook) *things                                            = (*component.Reconciler[*Thing]).WithPostDeleteHook
	_ func(context.Context) (client.Client, error)                           = component.ClientFromContext

	_ = component.ReconcilerOptions{
		FieldOwner: new(""), Finalizer: new(""), DefaultServiceAccount: new(""),
		AdoptionPolicy:          new(reconciler.AdoptionPolicyIfUnowned),
		UpdatePolicy:            new(reconciler.UpdatePolicyReplace),
		DeletePolicy:            new(reconciler.DeletePolicyDelete),
		MissingNamespacesPolicy: new(reconciler.MissingNamespacesPolicyCreate),
		SchemeBuilder:           types.SchemeBuilder(nil),
	}

	_ func(error, *time.Duration) types.RetriableError                                                          = types.NewRetriableError
	_ func(component.RetryConfiguration) time.Duration                                                          = component.RetryConfiguration.GetRetryInterval
	_ func(component.RequeueConfiguration) time.Duration                                                        = component.RequeueConfiguration.GetRequeueInterval
	_ func(component.TimeoutConfiguration) time.Duration                                                        = component.TimeoutConfiguration.GetTimeout
	_ func(component.PolicyConfiguration) reconciler.AdoptionPolicy                                             = component.PolicyConfiguration.GetAdoptionPolicy
	_ func(component.PolicyConfiguration) reconciler.UpdatePolicy                                               = component.PolicyConfiguration.GetUpdatePolicy
	_ func(component.PolicyConfiguration) reconciler.DeletePolicy                                               = component.PolicyConfiguration.GetDeletePolicy
	_ func(component.PolicyConfiguration) reconciler.MissingNamespacesPolicy                                    = component.PolicyConfiguration.GetMissingNamespacesPolicy
	_ func(component.TypeConfiguration) []reconciler.TypeInfo                                                   = component.TypeConfiguration.GetAdditionalManagedTypes
	_ func(component.ImpersonationConfiguration) string                                                         = component.ImpersonationConfiguration.GetImpersonationUser
	_                                                                                                           = reconciler.TypeInfo{Group: "*.example.com", Kind: "*"}
	_ func(manifests.Generator, context.Context, string, string, types.Unstructurable) ([]client.Object, error) = manifests.Generator.Generate
)

// The names and signatures of the package konditions.
var (
	_ error = steps.LockNotReleasedErr
	_ error = steps.NotInitializedConditionsErr

	_ = steps.Condition{Type: steps.ConditionType("Bucket"), Status: steps.ConditionInitialized, Reason: "because"}
	_ = []steps.ConditionStatus{
		steps.ConditionInitialized, steps.ConditionCompleted, steps.ConditionCreated, steps.ConditionTerminating,
		steps.ConditionTerminated, steps.ConditionError, steps.ConditionLocked,
	}
	_ func(*steps.Condition) *steps.Condition               = (*steps.Condition).DeepCopy
	_ func(*steps.Condition, *steps.Condition)              = (*steps.Condition).DeepCopyInto
	_ func(*steps.Condition, ...steps.ConditionStatus) bool = (*steps.Condition).StatusIsOneOf

	_ steps.Conditions                                                        = []steps.Condition{}
	_ func(steps.Conditions, steps.ConditionStatus) bool                      = steps.Conditions.AnyWithStatus
	_ func(*steps.Conditions) steps.Conditions                                = (*steps.Conditions).DeepCopy
	_ func(*steps.Conditions, *steps.Conditions)                              = (*steps.Conditions).DeepCopyInto
	_ func(steps.Conditions, steps.ConditionType) steps.Condition             = steps.Conditions.FindOrInitializeFor
	_ func(steps.Conditions, steps.ConditionStatus) *steps.Condition          = steps.Conditions.FindStatus
	_ func(steps.Conditions, steps.ConditionType) *steps.Condition            = steps.Conditions.FindType
	_ func(*steps.Conditions, steps.ConditionType) bool                       = (*steps.Conditions).RemoveConditionWith
	_ func(*steps.Conditions, steps.Condition) error                          = (*steps.Conditions).SetCondition
	_ func(steps.Conditions, steps.ConditionType, steps.ConditionStatus) bool = steps.Conditions.TypeHasStatus

	_ func(steps.ConditionalResource) *steps.Conditions    = steps.ConditionalResource.Conditions
	_ func(*steps.Lock) steps.Condition                    = (*steps.Lock).Condition
	_ func(*steps.Lock, context.Context, steps.Task) error = (*steps.Lock).Execute
	_ func(steps.Condition) (steps.Condition, error)       = steps.Task(nil)
)

// The example of its documentation.
var _ = func(ctx context.Context, res steps.ConditionalResource, c client.Client, create, remove func() error) (ctrl.Result, error) {
	lock := steps.NewLock(res, c, steps.ConditionType("Bucket"))
	if err := lock.Execute(ctx, func(condition steps.Condition) (steps.Condition, error) {
		switch condition.Status {
		case steps.ConditionTerminating:
			if err := remove(); err != nil {
				return condition, err
			}
			condition.Status, condition.Reason = steps.ConditionTerminated, "Bucket deleted"
		case steps.ConditionInitialized:
			if err := create(); err != nil {
				return condition, err
			}
			condition.Status, condition.Reason = steps.ConditionCreated, "Bucket Created"
		}
		return condition, c.Status().Update(ctx, res)
	}); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}
