// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// undecodableError is a component that is stored in a form that does not decode into its Go
// type: it was there before the schema was, or the schema allows too much.
type undecodableError struct {
	object *unstructured.Unstructured
	err    error
	// decode decodes content into the Go type.
	decode func(content map[string]any) error
}

func (e *undecodableError) Error() string {
	return fmt.Sprintf("what is stored does not fit the type of the operator: %v", e.err)
}

// reader reads components, and finds out which of them cannot be decoded.
type reader struct {
	client.Reader
	kind     schema.GroupVersionKind
	selector labels.Selector // nil: everything
}

// Get answers NotFound for components that are none of ours.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	err := r.get(ctx, key, obj, options...)
	object := obj
	if mistake, ok := errors.AsType[*undecodableError](err); ok {
		object = mistake.object
	} else if err != nil {
		return err
	}
	if !selects(r.selector, object) {
		return apierrors.NewNotFound(schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}, key.Name)
	}
	return err
}

func (r *reader) get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, options...)
	if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || ctx.Err() != nil {
		return err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(r.kind)
	if again := r.Reader.Get(ctx, key, stored, options...); again != nil {
		return err
	}
	decode := func(content map[string]any) error {
		_, err := untyped.Into(content, reflect.New(reflect.TypeOf(obj).Elem()).Interface())
		return err
	}
	if mistake := decode(stored.Object); mistake != nil {
		return &undecodableError{object: stored, err: mistake, decode: decode}
	}
	return err
}

// mendStatus drops what does not decode of the status: fields, and members of conditions. The inventory stays as it is, because
// nothing is known of the dependents without it. It reports whether the object decodes then.
func (e *undecodableError) mendStatus() bool {
	status, ok := e.object.Object["status"].(map[string]any)
	if !ok {
		delete(e.object.Object, "status")
	}
	fits := func(field string, value any) bool {
		return field == "inventory" || e.decode(map[string]any{"status": map[string]any{field: value}}) == nil
	}
	for field, value := range status {
		if fits(field, value) {
			continue
		}
		list, isList := value.([]any)
		if field != "conditions" || !isList {
			delete(status, field)
			continue
		}
		var mended []any
		for _, element := range list {
			if condition, ok := element.(map[string]any); ok {
				maps.DeleteFunc(condition, func(member string, value any) bool {
					return !fits(field, []any{map[string]any{member: value}})
				})
				mended = append(mended, condition)
			}
		}
		status[field] = mended
	}
	return e.decode(e.object.Object) == nil
}

// dropForeign drops values of the fields of this package that another writer has stored, and that the schema refuses.
func dropForeign(s *Status) {
	switch s.State {
	case v1alpha1.StateReady, v1alpha1.StatePending, v1alpha1.StateProcessing, v1alpha1.StateSuspended, v1alpha1.StateDeletionPending, v1alpha1.StateDeleting, v1alpha1.StateError:
	default:
		s.State = ""
	}
	s.History = slices.DeleteFunc(s.History, func(r v1alpha1.RevisionStatus) bool { return r.Revision < 1 || r.AppliedAt.IsZero() })
}

// reportUndecodable mends the status without the Go type, which the object does not decode into. If that is not enough, it writes
// the mistake into the status: then only a change of the object helps, and that triggers a reconcile.
func reportUndecodable(ctx context.Context, c client.Client, owner string, mistake *undecodableError) (ctrl.Result, error) {
	stored := mistake.object
	before := stored.DeepCopy()
	mended := mistake.mendStatus()
	status, ok, _ := unstructured.NestedMap(stored.Object, "status")
	if !ok {
		status = map[string]any{}
	}
	var known struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	// A list that cannot be decoded either is replaced.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": status["conditions"]}, &known)
	for i, condition := range known.Conditions {
		known.Conditions[i] = conditions.Complete(condition, time.Now())
	}
	after := ctrl.Result{RequeueAfter: conclude.MinDelay}
	if !mended {
		v := verdict.Evaluate(verdict.Facts{Err: &verdict.InvalidError{Err: fmt.Errorf("%s: %w", identity.Title(stored.GetKind(), stored), mistake)}})
		v.SetConditions(conditions.For(stored, &known.Conditions))
		status["state"], status["observedGeneration"] = string(v.State), stored.GetGeneration()
		after = ctrl.Result{RequeueAfter: verdict.DefaultInterval}
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&known)
	if err != nil {
		return ctrl.Result{}, err
	}
	status["conditions"] = written["conditions"]
	stored.Object["status"] = status
	if !reflect.DeepEqual(before.Object, stored.Object) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := c.Status().Patch(ctx, stored, patch, client.FieldOwner(owner)); err != nil {
			return ctrl.Result{}, fmt.Errorf("%w; and this could not be written into the status: %w", mistake, err)
		}
	}
	return after, nil
}

// selects reports whether an object is selected; by nil, everything is.
func selects(selector labels.Selector, object client.Object) bool {
	return selector == nil || object != nil && selector.Matches(labels.Set(object.GetLabels()))
}
