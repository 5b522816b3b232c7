// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
}

const engineName = "engine.corbel.run"

// bench is an engine, a namespace to work in, and the record that it keeps.
type bench struct {
	client.Client
	t         *testing.T
	engine    *reconciler.Reconciler
	namespace string
	name      string // of the owner; empty means main
	inventory v1alpha1.Inventory
	// confidential is that of the requests.
	confidential bool
	records      int // how often the record was made durable
}

func newTarget(t *testing.T) cluster.Target {
	t.Helper()
	target, err := cluster.New(env.Shared(t).Config(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func newEngine(t *testing.T, options reconciler.ReconcilerOptions) *reconciler.Reconciler {
	t.Helper()
	engine, err := reconciler.NewReconciler(engineName, reconciler.Target{Target: newTarget(t)}, keyed(options))
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// keyed are the options with a key for digests and seals, unless they say which.
func keyed(options reconciler.ReconcilerOptions) reconciler.ReconcilerOptions {
	if options.DigestKey == nil {
		options.DigestKey = []byte("the key of the tests")
	}
	return options
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Client: newTarget(t).Client(), t: t, engine: newEngine(t, reconciler.ReconcilerOptions{})}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "engine-"}}
	if err := b.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	b.namespace = namespace.Name
	return b
}

func (b *bench) owner() reconciler.Owner {
	return reconciler.Owner{Group: "example.com", Kind: "Release", Namespace: b.namespace, Name: cmp.Or(b.name, "main"), UID: "1"}
}

func (b *bench) record(_ context.Context, inventory v1alpha1.Inventory) error {
	b.records++
	b.inventory = inventory
	return nil
}

// apply applies once and keeps the record.
func (b *bench) apply(objects ...client.Object) (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Apply(b.t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record,
	})
	b.inventory = outcome.Inventory
	return outcome, err
}

// mustApply expects everything to be done at once.
func (b *bench) mustApply(objects ...client.Object) reconciler.Outcome {
	b.t.Helper()
	outcome, err := b.apply(objects...)
	if err != nil || !outcome.Done() {
		b.t.Fatalf("apply: %v, waiting for %v", err, outcome.Waiting)
	}
	return outcome
}

func (b *bench) delete() (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Delete(b.t.Context(), reconciler.DeleteRequest{
		Owner: b.owner(), Inventory: b.inventory, Record: b.record,
	})
	b.inventory = outcome.Inventory
	return outcome, err
}

// get reads a ConfigMap of the bench's namespace; nil if there is none.
func (b *bench) get(name string) *corev1.ConfigMap {
	b.t.Helper()
	config := &corev1.ConfigMap{}
	err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, config)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return config
}

// config is the manifest of a ConfigMap; annotations come in pairs, without the prefix.
func config(name, value string, annotations ...string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if len(annotations) > 0 {
		set := map[string]any{}
		for i := 0; i < len(annotations); i += 2 {
			set[engineName+"/"+annotations[i]] = annotations[i+1]
		}
		metadata["annotations"] = set
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": map[string]any{"value": value},
	}}
}

// change changes a ConfigMap by hand.
func (b *bench) change(name string, change func(*corev1.ConfigMap)) {
	b.t.Helper()
	live := b.get(name)
	change(live)
	if err := b.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
}

// object makes a manifest; the name can be "namespace/name".
func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for key, value := range content {
		o.Object[key] = value
	}
	if namespace, rest, found := strings.Cut(name, "/"); found {
		o.SetNamespace(namespace)
		name = rest
	}
	o.SetName(name)
	return o
}

func placed(o *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	o.SetNamespace(namespace)
	return o
}

func podTemplate(name string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": name}},
		"spec": map[string]any{
			"restartPolicy": "Never",
			"containers":    []any{map[string]any{"name": "main", "image": "web:1"}},
		},
	}
}
