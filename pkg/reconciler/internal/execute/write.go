// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Confirm checks, right before an object becomes ours, that this process may still act for the owner. The server refuses every other write that is based on something outdated,
// but it cannot refuse a write of an object that does not exist or has no owner yet.
type Confirm func(ctx context.Context) error

type confirmKey struct{}

// WithConfirm returns a context in which no object becomes ours before confirm was
// called. An error of it fails the step.
func WithConfirm(ctx context.Context, confirm Confirm) context.Context {
	return context.WithValue(ctx, confirmKey{}, confirm)
}

func confirmOwner(ctx context.Context) error {
	if confirm, ok := ctx.Value(confirmKey{}).(Confirm); ok {
		return confirm(ctx)
	}
	return nil
}

func (e *Executor) write(ctx context.Context, step plan.Step) plan.Result {
	if step.Desired == nil || step.Desired.Manifest == nil {
		return failed(step, errors.New("there is no manifest"))
	}
	if step.Verb != plan.VerbCreate && (step.UID == "" || step.ResourceVersion == "") {
		return failed(step, errors.New("there is no precondition"))
	}
	resource, err := e.types.Resolve(ctx, step.Key.GroupKind().WithVersion(step.Desired.Version))
	if err != nil {
		return failed(step, err)
	}
	before, err := e.checkDefinition(ctx, resource, step)
	if err != nil {
		return failed(step, err)
	}
	if step.TakesOwnership() {
		if err := confirmOwner(ctx); err != nil {
			return failed(step, err)
		}
	}
	var live *unstructured.Unstructured
	var warnings []string
	ctx = cluster.WithWarnings(ctx, func(text string) {
		// The text may quote a value of a Secret.
		if !confidential.Covers(ctx, step.Key.GroupKind()) && !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	})
	if step.SkipIfUnchanged {
		live, err = e.readFirst(ctx, resource, step)
	}
	if err == nil && (live == nil || len(observe.DriftOf(live, step.Desired, "").Fields) > 0) {
		live, err = e.send(ctx, resource, step, before)
	}
	if err != nil {
		return failed(step, e.nameTypes(ctx, resource, step, err))
	}
	notes, replicas := e.noteScaled(ctx, resource, step, live), e.desiredReplicas(ctx, resource, step.Desired.Manifest)
	if len(warnings) > 0 {
		notes = append(notes, plan.Note{Key: step.Key, Reason: report.WarnServer, Warning: true, Message: strings.Join(warnings, "; ")})
	}
	if step.Verb != plan.VerbCreate {
		if live, err = e.cleanOwnership(ctx, resource, step, live); err != nil {
			return failed(step, err)
		}
	}
	observation := e.observer.ObservationOf(ctx, live, step.Desired)
	if step.Verb == plan.VerbMark {
		observation.Drift = observe.DriftOf(live, step.Desired, e.options.FieldOwner) // other changes stay
	} else {
		observation.Altered = e.altered(ctx, resource, step, live)
	}
	return plan.Result{Step: step, Observation: observation, Replicas: replicas, Notes: notes}
}

// send makes the request of a write. Before is the object, if it was read already.
func (e *Executor) send(ctx context.Context, resource cluster.Resource, step plan.Step, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch step.Verb {
	case plan.VerbReplace:
		return e.replace(ctx, resource, step, before)
	case plan.VerbMerge, plan.VerbOverride:
		return e.serverSideApply(ctx, resource, step)
	case plan.VerbMark:
		return e.restoreOwnership(ctx, resource, step)
	}
	if !step.Desired.Policies.UsesServerSideApply() {
		return e.objects.Create(ctx, resource, step.Desired.Manifest, e.options.FieldOwner)
	}
	// The create is an apply, too: after a POST every field would have a second
	// owner, and a field that the manifest drops later would stay.
	object, metadata := body(step.Desired.Manifest)
	// Server-side apply has no create-only mode. The server refuses to apply to an existing object, because none
	// has this version, and ignores the version of a new object.
	metadata["resourceVersion"] = "1"
	return e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
}

