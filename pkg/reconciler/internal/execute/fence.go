// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// labelFence is on every fence: the policies that exist while a type or a namespace is
	// deleted. It is not the label of dependent objects, because a fence is in no inventory. A fence that is
	// left over can be deleted.
	//
	// On: ValidatingAdmissionPolicies and their bindings
	// Set by: the operator, if the option TypeFence is set
	// Format: the value of the label owner-id
	// Example: shop.example.com/fence: b7l5rv2kqmbhkl5h3xsvjvzgzs2ud4tc
	labelFence = "fence"
	// enforceTimeout is how long the server may take until it enforces a fence.
	enforceTimeout = 20 * time.Second
	// pollInterval is between two requests that wait for the server.
	pollInterval = 50 * time.Millisecond
)

// fence closes the gap between the last read of what a deletion would destroy
// and the deletion: a ValidatingAdmissionPolicy denies the creation of any of it. Its
// name follows from its owner and its purpose, so that one that is left over from a
// crash is found.
type fence struct {
	name, fieldOwner string
	policy, binding  *unstructured.Unstructured
	// probe is an object that the fence denies to create, too. The server is
	// asked whether it would create it: its answer shows that the policy is
	// active, whatever the schema of the fenced type demands.
	probe *unstructured.Unstructured
}

// isFenced reports whether the step is a deletion behind a fence: something could be
// lost between the check of the guard and the deletion. An aggregated server keeps its
// objects when its APIService is deleted.
func (e *Executor) isFenced(step plan.Step) bool {
	gk := step.Key.GroupKind()
	return e.options.TypeFence && step.Verb == plan.VerbDelete && step.Guard != plan.GuardNone && (gk == definitionKind || gk == namespaceKind)
}

func (e *Executor) newFence(step plan.Step) *fence {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.options.Name, step.Owner.ID, step.Key.Group, step.Key.Kind, step.Key.Name}, "\n")))
	name := "corbel-fence-" + hex.EncodeToString(sum[:10])
	constraints, namespace := typeConstraints(step.Key.Name), "default"
	if step.Key.GroupKind() == namespaceKind {
		constraints, namespace = namespaceConstraints(step.Key.Name), step.Key.Name
	}
	constraints["resourceRules"] = append(constraints["resourceRules"].([]any), map[string]any{
		"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "resourceNames": []any{name},
		"operations": []any{"CREATE"},
	})
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": policyKind.GroupVersion().String(), "kind": kind,
			"metadata": map[string]any{
				"name":        name,
				"labels":      map[string]any{e.options.Name + "/" + labelFence: step.Owner.ID},
				"annotations": map[string]any{e.options.Name + "/" + v1alpha1.AnnotationOwner: step.Owner.Ref.String()},
			},
			"spec": spec,
		}}
	}
	return &fence{
		name: name, fieldOwner: e.options.FieldOwner,
		policy: object(policyKind.Kind, map[string]any{
			"failurePolicy":    "Fail",
			"matchConstraints": constraints,
			"validations": []any{map[string]any{
				"expression": "false", "message": fmt.Sprintf("%s is being deleted by %s", step.Key, e.options.Name),
			}},
		}),
		binding: object(bindingKind.Kind, map[string]any{"policyName": name, "validationActions": []any{"Deny"}}),
		probe: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace},
		}},
	}
}

// typeConstraints match the creation of instances of the type that a definition brings.
func typeConstraints(definition string) map[string]any {
	plural, group, _ := strings.Cut(definition, ".")
	return map[string]any{"resourceRules": []any{map[string]any{
		"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": []any{plural}, "operations": []any{"CREATE"},
	}}}
}

// namespaceConstraints match the creation of anything in a namespace.
func namespaceConstraints(namespace string) map[string]any {
	return map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		"resourceRules": []any{map[string]any{
			"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "scope": "Namespaced", "operations": []any{"CREATE"},
		}},
	}
}

