// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// maxSends is how often a deletion or an orphaning is sent in one step
// because of conflicts. An object that changes faster than that is deferred to the next plan.
const maxSends = 5

// retryOnConflict executes a step that does not depend on the content of the object,
// only on its owner. If the object has changed since the plan was made, it is read
// again, and the step is executed again as long as it still applies to the object,
// each time with the resourceVersion of the last read: the server does not delete an
// object if its owner changed between that read and the request.
func (e *Executor) retryOnConflict(ctx context.Context, step plan.Step, execute func(context.Context, plan.Step) plan.Result) plan.Result {
	if step.UID == "" || step.ResourceVersion == "" {
		return failed(step, errors.New("there is no precondition"))
	}
	for sends := 1; ; sends++ {
		result := execute(ctx, step)
		if !IsConflict(result.Err) || sends == maxSends {
			return result
		}
		live := e.read(ctx, step)
		switch {
		case live.Existence == plan.Absent, step.Verb == plan.VerbDelete && live.UID == step.UID && !live.DeletionTimestamp.IsZero():
			return plan.Result{Step: step, Observation: live}
		case !step.StillApplies(live):
			return result
		}
		step.ResourceVersion, step.Finalizers, step.HasOwnerReferences = live.ResourceVersion, live.Finalizers, live.HasOwnerReferences
	}
}

func (e *Executor) read(ctx context.Context, step plan.Step) plan.Observation {
	// The only error is the end of the context; then nothing is known.
	observed, _ := e.observer.Observe(ctx, []observe.Request{{Owner: step.Owner, Key: step.Key, Version: step.Version, Desired: step.Desired, ForceRead: true}})
	return observed[step.Key]
}

// deleteStep deletes an object, if its guard lets it. The guard reads right before the deletion.
func (e *Executor) deleteStep(ctx context.Context, step plan.Step) plan.Result {
	verdict, err := e.checkGuard(ctx, step)
	if err != nil || !verdict.passes() {
		return e.blockedResult(ctx, step, verdict, err)
	}
	observation, err := e.sendDelete(ctx, step)
	if step.Shared && apierrors.IsForbidden(err) {
		return plan.Result{Step: step, Orphaned: true, Observation: e.read(ctx, step)}
	}
	if err != nil {
		return failed(step, err)
	}
	if e.removed != nil {
		return plan.Result{Step: step, Observation: observation} // nothing was deleted
	}
	return plan.Result{Step: step, Observation: observation, Notes: e.noteLost(ctx, step, observation, verdict)}
}

// blockedResult is the result of a deletion that the guard does not let pass.
func (e *Executor) blockedResult(ctx context.Context, step plan.Step, verdict verdict, err error) plan.Result {
	switch {
	case err != nil:
		return failed(step, err)
	case verdict.orphan && step.Shared:
		return plan.Result{Step: step, Orphaned: true, Observation: e.read(ctx, step)}
	case verdict.orphan:
		result := e.orphan(ctx, step)
		result.ContentUnknown = verdict.unread != ""
		if result.Orphaned = result.Err == nil; !result.Orphaned {
			return result
		}
		if gone, deleted := e.deleteAbandoned(ctx, step, verdict, result.Observation); deleted {
			return plan.Result{Step: step, Observation: gone}
		}
		result.Notes = []plan.Note{orphanedNote(step, verdict)}
		return result
	default:
		return plan.Result{Step: step, Blocked: verdict.blocked, BlockingTypes: verdict.obstacles, ContentUnknown: verdict.unread != ""}
	}
}

// deleteAbandoned deletes a namespace that was just orphaned because it was in use, if it is empty by now: its last user may have
// left between the look and the orphaning, when the namespace was not yet that user's to delete.
func (e *Executor) deleteAbandoned(ctx context.Context, step plan.Step, before verdict, live plan.Observation) (plan.Observation, bool) {
	if step.ItemAfter.Origin != vocabulary.OriginNamespace || before.unread != "" || live.Automatic == "" || e.removed != nil {
		return plan.Observation{}, false
	}
	step.ResourceVersion = live.ResourceVersion
	if now, err := e.checkGuard(ctx, step); err != nil || !now.passes() {
		return plan.Observation{}, false
	}
	gone, err := e.sendDelete(ctx, step)
	return gone, err == nil
}

// orphanedNote notes that an object was orphaned that was to be deleted.
func orphanedNote(step plan.Step, verdict verdict) plan.Note {
	const orphaned = "is orphaned, because "
	switch {
	case verdict.unread != "":
		return plan.Note{Key: step.Key, Reason: report.WarnContentUnknown, Warning: true,
			Message: orphaned + "it is not known whether objects of others live in it: " + verdict.unread}
	case step.ItemAfter.Keeps && step.ItemAfter.Origin != vocabulary.OriginNamespace:
		return plan.Note{Key: step.Key, Reason: report.WarnKeptForOrphan, Warning: true, Message: orphaned + "something in it was orphaned before and would be deleted with it"}
	default:
		return plan.Note{Key: step.Key, Reason: report.NoteReleased, Message: "released: " + verdict.why}
	}
}

