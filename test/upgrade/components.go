// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/component"
)

// namespace is that of the component.
func (s state) namespace() string { return "upgrade-" + s.name }

// object returns an object with the name of the component, without content.
func (s state) object(apiVersion, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(s.namespace())
	o.SetName(s.name)
	return o
}

func (s state) site() *unstructured.Unstructured { return s.object(group+"/v1alpha1", "Site") }

// site reads a component.
func (r *rehearsal) site(ctx context.Context, s state) (*unstructured.Unstructured, error) {
	site := s.site()
	return site, r.client.Get(ctx, client.ObjectKeyFromObject(site), site)
}

// statusOf decodes the status of a component.
func statusOf(site *unstructured.Unstructured) (status component.Status, err error) {
	content, _, err := unstructured.NestedMap(site.Object, "status")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status)
	}
	return status, err
}

// prepare brings a component to its state.
func (r *rehearsal) prepare(ctx context.Context, s state) error {
	if err := r.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace()}}); err != nil {
		return err
	}
	if s.others != "" {
		other := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(s.others), &other.Object); err != nil {
			return err
		}
		other.SetNamespace(s.namespace())
		if err := r.client.Create(ctx, other); err != nil {
			return err
		}
	}
	site := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(s.component), &site.Object); err != nil {
		return err
	}
	if site.Object == nil {
		site.Object = map[string]any{}
	}
	identity := s.site()
	site.SetAPIVersion(identity.GetAPIVersion())
	site.SetKind(identity.GetKind())
	site.SetNamespace(identity.GetNamespace())
	site.SetName(identity.GetName())
	if err := r.client.Create(ctx, site); err != nil {
		return err
	}
	steps := s.steps
	if len(steps) == 0 {
		steps = []step{ready}
	}
	for n, step := range steps {
		if err := r.take(ctx, s, step); err != nil {
			return fmt.Errorf("step %d: %w", n+1, err)
		}
	}
	return nil
}

// take makes the change of a step, and waits for the state that follows.
func (r *rehearsal) take(ctx context.Context, s state, step step) error {
	if step.patch != "" {
		if err := r.patch(ctx, s.site(), step.patch); err != nil {
			return err
		}
	}
	if step.other != "" {
		if err := r.patch(ctx, s.object("v1", "ConfigMap"), step.other); err != nil {
			return err
		}
	}
	if step.deleted {
		if err := r.client.Delete(ctx, s.site()); err != nil {
			return err
		}
	}
	return r.await(ctx, patience, func() error { return r.reached(ctx, s, step) })
}

// patch sends a merge patch as YAML.
func (r *rehearsal) patch(ctx context.Context, o *unstructured.Unstructured, patch string) error {
	data, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data))
}

const (
	interval = 250 * time.Millisecond
	// patience is far more than anything takes on a machine that is not overloaded.
	patience = 5 * time.Minute
)

// await calls a check until it returns no error, as long as the operator runs.
func (r *rehearsal) await(ctx context.Context, patience time.Duration, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(context.Context) (bool, error) {
		if err := r.operator.failure(); err != nil {
			return false, err
		}
		last = check()
		return last == nil, nil
	})
	return errors.Join(err, last)
}

// reached returns an error if a component is not in the state of a step.
func (r *rehearsal) reached(ctx context.Context, s state, step step) error {
	site, err := r.site(ctx, s)
	if err != nil {
		return err
	}
	status, err := statusOf(site)
	if err != nil {
		return err
	}
	text := textOf(status)
	switch {
	case status.ObservedGeneration != site.GetGeneration(),
		status.State != step.state, step.revision != 0 && status.Revision != step.revision, !strings.Contains(text, step.message):
		return fmt.Errorf("it is %s with revision %d, want %s, %d and the message %q; its conditions are: %s", status.State, status.Revision, step.state, step.revision, step.message, text)
	case step.chunks && (status.Inventory.Chunks == nil || status.Inventory.Chunks.Current == 0):
		return errors.New("its inventory is not in Secrets")
	case step.noJob:
		job := s.object("batch/v1", "Job")
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("its Job exists"))
		}
	}
	return nil
}

// textOf returns the conditions of a status.
func textOf(status component.Status) string {
	var texts []string
	for _, c := range status.Conditions {
		texts = append(texts, fmt.Sprintf("%s %s, %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(texts, "; ")
}

// change changes the value of the first component.
func (r *rehearsal) change(ctx context.Context) error {
	s := states[0]
	before, err := r.site(ctx, s)
	if err != nil {
		return err
	}
	status, err := statusOf(before)
	if err != nil {
		return err
	}
	if err := r.take(ctx, s, value("changed", step{state: ready.state, revision: status.Revision + 1})); err != nil {
		return fmt.Errorf("change %s: %w", s.name, err)
	}
	settings := s.object("v1", "ConfigMap")
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(settings), settings); err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(settings.Object, "data", "value"); got != "changed" {
		return fmt.Errorf("change %s: ConfigMap %s/%s has the value %q", s.name, s.namespace(), s.name, got)
	}
	return nil
}

// remove deletes a component, and waits until it is gone.
func (r *rehearsal) remove(ctx context.Context, s state) error {
	if s.end != "" {
		if err := r.patch(ctx, s.site(), s.end); err != nil {
			return err
		}
	}
	for _, o := range []*unstructured.Unstructured{s.site(), s.object("v1", "ConfigMap")} {
		if err := r.release(ctx, o); err != nil {
			return err
		}
	}
	if err := r.client.Delete(ctx, s.site()); client.IgnoreNotFound(err) != nil {
		return err
	}
	return r.await(ctx, patience, func() error {
		site, err := r.site(ctx, s)
		if apierrors.IsNotFound(err) {
			return nil
		}
		status, decodeErr := statusOf(site)
		return errors.Join(err, decodeErr, fmt.Errorf("it is not deleted: %s", textOf(status)))
	})
}

// release removes the foreign finalizer from an object, if it exists.
func (r *rehearsal) release(ctx context.Context, o *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return client.IgnoreNotFound(err)
		}
		finalizers := o.GetFinalizers()
		left := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool { return name == foreign })
		if len(left) == len(finalizers) {
			return nil
		}
		o.SetFinalizers(left)
		return client.IgnoreNotFound(r.client.Update(ctx, o))
	})
}

// nothingLeft returns an error that names the objects with the label of an owner.
func (r *rehearsal) nothingLeft(ctx context.Context) error {
	var left []string
	for _, kind := range []string{"v1 ConfigMap", "v1 Secret", "apps/v1 Deployment", "batch/v1 Job", group + "/v1 Part"} {
		list := &unstructured.UnstructuredList{}
		apiVersion, name, _ := strings.Cut(kind, " ")
		list.SetAPIVersion(apiVersion)
		list.SetKind(name + "List")
		if err := r.client.List(ctx, list, client.HasLabels{group + "/owner-id"}); err != nil {
			return err
		}
		for _, o := range list.Items {
			left = append(left, name+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the components are deleted, and objects are left: %s", strings.Join(left, ", "))
	}
	return nil
}
