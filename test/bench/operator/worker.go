// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// Worker runs the operator from the order to connect on.
type Worker struct {
	counter    *subject.RequestCounter
	ended      chan error
	reconciler *component.Reconciler[*Load]
}

// Connect starts the operator, and returns when its caches are filled.
func (w *Worker) Connect(ctx context.Context, order subject.Order, counter *subject.RequestCounter) error {
	ctrl.SetLogger(logr.Discard())
	config := order.Cluster.Config()
	config.Wrap(counter.Wrap)
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	lock, options := (*component.LeaderLock)(nil), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	if order.Lease != "" {
		if lock, err = component.NewLeaderLock(config, order.Namespace, order.Lease); err != nil {
			return err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
		options.LeaderElectionReleaseOnCancel = true // as an operator that is made with pkg/operator
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(6*time.Second), new(4*time.Second), new(time.Second)
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	reconcilerOptions := component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: lock}}
	if order.MaxUnavailable != "" {
		reconcilerOptions.Revisions.Rollout = &component.Rollout{MaxUnavailable: intstr.Parse(order.MaxUnavailable)}
	}
	w.reconciler = component.NewReconciler[*Load](Name, generator(order.Chart), reconcilerOptions)
	if err := w.reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	w.counter, w.ended = counter, make(chan error, 1)
	if order.Lease != "" {
		go func() { os.Exit(exitCode(manager.Start(ctx))) }()
		return nil
	}
	go func() {
		defer close(w.ended)
		w.ended <- manager.Start(ctx)
	}()
	select {
	case <-manager.Elected():
	case err := <-w.ended:
		return fmt.Errorf("the manager ended: %w", errors.Join(err, ctx.Err()))
	}
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches of the manager are not filled")
	}
	return nil
}

// End waits until the manager has ended, and has given up its lease.
func (w *Worker) End() {
	if w.ended != nil {
		for range w.ended {
			continue // until it is closed
		}
	}
}

// exitCode is that of a process after its manager ended.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	if err.Error() == "leader election lost" {
		return subject.LeadershipLost
	}
	return 1
}

// Broken is the beginning of a version with which no component becomes ready.
const Broken = "broken"

// generator is that of an operator that brings a version of a chart.
type generator string

// Digest is a method that an operator asks.
func (g generator) Digest() string { return string(g) }

// Generate implements manifests.Generator.
func (g generator) Generate(_ context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	values := parameters.ToUnstructured()
	if isChart, _ := values["chart"].(bool); !isChart {
		return g.configMaps(namespace, name, values), nil
	}
	cpu, _ := values["all"].(string)
	objects := make([]client.Object, 0, subject.ChartObjects)
	for _, object := range subject.Chart(name, cpu, string(g)) {
		objects = append(objects, object)
	}
	return objects, nil
}

func (g generator) configMaps(namespace, name string, values map[string]any) []client.Object {
	n, _ := values["objects"].(int64)
	all, _ := values["all"].(string)
	one, _ := values["one"].(string)
	objects := make([]client.Object, 0, n)
	away, _ := values["away"].(bool)
	versioned, _ := values["versioned"].(bool)
	for i, object := range (subject.Objects{Prefix: name, N: int(n), All: all, One: one}).Unstructured("") {
		if versioned {
			object.Object["data"].(map[string]any)["version"] = string(g)
			if strings.HasPrefix(string(g), Broken) {
				object.SetAnnotations(map[string]string{Name + "/" + v1alpha1.AnnotationReadyWhen: "false"})
			}
		}
		if away && i%2 == 1 {
			object.SetNamespace(Away(namespace, name))
		}
		objects = append(objects, object)
	}
	if job, _ := values["job"].(bool); job {
		objects = append(objects, jobOf(name))
	}
	return objects
}

// jobOf is the Job of a component. Once it has ended its time to live removes it.
func jobOf(name string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"ttlSecondsAfterFinished": int64(5),
			"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{"name": "job", "image": "job"}},
			}},
		},
	}}
}

// Work waits until there is nothing to do, or plans; an operator needs no other orders.
func (w *Worker) Work(ctx context.Context, order subject.Order) (time.Time, error) {
	switch order.Do {
	case subject.Idle:
		return w.idle(ctx, order.Reconciles)
	case subject.Plan, subject.PlanDeletion:
		err := w.plan(ctx, order)
		return time.Now(), err
	default:
		return time.Time{}, errors.New("an operator cannot be ordered to do that")
	}
}

// plan plans the component of the objects as it would be after an edit, or its deletion.
func (w *Worker) plan(ctx context.Context, order subject.Order) error {
	objects := order.Objects
	request := component.PlanRequest[*Load]{Key: client.ObjectKey{Namespace: order.Namespace, Name: objects.Prefix}}
	if order.Do == subject.PlanDeletion {
		request.Delete = true
	} else {
		request.Edited = &Load{Spec: LoadSpec{Objects: objects.N, All: objects.All, One: objects.One}}
	}
	plan, err := w.reconciler.Plan(ctx, request)
	if err != nil {
		return err
	}
	if len(plan.Changes) != order.Changes || len(plan.Incomplete) > 0 {
		return fmt.Errorf("the plan has %d changes, want %d: %+v", len(plan.Changes), order.Changes, plan)
	}
	return nil
}