func (e *Executor) sendDelete(ctx context.Context, step plan.Step) (plan.Observation, error) {
	resource, err := e.types.ResolveAny(ctx, step.Key.GroupKind(), step.Version)
	if err != nil {
		return plan.Observation{}, err
	}
	propagation := metav1.DeletePropagationBackground
	if step.Reason == plan.ReasonRecreate && step.Desired.Policies.RecreatePropagation == policy.PropagationOrphan {
		propagation = metav1.DeletePropagationOrphan
	}
	if plan.HasForeignFinalizer(step.Key, e.options.Name, step.Finalizers) {
		if step.ResourceVersion, err = e.releaseForeign(ctx, resource, step); err != nil {
			return goneOr(resource, step, err)
		}
	}
	gone, live, err := e.objects.Delete(ctx, resource, step.Key.Namespace, step.Key.Name, step.UID, step.ResourceVersion, propagation)
	switch {
	case err != nil:
		return goneOr(resource, step, err)
	case gone:
		return plan.Observation{Existence: plan.Absent}, nil
	case live == nil:
		return plan.Observation{Message: "the server accepted the deletion and did not say whether the object is gone"}, nil
	default:
		return e.observer.ObservationOf(ctx, live, step.Desired), nil
	}
}

// goneOr is the answer to a deletion that failed.
func goneOr(resource cluster.Resource, step plan.Step, err error) (plan.Observation, error) {
	if cluster.IsNotFound(err, resource, step.Key.Name) {
		return plan.Observation{Existence: plan.Absent}, nil
	}
	return plan.Observation{}, err
}

// releaseForeign removes the finalizer of SAP component-operator-runtime from an object that is about to be deleted, or is being
// deleted, and returns the resourceVersion that it has then.
func (e *Executor) releaseForeign(ctx context.Context, resource cluster.Resource, step plan.Step) (string, error) {
	metadata := map[string]any{"finalizers": e.withoutForeign(step)}
	precondition(metadata, step)
	live, err := e.patch(ctx, resource, step, types.MergePatchType, map[string]any{"metadata": metadata})
	if err != nil {
		return "", fmt.Errorf("remove the finalizer %s of SAP component-operator-runtime: %w", e.options.Name, err)
	}
	return live.GetResourceVersion(), nil
}

// orphan removes our label and annotation from an object, if it is the one that the plan saw, and
// the ownerReferences by which the garbage collector would delete it. Labels and annotations of the
// manifest stay.
func (e *Executor) orphan(ctx context.Context, step plan.Step) plan.Result {
	resource, err := e.types.ResolveAny(ctx, step.Key.GroupKind(), step.Version)
	if err != nil {
		return failed(step, err)
	}
	metadata := map[string]any{
		"uid":             step.UID,
		"resourceVersion": step.ResourceVersion,
		"labels":          map[string]any{e.options.Name + "/" + vocabulary.LabelOwnerID: nil},
		"annotations":     map[string]any{e.options.Name + "/" + vocabulary.AnnotationOwner: nil},
	}
	if step.Verb == plan.VerbOrphan && step.Key.GroupKind() == namespaceKind {
		// No component deletes it any more. A namespace that is orphaned because it is in use may
		// go with its last user.
		metadata["annotations"].(map[string]any)[e.options.Name+"/"+vocabulary.AnnotationAutomatic] = nil
	}
	if step.IsInheritedFromSAP() {
		e.removeForeign(metadata, step)
	}
	if former := step.Owner.Former; former != "" {
		metadata["labels"].(map[string]any)[former+"/"+vocabulary.LabelOwnerID] = nil
		metadata["annotations"].(map[string]any)[former+"/"+vocabulary.AnnotationOwner] = nil
	}
	if step.HasOwnerReferences {
		live, err := e.readFirst(ctx, resource, step)
		switch {
		case cluster.IsNotFound(err, resource, step.Key.Name):
			return plan.Result{Step: step, Observation: plan.Observation{Existence: plan.Absent}}
		case err != nil:
			return failed(step, err)
		}
		removeReferences(metadata, live, append(slices.Clone(step.Removes), step.Owner.Ref.UID))
	}
	live, err := e.patch(ctx, resource, step, types.MergePatchType, map[string]any{"metadata": metadata})
	switch {
	case cluster.IsNotFound(err, resource, step.Key.Name):
		return plan.Result{Step: step, Observation: plan.Observation{Existence: plan.Absent}}
	case err != nil:
		return failed(step, err)
	case live.GetUID() != step.UID:
		return failed(step, errors.New("the server answered with an object of another uid"))
	}
	return plan.Result{Step: step, Observation: e.observer.ObservationOf(ctx, live, nil)}
}

// removeReferences removes the ownerReferences to the uids in the metadata of a merge patch, and
// reports whether the live object has any of them.
func removeReferences(metadata map[string]any, live *unstructured.Unstructured, uids []types.UID) bool {
	references := live.GetOwnerReferences()
	rest := slices.DeleteFunc(slices.Clone(references), func(r metav1.OwnerReference) bool { return slices.Contains(uids, r.UID) })
	if len(rest) == len(references) {
		return false
	}
	metadata["ownerReferences"] = rest
	return true
}
