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
	"slices"
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
	// revisions are the numbers of those that the Secret has an entry of.
	revisions []int64
	// entries is what was read; nil after Content, because it takes memory.
	entries map[string][]byte
}

// A LostError says that content of a revision is not there, or is not what was written.
type LostError struct {
	// Secret is where it should be.
	Secret client.ObjectKey
	// Changed: there is something that does not open.
	Changed bool
	// Err says what is wrong.
	Err error
}

// Error names the Secret.
func (e *LostError) Error() string { return fmt.Sprintf("Secret %s: %v", e.Secret, e.Err) }

// Unwrap returns what is wrong.
func (e *LostError) Unwrap() error { return e.Err }

// Read reads the Secret of a component. It is no error if there is none.
func (s *Store) Read(ctx context.Context, c Component) (*Record, error) {
	r := &Record{store: s, component: c}
	secret := &corev1.Secret{}
	err := s.options.Client.Get(ctx, s.keyOf(c), secret)
	if apierrors.IsNotFound(err) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s of the revision: %w", s.keyOf(c), err)
	}
	r.uid, r.resourceVersion, r.entries = secret.UID, secret.ResourceVersion, secret.Data
	for entry := range secret.Data {
		number, err := strconv.ParseInt(strings.TrimPrefix(entry, "r"), 10, 64)
		if err == nil && entry == entryOf(number) {
			r.revisions = append(r.revisions, number)
		}
	}
	return r, nil
}

// Content returns the content that was written for the revision; it may be called once. The
// error is a LostError if there is none, or if it is not what was written.
func (r *Record) Content(ctx context.Context, revision Revision) ([]byte, error) {
	defer func() { r.entries = nil }()
	lost := &LostError{Secret: r.store.keyOf(r.component)}
	sealed, ok := r.entries[entryOf(revision.Number)]
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
		lost.Err, lost.Changed = err, true
		return nil, lost
	}
	return content, nil
}

// Save writes the content of a revision. Of the others it keeps the one before: the status may
// have that one until it is written. Save fails with a conflict if another
// client wrote the Secret since it was read, and with a TooLargeError.
func (r *Record) Save(ctx context.Context, revision Revision, content []byte) error {
	key, err := r.store.options.Key(ctx)
	if err != nil {
		return err
	}
	sealed, err := seal(key, r.store.boundTo(r.component, revision), content)
	if err == nil {
		err = r.write(ctx, revision.Number, sealed)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s of the revision: %w", r.store.keyOf(r.component), err)
	}
	return nil
}

func (r *Record) write(ctx context.Context, revision int64, sealed []byte) error {
	key, options := r.store.keyOf(r.component), r.store.options
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	kept := []int64{revision}
	var err error
	if r.resourceVersion == "" {
		apiVersion, kind := r.component.ToAPIVersionAndKind()
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: r.component.Name, UID: r.component.UID}}
		secret.Type, secret.Data = corev1.SecretType(options.Name+"/revisions"), map[string][]byte{entryOf(revision): sealed}
		err = options.Client.Create(ctx, secret, client.FieldOwner(options.FieldOwner))
	} else {
		earlier := slices.DeleteFunc(slices.Clone(r.revisions), func(number int64) bool { return number >= revision })
		if len(earlier) > 0 {
			kept = append(kept, slices.Max(earlier))
		}
		data := map[string]any{entryOf(revision): sealed}
		for _, number := range r.revisions {
			if !slices.Contains(kept, number) {
				data[entryOf(number)] = nil
			}
		}
		err = r.patch(ctx, secret, data)
	}
	if err == nil {
		r.uid, r.resourceVersion, r.revisions = secret.UID, secret.ResourceVersion, kept
	}
	return err
}

// patch changes the very Secret that was read, if no other client changed it since.
func (r *Record) patch(ctx context.Context, secret *corev1.Secret, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.uid, "resourceVersion": r.resourceVersion}, "data": data,
	})
	if err != nil {
		return err
	}
	return r.store.options.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(r.store.options.FieldOwner))
}

// entryOf is the key of a revision in the data of the Secret.
func entryOf(revision int64) string { return "r" + strconv.FormatInt(revision, 10) }

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