var (
	policyKind    = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
	bindingKind   = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// createFence creates the fence and waits until the server enforces it. One that is left
// over is replaced.
func (e *Executor) createFence(ctx context.Context, f *fence, owner plan.Owner) error {
	for _, object := range []*unstructured.Unstructured{f.policy, f.binding} {
		resource, err := e.types.Resolve(ctx, object.GroupVersionKind())
		if err != nil {
			return err
		}
		_, err = e.objects.Create(ctx, resource, object, f.fieldOwner)
		if apierrors.IsAlreadyExists(err) {
			if err = e.removeFencePart(ctx, resource, f.name, owner); err == nil {
				_, err = e.objects.Create(ctx, resource, object, f.fieldOwner)
			}
		}
		if err != nil {
			return err
		}
	}
	return e.waitUntilEnforced(ctx, f)
}

// waitUntilEnforced waits until the server denies the probe because of the fence.
func (e *Executor) waitUntilEnforced(ctx context.Context, f *fence) error {
	ctx, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	resource, err := e.types.Resolve(ctx, configMapKind)
	if err != nil {
		return err
	}
	for {
		err := e.objects.Try(ctx, resource, f.probe, f.fieldOwner)
		switch {
		case err != nil && isDenial(err.Error()) && strings.Contains(err.Error(), "'"+f.name+"'"):
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("find out whether it holds: %w", err)
		}
		if !sleep(ctx, pollInterval) {
			return errors.Join(fmt.Errorf("the server did not enforce it within %s", enforceTimeout), err)
		}
	}
}

// removeFence deletes the fence.
func (e *Executor) removeFence(ctx context.Context, f *fence, owner plan.Owner) error {
	var errs []error
	for _, kind := range []schema.GroupVersionKind{bindingKind, policyKind} {
		resource, err := e.types.Resolve(ctx, kind)
		if err == nil {
			err = e.removeFencePart(ctx, resource, f.name, owner)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeFencePart deletes a part of a fence of ours; it is no error if there is none.
func (e *Executor) removeFencePart(ctx context.Context, resource cluster.Resource, name string, owner plan.Owner) error {
	for sends := 1; ; sends++ {
		live, err := e.objects.Get(ctx, resource, "", name)
		if cluster.IsNotFound(err, resource, name) {
			return nil
		}
		if err != nil {
			return err
		}
		if live.GetLabels()[e.options.Name+"/"+labelFence] != owner.ID {
			return fmt.Errorf("%s %s exists and is not ours", resource.Kind, name)
		}
		_, _, err = e.objects.Delete(ctx, resource, "", name, live.GetUID(), live.GetResourceVersion(), metav1.DeletePropagationBackground)
		if apierrors.IsConflict(err) && sends < maxSends {
			continue // its status was written
		}
		if cluster.IsNotFound(err, resource, name) {
			return nil
		}
		return err
	}
}

const (
	// removeTimeout bounds the removal of a fence, which happens also after the context
	// has ended.
	removeTimeout = 10 * time.Second
	// terminatingTimeout bounds how long a fence stays after the deletion of a type,
	// until the server refuses new instances by itself.
	terminatingTimeout = 30 * time.Second
)

// deleteFenced deletes behind a fence. There is no fence for a deletion that is blocked
// anyway.
func (e *Executor) deleteFenced(ctx context.Context, step plan.Step) (result plan.Result) {
	verdict, err := e.checkGuard(ctx, step)
	if err != nil || !verdict.passes() {
		return e.blockedResult(ctx, step, verdict, err)
	}
	f := e.newFence(step)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		if err := e.removeFence(ctx, f, step.Owner); err != nil {
			e.fencesChecked.Delete(step.Owner.ID)
			result.Err = errors.Join(result.Err, classify(step, fmt.Errorf("remove the fence %s: %w", f.name, err)))
		}
	}()
	if err := e.createFence(ctx, f, step.Owner); err != nil {
		return failed(step, fmt.Errorf("create the fence %s, without which nothing is deleted: %w", f.name, err))
	}
	result = e.deleteGuarded(ctx, step)
	if result.Err == nil && result.Blocked == "" && step.Key.GroupKind() == definitionKind {
		e.waitUntilTerminating(ctx, step)
	}
	return result
}

// waitUntilTerminating waits until the server refuses new instances of a deleted type by
// itself: the definition is gone, or says that it is terminating.
func (e *Executor) waitUntilTerminating(ctx context.Context, step plan.Step) {
	ctx, cancel := context.WithTimeout(ctx, terminatingTimeout)
	defer cancel()
	for {
		live, err := e.objects.Get(ctx, definitions, "", step.Key.Name)
		gone := cluster.IsNotFound(err, definitions, step.Key.Name)
		if gone || err == nil && (live.GetUID() != step.UID || hasCondition(live, "Terminating")) || !sleep(ctx, pollInterval) {
			return
		}
	}
}

// RemoveLeftoverFences removes the fences that are left over from a crash: they would deny
// the creation of what they fenced to every client. The object that a fence was for is still
// in the record then, so nothing is listed if no namespace and no type is recorded; otherwise
// fences are listed once for each owner, and again after one could not be removed. It does
// so, too, if the option is off by now, but then an error here stops nothing else.
func (e *Executor) RemoveLeftoverFences(ctx context.Context, owner plan.Owner, recorded []v1alpha1.InventoryItem) error {
	if _, clean := e.fencesChecked.Load(owner.ID); clean || !slices.ContainsFunc(recorded, func(item v1alpha1.InventoryItem) bool {
		gk := plan.KeyOf(item).GroupKind()
		return gk == definitionKind || gk == namespaceKind
	}) {
		return nil
	}
	err := e.removeLeftoverFences(ctx, owner)
	switch {
	case err == nil, !e.options.TypeFence && apierrors.IsForbidden(err):
		e.fencesChecked.Store(owner.ID, true)
		return nil
	case !e.options.TypeFence, apierrors.IsForbidden(err):
		// A user that may not list fences may not create them either, so there is
		// hardly any. The rights may be granted again.
		log.FromContext(ctx).V(1).Info("leftover fences cannot be listed", "error", err.Error())
		return nil
	default:
		return fmt.Errorf("list leftover fences: %w", err)
	}
}

// removeLeftoverFences lists the policies only: they are created before their bindings and
// deleted after them.
func (e *Executor) removeLeftoverFences(ctx context.Context, owner plan.Owner) error {
	resource, err := e.types.Resolve(ctx, policyKind)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := e.objects.ListMetadata(ctx, resource, "", cluster.ListOptions{Selector: FenceSelector(e.options.Name, owner)})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		if err := e.removeFence(ctx, &fence{name: item.Name}, owner); err != nil {
			return err
		}
	}
	return nil
}

// FenceSelector returns the label of the fences of an owner, as key=value.
func FenceSelector(name string, owner plan.Owner) string {
	return name + "/" + labelFence + "=" + owner.ID
}

// sleep waits, and reports whether the context still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
