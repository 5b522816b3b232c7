// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// requeued is a Queue that notes which components are requeued.
type requeued map[client.ObjectKey]time.Duration

func (requeued) RequestFull(client.ObjectKey) {}

func (requeued) DependentChanged(reconciler.Owner, reconciler.Change) {}

func (r requeued) RequestFast(key client.ObjectKey, after time.Duration) { r[key] = after }

// newTargets returns Targets with a local cluster that does not answer.
func newTargets(queue Queue) *Targets {
	scheme := runtime.NewScheme()
	return New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{
		Name:      "shop.example.com",
		Engine:    reconciler.ReconcilerOptions{Scheme: scheme},
		Pool:      target.Options{Cluster: cluster.Options{Scheme: scheme}},
		DigestKey: NewDigestKey(fake.NewFakeClient(), keySecret),
		LocalUID:  NewClusterUID(fake.NewFakeClient(), KubeSystem, ""),
		Queue:     queue,
	})
}

func TestNoEngineIsKeptForATargetThatIsEvictedBeforeItsEngineIsMade(t *testing.T) {
	ts := newTargets(requeued{})
	lease, err := ts.pool.Acquire(target.Access{}, client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	ts.pool.Close()
	connection, err := ts.connect(lease, true, false)
	if err != nil || connection.Engine == nil {
		t.Fatalf("the reconcile that has the lease cannot go on: %v", err)
	}
	connection.Release()
	if len(ts.engines) > 0 {
		t.Errorf("%d engines are kept", len(ts.engines))
	}
}

func TestTheComponentsOfAnEvictedTargetAreRequeued(t *testing.T) {
	queue := requeued{}
	ts := newTargets(queue)
	defer ts.pool.Close()
	var used []Connection
	for _, user := range []string{"here", "there"} {
		connection, err := ts.Connect(target.Access{User: user}, client.ObjectKey{})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Release()
		ts.SetEngine(reconciler.Owner{Kind: "Widget", Namespace: "shop", Name: user, UID: "u"}, connection)
		used = append(used, connection)
	}
	ts.close(used[0].Target)
	if _, ok := queue[client.ObjectKey{Namespace: "shop", Name: "here"}]; !ok || len(queue) != 1 {
		t.Errorf("requeued are %v", queue)
	}
	if len(ts.watching) != 1 || len(ts.engines) != 1 {
		t.Errorf("%d components are thought to be watched by %d engines", len(ts.watching), len(ts.engines))
	}
}

func TestAComponentIsRequeuedIfItsTargetIsEvictedBeforeItsEngineIsSet(t *testing.T) {
	queue := requeued{}
	ts := newTargets(queue)
	defer ts.pool.Close()
	connection, err := ts.Connect(target.Access{}, client.ObjectKey{})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Release()
	ts.close(connection.Target)
	ts.SetEngine(reconciler.Owner{Kind: "Widget", Namespace: "shop", Name: "main", UID: "u"}, connection)
	if _, ok := queue[client.ObjectKey{Namespace: "shop", Name: "main"}]; !ok {
		t.Errorf("requeued are %v", queue)
	}
	if len(ts.watching) > 0 {
		t.Error("an engine that is closed is thought to watch its dependents")
	}
}
