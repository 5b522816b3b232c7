// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package outputs

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// widget is a component.
type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	status v1alpha1.ComponentStatus
}

func (w *widget) DeepCopyObject() runtime.Object       { return new(*w) }
func (*widget) GetSpec() types.Unstructurable          { return nil }
func (w *widget) GetStatus() *v1alpha1.ComponentStatus { return &w.status }

func newWidget() *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", UID: "uid-1"}}
}

// publisher returns the publisher of a process.
func publisher(c client.Client) *Publisher {
	return &Publisher{
		Self:  &identity.Operator{Name: "test.corbel.run", FieldOwner: "test", Kind: schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"}},
		Local: c, Key: func(context.Context) ([]byte, error) { return []byte("key"), nil }, Leading: func() error { return nil },
		Watch: func(client.ObjectKey, informer.Reference) {},
	}
}

func password(value string) []reconciler.Output {
	return []reconciler.Output{{Name: "password", Value: value, Found: true, Secret: true}}
}

func noCommit(context.Context) error { return nil }

func secretOf(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	check.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "main-outputs"}, secret))
	return secret
}

// TestAWriteThatIsBasedOnAnOldSecretIsRefused lets another process write between the read and the write of this one.
func TestAWriteThatIsBasedOnAnOldSecretIsRefused(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w, other := newWidget(), newWidget()
	check.NoError(t, publisher(server).Publish(t.Context(), w, password("one"), noCommit))
	other.status = *w.status.DeepCopy()
	late := interceptor.NewClient(server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			check.NoError(t, publisher(server).Publish(ctx, other, password("three"), noCommit))
			return c.Patch(ctx, object, patch, options...)
		},
	})
	if err := publisher(late).Publish(t.Context(), w, password("two"), noCommit); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if got := string(secretOf(t, server).Data["password"]); got != "three" {
		t.Errorf("the Secret has %q", got)
	}
	before := w.status.OutputsDigest
	if publisher(server).Check(t.Context(), w); w.status.OutputsDigest != "" {
		t.Errorf("the values of another process are taken for the own ones, digest %s", before)
	}
}

func TestAProcessThatDoesNotLeadWritesNothing(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w := newWidget()
	deposed := publisher(server)
	deposed.Leading = func() error { return errors.New("another process leads") }
	if err := deposed.Publish(t.Context(), w, password("one"), noCommit); err == nil || !strings.Contains(err.Error(), "another process leads") {
		t.Errorf("got %v", err)
	}
	check.NoError(t, publisher(server).Publish(t.Context(), w, password("one"), noCommit))
	if err := deposed.Publish(t.Context(), w, nil, noCommit); err == nil || !strings.Contains(err.Error(), "another process leads") {
		t.Errorf("a deletion: got %v", err)
	}
	if len(secretOf(t, server).Data) != 1 {
		t.Error("the Secret is changed")
	}
}

// TestTheStatusNamesASecretOutputBeforeTheSecretExists ends the process at the commit of the status.
func TestTheStatusNamesASecretOutputBeforeTheSecretExists(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w, crash := newWidget(), errors.New("crash")
	var committed v1alpha1.ComponentStatus
	err := publisher(server).Publish(t.Context(), w, password("one"), func(context.Context) error { committed = *w.status.DeepCopy(); return crash })
	if !errors.Is(err, crash) || len(committed.SecretOutputs) != 1 || committed.OutputsDigest != "" {
		t.Errorf("got %v, and the status %v", err, committed.SecretOutputs)
	}
	list := &corev1.SecretList{}
	if check.NoError(t, server.List(t.Context(), list)); len(list.Items) > 0 {
		t.Errorf("the Secret exists: %v", list.Items)
	}
	// The next process goes on, also if it has no secret output any more.
	for _, next := range [][]reconciler.Output{password("two"), nil} {
		w.status = committed
		check.NoError(t, publisher(server).Publish(t.Context(), w, next, noCommit))
		check.NoError(t, server.List(t.Context(), list))
		if len(list.Items) != len(next) || len(w.status.SecretOutputs) != len(next) {
			t.Errorf("with %d outputs: %d Secrets, and the status %v", len(next), len(list.Items), w.status.SecretOutputs)
		}
	}
}