// nameTypes adds the paths of values of a wrong type to the refusal of a write. The answer to a POST or PUT does not
// name the paths; the answer to a server-side apply does. So nameTypes sends one as a dry run.
func (e *Executor) nameTypes(ctx context.Context, resource cluster.Resource, step plan.Step, refusal error) error {
	if !apierrors.IsBadRequest(refusal) || !strings.Contains(refusal.Error(), "cannot unmarshal") {
		return refusal
	}
	_, err := e.objects.DryRun(cluster.DryRun{}).Apply(ctx, resource, step.Desired.Manifest, e.options.FieldOwner)
	if _, paths, untyped := strings.Cut(messageOf(err), "): "); untyped && isUntyped(messageOf(err)) {
		return fmt.Errorf("%s (%w)", paths, refusal)
	}
	return refusal
}

// body returns a copy of the manifest with metadata that may be changed. The rest
// is shared with the manifest.
func body(manifest *unstructured.Unstructured) (*unstructured.Unstructured, map[string]any) {
	content := maps.Clone(manifest.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}, metadata
}

// precondition makes the server refuse the write if the object is not the one that the plan saw.
func precondition(metadata map[string]any, step plan.Step) {
	metadata["uid"] = string(step.UID)
	metadata["resourceVersion"] = step.ResourceVersion
}

// restoreOwnership puts our label and annotation back on an object, and changes nothing else.
func (e *Executor) restoreOwnership(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	manifest := step.Desired.Manifest
	label, annotation := e.options.Name+"/"+vocabulary.LabelOwnerID, e.options.Name+"/"+vocabulary.AnnotationOwner
	metadata := map[string]any{
		"labels":      map[string]any{label: manifest.GetLabels()[label]},
		"annotations": map[string]any{annotation: manifest.GetAnnotations()[annotation]},
	}
	if step.IsInheritedFromSAP() {
		e.removeForeign(metadata, step)
	}
	precondition(metadata, step)
	return e.patch(ctx, resource, step, types.MergePatchType, map[string]any{"metadata": metadata})
}

func (e *Executor) patch(ctx context.Context, resource cluster.Resource, step plan.Step, kind types.PatchType, patch any) (*unstructured.Unstructured, error) {
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return e.objects.Patch(ctx, resource, step.Key.Namespace, step.Key.Name, kind, encoded, e.options.FieldOwner)
}

// replace sends the manifest as a PUT. Finalizers and ownerReferences of other clients stay.
// managedFields are not sent: the server keeps its own. Live is the object, if it was read already.
func (e *Executor) replace(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object, metadata := body(step.Desired.Manifest)
	carry := carrierOf(resource, object.Object)
	left, err := e.leftPaths(ctx, resource, object.Object)
	if err != nil {
		return nil, err
	}
	ignored, err := e.leftFields(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	if carry != nil || len(left) > 0 || len(ignored) > 0 || step.HasOwnerReferences {
		if live == nil && carry == nil && len(ignored) == 0 && !step.HasOwnerReferences {
			live = carriedBy(step)
		}
		if live == nil {
			if live, err = e.readFirst(ctx, resource, step); err != nil {
				return nil, err
			}
		}
		object = object.DeepCopy()
		metadata = object.Object["metadata"].(map[string]any)
		if carry != nil {
			carry(object.Object, live.Object)
		}
		for _, path := range slices.Concat(left, ignored) {
			keepPath(object.Object, live.Object, path)
		}
		if references := e.references(step, live); len(references) > 0 {
			object.SetOwnerReferences(references)
		}
	}
	precondition(metadata, step)
	if finalizers := union(e.withoutForeign(step), object.GetFinalizers()); len(finalizers) > 0 {
		object.SetFinalizers(finalizers)
	}
	return e.objects.Update(ctx, resource, object, e.options.FieldOwner)
}

// removeForeign removes the annotations and the finalizer of SAP component-operator-runtime in the
// metadata of a merge patch.
func (e *Executor) removeForeign(metadata map[string]any, step plan.Step) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range e.observer.SAPAnnotations() {
		annotations[key] = nil
	}
	if plan.HasForeignFinalizer(step.Key, e.options.Name, step.Finalizers) {
		metadata["finalizers"] = e.withoutForeign(step)
	}
}

