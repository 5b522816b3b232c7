// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/clusterreader"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/subject"
)

// What kustomize-controller sets by default.
const (
	controller  = "kustomize-controller"
	group       = "kustomize.toolkit.fluxcd.io"
	concurrency = 4
	timeout     = 10 * time.Minute // of a Kustomization, where it is the user's
)

// name is that of the Kustomization that there is not.
const name = "bench"

// worker is what stands between a Kustomization that is built and its status.
type worker struct {
	manager   *ssa.ResourceManager
	namespace string
	changes   *ssa.ChangeSet
}

// Connect makes the manager of resources.
func (w *worker) Connect(_ context.Context, order subject.Order, counter *subject.RequestCounter) error {
	config := order.Cluster.Config()
	config.Wrap(counter.Wrap)
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{
		ClusterReaderFactory: engine.ClusterReaderFactoryFunc(clusterreader.NewDirectClusterReader),
	})
	w.manager = ssa.NewResourceManager(c, poller, ssa.Owner{Field: controller, Group: group})
	w.manager.SetConcurrency(concurrency)
	w.namespace = order.Namespace
	_, err = c.RESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}) // learned before it counts
	return err
}

// Work applies, deletes, or waits.
func (w *worker) Work(ctx context.Context, order subject.Order) (time.Time, error) {
	var err error
	switch order.Do {
	case subject.Apply:
		err = w.apply(ctx, order.Objects.Unstructured(w.namespace))
	case subject.Healthy:
		err = w.manager.WaitForSetWithContext(ctx, w.changes.ToObjMetadataSet(), ssa.WaitOptions{
			Interval: 5 * time.Second, Timeout: timeout, FailFast: true,
		})
	case subject.Delete:
		w.changes, err = w.manager.DeleteAll(ctx, order.Objects.Unstructured(w.namespace), deleteOptions(w.manager, w.namespace))
	case subject.Terminated:
		err = w.manager.WaitForSetTermination(w.changes, ssa.WaitOptions{Interval: 2 * time.Second, Timeout: timeout})
	case subject.Plan:
		err = w.plan(ctx, order.Objects.Unstructured(w.namespace), order.Changes)
	default:
		err = errors.New("the library of Flux cannot do that")
	}
	return time.Now(), err
}

func (w *worker) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	w.manager.SetOwnerLabels(objects, name, w.namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	var err error
	if w.changes, err = w.manager.ApplyAllStaged(ctx, objects, applyOptions()); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return nil
}

// plan compares one object after the other, as the command flux diff kustomization does.
func (w *worker) plan(ctx context.Context, objects []*unstructured.Unstructured, want int) error {
	w.manager.SetOwnerLabels(objects, name, w.namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	options := ssa.DefaultDiffOptions()
	options.Exclusions = map[string]string{group + "/reconcile": "disabled", group + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	changes := 0
	for _, object := range objects {
		change, _, _, err := w.manager.Diff(ctx, object, options)
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		if change.Action != ssa.UnchangedAction {
			changes++
		}
	}
	if changes != want {
		return fmt.Errorf("%d objects differ, want %d", changes, want)
	}
	return nil
}

func applyOptions() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{group + "/reconcile": "disabled", group + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, group + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{group + "/ssa": "Merge"},
	}
	return options
}

func deleteOptions(manager *ssa.ResourceManager, namespace string) ssa.DeleteOptions {
	return ssa.DeleteOptions{
		PropagationPolicy: metav1.DeletePropagationBackground,
		Inclusions:        manager.GetOwnerLabels(name, namespace),
		Exclusions: map[string]string{
			group + "/prune": "disabled", group + "/reconcile": "disabled", group + "/ssa": "Ignore",
		},
	}
}
