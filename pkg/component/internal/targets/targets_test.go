// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

var keySecret = DigestKeySecret("operators", "shop.example.com")

func TestAllProcessesHaveTheSameDigestKey(t *testing.T) {
	cluster := fake.NewFakeClient()
	keys := make([][]byte, 20)
	one := NewDigestKey(cluster, keySecret)
	var all sync.WaitGroup
	for i := range keys {
		source := one // two workers of a process, and other processes
		if i > 1 {
			source = NewDigestKey(cluster, keySecret)
		}
		all.Go(func() {
			key, err := source.Get(t.Context())
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != digestKeyBytes || !bytes.Equal(key, keys[0]) {
			t.Errorf("keys %x", keys)
		}
	}
	secret := &corev1.Secret{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "operators", Name: "shop.example.com-digest-key"}, secret); err != nil || !*secret.Immutable {
		t.Errorf("secret %v, %v", secret, err)
	}
	if other, err := NewDigestKey(fake.NewFakeClient(), keySecret).Get(t.Context()); err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("the key of another cluster is %x, %v", other, err)
	}
}

func TestDigestKeyIsReadOnce(t *testing.T) {
	gets := 0
	counting := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			gets++
			return c.Get(ctx, key, obj, options...)
		},
	})
	key := NewDigestKey(counting, keySecret)
	if key.Cached() != nil {
		t.Error("the key is cached before it was read")
	}
	for range 3 {
		if _, err := key.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if gets != 2 || key.Cached() == nil { // to find out that there is none, and what was created
		t.Errorf("%d reads", gets)
	}
}

func TestDigestKeyIsWaitedForNoLongerThanTheCaller(t *testing.T) {
	first, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	reads := make(chan struct{}, 2)
	key := NewDigestKey(interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			reads <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	}), keySecret)
	var all sync.WaitGroup
	all.Go(func() { _, _ = key.Get(first) })
	<-reads
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := key.Get(ended); !errors.Is(err, context.Canceled) || key.Cached() != nil || first.Err() != nil {
		t.Errorf("error %v, while the first reader ended with %v", err, first.Err())
	}
	cancel()
	all.Wait()
}

func TestDigestKeyThatCannotBeHad(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	answering := func(err error) client.Client {
		return interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		})
	}
	short := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "shop.example.com-digest-key"}, Data: map[string][]byte{"key": []byte("short")},
	}
	tests := []struct {
		name   string
		client client.Client
		err    string
	}{
		{"a key that is none", fake.NewFakeClient(short), "Secret operators/shop.example.com-digest-key|the key key has 5 bytes, not 32: delete the secret"},
		{"no rights", answering(apierrors.NewForbidden(secrets, "x", errors.New("no"))), "Secret operators/shop|needs the rights get and create for secrets in its namespace"},
		{"no namespace", answering(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "operators")), `namespaces "operators" not found; create the namespace, or set the option OperatorNamespace`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewDigestKey(test.client, keySecret).Get(t.Context())
			for _, text := range strings.Split(test.err, "|") {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("the error %v does not say %q", err, text)
				}
			}
		})
	}
}