// withoutForeign returns the live finalizers without the one of SAP component-operator-runtime.
func (e *Executor) withoutForeign(step plan.Step) []string {
	if !plan.HasForeignFinalizer(step.Key, e.options.Name, step.Finalizers) {
		return step.Finalizers
	}
	return slices.DeleteFunc(slices.Clone(step.Finalizers), func(name string) bool { return name == e.options.Name })
}

// carriedBy returns the fields that a PUT carries over from the object that the plan saw; nil if it
// was not seen. The PUT is refused if the object is another one by now.
func carriedBy(step plan.Step) *unstructured.Unstructured {
	seen := &unstructured.Unstructured{}
	if step.Carried == "" || utiljson.Unmarshal([]byte(step.Carried), &seen.Object) != nil {
		return nil
	}
	return seen
}

// references are the ownerReferences that other clients have set on the live object, but for one to
// the component itself.
func (e *Executor) references(step plan.Step, live *unstructured.Unstructured) []metav1.OwnerReference {
	return slices.DeleteFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		path := []string{"f:metadata", "f:ownerReferences", `k:{"uid":"` + string(r.UID) + `"}`}
		return r.UID == step.Owner.Ref.UID || observe.Owns(live, e.options.FieldOwner, path...)
	})
}

// readFirst reads the object that is to be written, which must be as the plan saw it.
func (e *Executor) readFirst(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	live, err := e.objects.Get(ctx, resource, step.Key.Namespace, step.Key.Name)
	if err != nil {
		return nil, fmt.Errorf("read it before the write: %w", err)
	}
	if live.GetUID() != step.UID || live.GetResourceVersion() != step.ResourceVersion {
		return nil, errChanged
	}
	return live, nil
}

func union(live, desired []string) []string {
	all := slices.Clone(live)
	for _, finalizer := range desired {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	return all
}

// cleanOwnership removes two things from an object as the server answered the write. The label and annotation of the former owner
// are removed after an adoption: a server-side apply keeps them, and so does a write that keeps ignored fields. An ownerReference to
// the component is removed after every write: otherwise the garbage collector deletes orphans, and other dependents in an order
// of its own. If this request fails, the write counts as not confirmed, and both requests are repeated.
func (e *Executor) cleanOwnership(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	metadata := map[string]any{"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion()}
	due := removeReferences(metadata, live, []types.UID{step.Owner.Ref.UID})
	if step.RemovesFormerOwner() {
		labels, annotations := e.observer.OtherOwnerKeys(live, step.Desired)
		metadata["labels"], metadata["annotations"] = nullsAt(labels), nullsAt(annotations)
		step.Finalizers = live.GetFinalizers()
		held := plan.HasForeignFinalizer(step.Key, e.options.Name, step.Finalizers)
		if held {
			metadata["finalizers"] = e.withoutForeign(step)
		}
		due = due || held || len(labels)+len(annotations) > 0
	}
	if !due {
		return live, nil
	}
	live, err := e.patch(ctx, resource, step, types.MergePatchType, map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("remove the ownerReference to the component, and the ownership label and annotation of a former owner: %w", err)
	}
	return live, nil
}

// nullsAt is the part of a merge patch that removes the keys.
func nullsAt(keys []string) map[string]any {
	nulls := make(map[string]any, len(keys))
	for _, key := range keys {
		nulls[key] = nil
	}
	return nulls
}
