// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var keySettings = settings{name: "shop.example.com", operatorNamespace: "operators"}

func TestAllProcessesHaveTheSameDigestKey(t *testing.T) {
	cluster := fake.NewFakeClient()
	keys := make([][]byte, 20)
	one := newDigestKey(cluster, keySettings)
	var all sync.WaitGroup
	for i := range keys {
		source := one // two workers of a process, and other processes
		if i > 1 {
			source = newDigestKey(cluster, keySettings)
		}
		all.Go(func() {
			key, err := source.get(t.Context())
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
	if other, err := newDigestKey(fake.NewFakeClient(), keySettings).get(t.Context()); err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("the key of another cluster is %x, %v", other, err)
	}
}

func TestDigestKeyIsReadOnce(t *testing.T) {
	counting := &countingClient{Client: fake.NewFakeClient()}
	key := newDigestKey(counting, keySettings)
	if key.known() != nil {
		t.Error("the key is known before it was read")
	}
	for range 3 {
		if _, err := key.get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if counting.gets != 2 || key.known() == nil { // to find out that there is none, and what was created
		t.Errorf("%d reads", counting.gets)
	}
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
			_, err := newDigestKey(test.client, keySettings).get(t.Context())
			checkMistakes(t, err, test.err)
		})
	}
}

func TestWithoutADigestKeyNothingIsApplied(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	h.digestKey = newDigestKey(fake.NewFakeClient(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "shop.example.com-digest-key"},
	}), keySettings)
	if _, err := h.createOrUpdate(t.Context(), newWidget(), noCommit); err == nil || len(engine.applied) > 0 {
		t.Errorf("error %v", err)
	}
	// But a component that has nothing to lose can go.
	if _, err := h.delete(t.Context(), deletedWidget(someInventory), noCommit); err == nil {
		t.Error("no error in deletion")
	}
	if _, err := h.delete(t.Context(), deleted(newWidget()), noCommit); err != nil {
		t.Errorf("in the deletion of an empty component: %v", err)
	}
}