func TestASecretOfAnotherOwnerIsNeitherWrittenNorDeleted(t *testing.T) {
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main-outputs", OwnerReferences: []metav1.OwnerReference{{APIVersion: "test.corbel.run/v1", Kind: "Widget", Name: "other"}}},
		Data:       map[string][]byte{"password": []byte("theirs")},
	}
	server := fake.NewClientBuilder().WithObjects(foreign).Build()
	w := newWidget()
	if err := publisher(server).Publish(t.Context(), w, password("one"), noCommit); err == nil || !strings.Contains(err.Error(), "does not belong to") {
		t.Errorf("got %v", err)
	}
	check.NoError(t, publisher(server).Publish(t.Context(), w, nil, noCommit))
	if got := string(secretOf(t, server).Data["password"]); got != "theirs" || len(w.status.SecretOutputs) > 0 {
		t.Errorf("the Secret has %q, and the status %v", got, w.status.SecretOutputs)
	}
	// A Secret that has become that of another owner is noticed, whatever its values are.
	check.NoError(t, server.Delete(t.Context(), foreign))
	check.NoError(t, publisher(server).Publish(t.Context(), w, password("one"), noCommit))
	stolen := secretOf(t, server)
	stolen.OwnerReferences = foreign.OwnerReferences
	check.NoError(t, server.Update(t.Context(), stolen))
	if publisher(server).Check(t.Context(), w); w.status.OutputsDigest != "" {
		t.Error("the Secret of another owner is taken for the own one")
	}
}

// TestASecretOfAnotherTypeIsNeitherWrittenNorDeleted takes no owner reference alone for a proof.
func TestASecretOfAnotherTypeIsNeitherWrittenNorDeleted(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w := newWidget()
	check.NoError(t, publisher(server).Publish(t.Context(), w, password("one"), noCommit))
	own := secretOf(t, server)
	check.NoError(t, server.Delete(t.Context(), own))
	own.ResourceVersion, own.Type, own.Data = "", corev1.SecretTypeOpaque, map[string][]byte{"password": []byte("theirs")}
	check.NoError(t, server.Create(t.Context(), own))
	publisher(server).Check(t.Context(), w)
	if err := publisher(server).Publish(t.Context(), w, password("one"), noCommit); err == nil || !strings.Contains(err.Error(), "does not belong to") {
		t.Errorf("got %v", err)
	}
	check.NoError(t, publisher(server).Publish(t.Context(), w, nil, noCommit))
	if got := string(secretOf(t, server).Data["password"]); got != "theirs" {
		t.Errorf("the Secret has %q", got)
	}
}

// TestADeletionOfAnOldSecretIsRefused lets another process create the Secret anew between the read and the deletion of this one.
func TestADeletionOfAnOldSecretIsRefused(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w := newWidget()
	check.NoError(t, publisher(server).Publish(t.Context(), w, password("one"), noCommit))
	before := secretOf(t, server)
	before.UID = "one"
	check.NoError(t, server.Update(t.Context(), before))
	late := interceptor.NewClient(server, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			demanded := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
			if demanded == nil || demanded.UID == nil || *demanded.UID != before.UID {
				t.Errorf("the deletion demands %+v", demanded)
			}
			return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, before.Name, errors.New("the UID is another one"))
		},
	})
	if err := publisher(late).Publish(t.Context(), w, nil, noCommit); !apierrors.IsConflict(err) || len(w.status.SecretOutputs) == 0 {
		t.Errorf("got %v, and the status %v", err, w.status.SecretOutputs)
	}
}

func TestAnOutputOfAnObjectThatIsNotReadStays(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	w := newWidget()
	found := append(password("one"), reconciler.Output{Name: "host", Value: "a", Found: true})
	first, watched := publisher(server), informer.Reference{}
	first.Watch = func(_ client.ObjectKey, secret informer.Reference) { watched = secret }
	check.NoError(t, first.Publish(t.Context(), w, found, noCommit))
	if watched != referenceTo(secretOf(t, server)) || watched.ResourceVersion == "" {
		t.Errorf("%+v is watched", watched)
	}
	if owners := secretOf(t, server).OwnerReferences; len(owners) != 1 || owners[0].UID != w.UID || len(w.status.Outputs) != 1 {
		t.Errorf("the owners are %v, and the outputs %v", owners, w.status.Outputs)
	}
	unread := []reconciler.Output{{Name: "password", Unknown: true}, {Name: "host", Unknown: true}}
	check.NoError(t, publisher(server).Publish(t.Context(), w, unread, noCommit))
	if w.status.Outputs["host"] != "a" || len(w.status.SecretOutputs) != 1 || string(secretOf(t, server).Data["password"]) != "one" {
		t.Errorf("the outputs are %v and %v", w.status.Outputs, w.status.SecretOutputs)
	}
}
