// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// blackHole takes connections and never says anything.
func blackHole(t *testing.T) *rest.Config {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return &rest.Config{Host: "https://" + listener.Addr().String(), BearerToken: "x"}
}

// fleet is an operator that runs, with components in many clusters.
type fleet struct {
	*remoteBed
	mu       sync.Mutex
	rendered map[string]int // by the name of the component
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{remoteBed: newRemoteBed(t, otherCluster(t)), rendered: map[string]int{}}
	mgr := must(ctrl.NewManager(must(f.env.ConfigFor(f.user, "system:masters"))(t), ctrl.Options{
		Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
	}))(t)
	generator := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		f.mu.Lock()
		f.rendered[name]++
		f.mu.Unlock()
		return configMaps(ctx, namespace, name, p)
	})
	reconciler := component.NewReconciler[*widget.Widget](operatorName, generator, component.ReconcilerOptions{TargetDialPolicy: anyAddress})
	f.check(reconciler.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// add makes a component in a cluster of its own.
func (f *fleet) add(name, kubeconfig string) {
	f.Helper()
	f.createSecret(name, map[string]string{"value": kubeconfig})
	spec := remoteSpec(map[string]string{name: "0"})
	spec.KubeConfig.SecretRef.Name = name
	f.check(f.client.Create(f.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Spec: spec}))
}

// await waits until all components have the reason.
func (f *fleet) await(names []string, reason string) {
	f.Helper()
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(100 * time.Millisecond) {
		var others []string
		for _, name := range names {
			w := &widget.Widget{}
			f.check(f.client.Get(f.Context(), f.key(name), w))
			if _, got, message := w.Status.GetState(); got != reason {
				others = append(others, fmt.Sprintf("%s is %s: %s", name, got, message))
			}
		}
		if len(others) == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("not %s: %s", reason, strings.Join(others, "\n"))
		}
	}
}

// round changes all components at the same time, and returns how long it took until
// the change was in the cluster of the slowest, and of the median.
func (f *fleet) round(names []string, value string) (slowest, median time.Duration) {
	f.Helper()
	started := map[string]time.Time{}
	for _, name := range names {
		w := &widget.Widget{}
		f.check(f.client.Get(f.Context(), f.key(name), w))
		w.Spec.Values[name] = value
		started[name] = time.Now()
		f.check(f.client.Update(f.Context(), w))
	}
	took := map[string]time.Duration{}
	for deadline := time.Now().Add(2 * patience); len(took) < len(names); time.Sleep(5 * time.Millisecond) {
		list := &corev1.ConfigMapList{}
		f.check(f.far.List(f.Context(), list, client.InNamespace(f.namespace)))
		for _, configMap := range list.Items {
			if at, ok := started[configMap.Name]; ok && configMap.Data["value"] == value && took[configMap.Name] == 0 {
				took[configMap.Name] = time.Since(at)
			}
		}
		if time.Now().After(deadline) {
			f.Fatalf("only %d of %d components changed", len(took), len(names))
		}
	}
	var all []time.Duration
	for _, d := range took {
		all = append(all, d)
	}
	slices.Sort(all)
	return all[len(all)-1], all[len(all)/2]
}

func TestUnreachableClustersHoldNoWorkerAndSlowDownNoOtherComponent(t *testing.T) {
	const count = 20
	f := newFleet(t)
	var live, dead []string
	for i := range count {
		live = append(live, fmt.Sprintf("live-%d", i))
		f.add(live[i], f.kubeconfig(live[i]))
	}
	f.await(live, v1alpha1.ReasonReady)
	f.round(live, "warm")
	slowest, median := f.round(live, "alone")
	t.Logf("alone: slowest %s, median %s", slowest, median)

	for i := range count {
		dead = append(dead, fmt.Sprintf("dead-%d", i))
		f.add(dead[i], kubeconfigOf(t, blackHole(t)))
	}
	slowest, median = f.round(live, "together")
	t.Logf("while %d clusters are found dead: slowest %s, median %s", count, slowest, median)
	f.await(dead, v1alpha1.ReasonTargetUnreachable)
	slowest, median = f.round(live, "later")
	t.Logf("beside %d dead clusters: slowest %s, median %s", count, slowest, median)

	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range dead {
		if f.rendered[name] > 0 {
			t.Errorf("%s was reconciled", name)
		}
	}
}
