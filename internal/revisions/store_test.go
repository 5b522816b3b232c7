// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func storeOn(c client.Client, key string) *Store {
	return NewStore(Options{
		Client: c, Name: "test.corbel.run", FieldOwner: "test", Namespace: "operator",
		Key: func(context.Context) ([]byte, error) { return []byte(key), nil },
	})
}

var component = Component{
	GroupVersionKind: schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"},
	Namespace:        "shop", Name: "main", UID: "1-2-3",
}

func saved(t *testing.T, s *Store, c Component, revision Revision, content string) *Record {
	t.Helper()
	record, err := s.Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Save(t.Context(), Update{Revision: revision, Content: []byte(content)}); err != nil {
		t.Fatal(err)
	}
	return record
}

func contentOf(t *testing.T, s *Store, c Component, revision Revision) (string, error) {
	t.Helper()
	record, err := s.Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	content, err := record.Content(t.Context(), revision)
	return string(content), err
}

func secretOf(t *testing.T, s *Store, c Component) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.options.Client.Get(t.Context(), s.keyOf(c), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestContentIsReadAsItWasWritten(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := saved(t, s, component, Revision{1, "a"}, "first")
	for _, revision := range []Revision{{2, "b"}, {3, "c"}, {3, "d"}} {
		if err := record.Save(t.Context(), Update{Revision: revision, Content: []byte("content of " + revision.Digest)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range []Revision{{2, "b"}, {3, "d"}} {
		if content, err := contentOf(t, s, component, revision); content != "content of "+revision.Digest || err != nil {
			t.Errorf("%q, %v", content, err)
		}
	}
	secret := secretOf(t, s, component)
	if owner := secret.OwnerReferences[0]; len(secret.Data) != 2 || secret.Namespace != "shop" || owner.UID != component.UID || owner.APIVersion != "test.corbel.run/v1" {
		t.Errorf("%d entries, %+v", len(secret.Data), secret.ObjectMeta)
	}
	clusterScoped := component
	clusterScoped.Namespace = ""
	saved(t, s, clusterScoped, Revision{1, "a"}, "first")
	if secret := secretOf(t, s, clusterScoped); secret.Namespace != "operator" {
		t.Errorf("the Secret is in namespace %s", secret.Namespace)
	}
}

func TestContentOpensOnlyAsWhatItWasWrittenFor(t *testing.T) {
	other := component
	other.UID = "4-5-6"
	revision, password := Revision{1, "a"}, strings.Repeat("password", 100)
	tests := []struct {
		name   string
		change func(t *testing.T, s *Store, secret *corev1.Secret)
		key    string
		want   string
	}{
		{name: "a changed byte", want: "it does not open", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data["r1"][40] ^= 1 }},
		{name: "nothing in it", want: "it does not open", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data["r1"] = []byte("short") }},
		{name: "no entry", want: "it holds nothing of revision 1", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data = nil }},
		{name: "another key", key: "other", want: "it does not open", change: func(*testing.T, *Store, *corev1.Secret) {}},
		{name: "that of another component", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, other, revision, password)
			secret.Data = secretOf(t, s, other).Data
		}},
		{name: "that of another revision", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, component, Revision{2, "a"}, password)
			secret.ResourceVersion, secret.Data["r1"] = "", secretOf(t, s, component).Data["r2"]
		}},
		{name: "that of another digest", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, component, Revision{1, "b"}, password)
			secret.ResourceVersion, secret.Data = "", secretOf(t, s, component).Data
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := fake.NewClientBuilder().Build()
			s := storeOn(c, "key")
			saved(t, s, component, revision, password)
			secret := secretOf(t, s, component)
			if bytes.Contains(secret.Data["r1"], []byte("password")) {
				t.Error("the content can be read")
			}
			test.change(t, s, secret)
			if err := c.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if test.key != "" {
				s = storeOn(c, test.key)
			}
			content, err := contentOf(t, s, component, revision)
			if _, lost := errors.AsType[*LostError](err); !lost || content != "" || !strings.Contains(err.Error(), test.want) ||
				!strings.HasPrefix(err.Error(), "Secret shop/main-revisions-") {
				t.Errorf("%q, %v; want %q", content, err, test.want)
			}
		})
	}
}

func TestAWriteThatAnotherClientCameBeforeFails(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	missing, err := s.Read(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	ours := saved(t, s, component, Revision{1, "a"}, "ours")
	saved(t, s, component, Revision{1, "a"}, "theirs")
	if err := ours.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: []byte("ours again")}); !apierrors.IsConflict(err) {
		t.Errorf("over another version: %v", err)
	}
	if err := missing.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: []byte("ours again")}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("over one that did not exist: %v", err)
	}
	if content, err := contentOf(t, s, component, Revision{1, "a"}); content != "theirs" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}

func TestContentThatFitsNoSecretIsRefused(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record, err := s.Read(t.Context(), component)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 1<<20)
	rand.Read(random)
	for _, content := range [][]byte{random, make([]byte, maxOpened+1)} {
		err := record.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: content})
		if _, tooLarge := errors.AsType[*TooLargeError](err); !tooLarge || !strings.Contains(err.Error(), "can be kept") {
			t.Error(err)
		}
	}
}
