// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure a Store.
type Options struct {
	// Client reads from the server and writes, with the identity of the operator.
	Client client.Client
	// Name is the name of the reconciler: the prefix of the type of the Secrets.
	Name string
	// FieldOwner is the field manager of the writes.
	FieldOwner string
	// Namespace is where the Secrets of components without a namespace are kept.
	Namespace string
	// Key returns the key that seals are derived from.
	Key func(context.Context) ([]byte, error)
}

// Store keeps content of revisions. It is safe for concurrent use.
type Store struct{ options Options }

// NewStore returns a Store.
func NewStore(options Options) *Store { return &Store{options: options} }

// Component identifies the component that a revision belongs to.
type Component struct {
	schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// Revision identifies a revision of a component.
type Revision struct {
	// Number is the number in the status.
	Number int64
	// Digest covers all that the revision is rendered from.
	Digest string
}

// Record is the Secret of a component as it was read or written last.
type Record struct {
	store     *Store
	component Component
	// uid and resourceVersion are those of the Secret; the latter is empty if it does not exist.
	uid             types.UID
	resourceVersion string
	data            map[string][]byte
}

// A LostError says that content is not what was written, or not there.
type LostError struct {
	Namespace, Name string
	Err             error
}

// Error names the Secret.
func (e *LostError) Error() string {
	return fmt.Sprintf("Secret %s/%s: %v", e.Namespace, e.Name, e.Err)
}

// Unwrap returns what is wrong with it.
func (e *LostError) Unwrap() error { return e.Err }

// Read reads the Secret of a component. It is no error if there is none.
func (s *Store) Read(ctx context.Context, c Component) (*Record, error) {
	r := &Record{store: s, component: c}
	secret := &corev1.Secret{}
	key := s.keyOf(c)
	err := s.options.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s of the revision: %w", key, err)
	}
	r.uid, r.resourceVersion, r.data = secret.UID, secret.ResourceVersion, secret.Data
	return r, nil
}

// Content returns the content that was written for the revision. The error is a LostError if
// there is none, or if it is not what was written.
func (r *Record) Content(ctx context.Context, revision Revision) ([]byte, error) {
	lost := &LostError{Namespace: r.store.keyOf(r.component).Namespace, Name: r.store.keyOf(r.component).Name}
	sealed, ok := r.data[entryOf(revision)]
	switch {
	case r.resourceVersion == "":
		lost.Err = errors.New("it does not exist")
		return nil, lost
	case !ok:
		lost.Err = fmt.Errorf("it holds nothing of revision %d", revision.Number)
		return nil, lost
	}
	key, err := r.store.options.Key(ctx)
	if err != nil {
		return nil, err
	}
	content, err := open(key, r.store.boundTo(r.component, revision), sealed)
	if err != nil {
		lost.Err = err
		return nil, lost
	}
	return content, nil
}

// Save writes the content of a revision in place of all that the Secret holds. It fails if
// another client wrote the Secret since it was read.
func (r *Record) Save(ctx context.Context, revision Revision, content []byte) error {
	key, err := r.store.options.Key(ctx)
	if err != nil {
		return err
	}
	sealed, err := seal(key, r.store.boundTo(r.component, revision), content)
	if err != nil {
		return &LostError{Namespace: r.store.keyOf(r.component).Namespace, Name: r.store.keyOf(r.component).Name, Err: err}
	}
	data := map[string][]byte{entryOf(revision): sealed}
	written, err := r.write(ctx, data)
	if err != nil {
		return fmt.Errorf("write Secret %s of the revision: %w", r.store.keyOf(r.component), err)
	}
	r.uid, r.resourceVersion, r.data = written.UID, written.ResourceVersion, data
	return nil
}

func (r *Record) write(ctx context.Context, data map[string][]byte) (*corev1.Secret, error) {
	key, options := r.store.keyOf(r.component), r.store.options
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if r.resourceVersion == "" {
		apiVersion, kind := r.component.ToAPIVersionAndKind()
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: r.component.Name, UID: r.component.UID}}
		secret.Type, secret.Data = corev1.SecretType(options.Name+"/revisions"), data
		return secret, options.Client.Create(ctx, secret, client.FieldOwner(options.FieldOwner))
	}
	body := map[string]any{}
	for entry := range r.data {
		body[entry] = nil
	}
	for entry, sealed := range data {
		body[entry] = sealed
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.uid, "resourceVersion": r.resourceVersion}, "data": body,
	})
	if err != nil {
		return nil, err
	}
	return secret, options.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(options.FieldOwner))
}

// entryOf is the key of a revision in the data of the Secret.
func entryOf(revision Revision) string { return "r" + strconv.FormatInt(revision.Number, 10) }

// maxReadable is how much of the name of the component is in the name of its Secret.
const maxReadable = 40

// keyOf returns namespace and name of the Secret of a component.
func (s *Store) keyOf(c Component) client.ObjectKey {
	namespace := c.Namespace
	if namespace == "" {
		namespace = s.options.Namespace
	}
	sum := sha256.Sum256([]byte(strings.Join(s.identityOf(c), "\x00")))
	readable := strings.TrimRight(c.Name[:min(len(c.Name), maxReadable)], ".-")
	return client.ObjectKey{Namespace: namespace, Name: readable + "-revisions-" + hex.EncodeToString(sum[:5])}
}

func (s *Store) identityOf(c Component) []string {
	return []string{s.options.Name, c.Group, c.Kind, c.Namespace, c.Name, string(c.UID)}
}

// boundTo is what a seal is bound to.
func (s *Store) boundTo(c Component, revision Revision) []byte {
	return []byte(strings.Join(append(s.identityOf(c), strconv.FormatInt(revision.Number, 10), revision.Digest), "\x00"))
}
