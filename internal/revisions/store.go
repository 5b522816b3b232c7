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
	"maps"
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

// Store keeps content of revisions. It is safe for concurrent use. A nil Store keeps nothing.
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
	// uid and resourceVersion are the Secret's; the latter is empty if it does not exist.
	uid             types.UID
	resourceVersion string
	// assumed means that nothing was read: the Secret is assumed not to exist.
	assumed bool
	// sizes are the sizes of the contents in the Secret, by revision.
	sizes map[int64]int
	// entries is the data that was read; nil after Content, because it takes memory.
	entries map[string][]byte
	// history holds the sets. It is unread if it takes much memory.
	history []byte
	unread  bool
}

// secrets is the resource that conflicts are about.
var secrets = schema.GroupResource{Resource: "secrets"}

// A LostError means that content of a revision is not there, or is not the written one.
type LostError struct {
	// Secret is where it should be.
	Secret client.ObjectKey
	// Changed: there is something that does not open.
	Changed bool
	// Err is the cause.
	Err error
}

// Error names the Secret.
func (e *LostError) Error() string { return fmt.Sprintf("Secret %s: %v", e.Secret, e.Err) }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Read reads the Secret of a component. It is no error if there is none.
func (s *Store) Read(ctx context.Context, c Component) (*Record, error) {
	r := &Record{store: s, component: c, sizes: map[int64]int{}}
	secret := &corev1.Secret{}
	err := s.options.Client.Get(ctx, s.KeyOf(c), secret)
	if apierrors.IsNotFound(err) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s of the revision: %w", s.KeyOf(c), err)
	}
	r.uid, r.resourceVersion, r.entries, r.history = secret.UID, secret.ResourceVersion, secret.Data, secret.Data[entryHistory]
	for entry, sealed := range secret.Data {
		number, err := strconv.ParseInt(strings.TrimPrefix(entry, "r"), 10, 64)
		if err == nil && entry == entryOf(number) {
			r.sizes[number] = len(sealed)
		}
	}
	return r, nil
}

// Assume returns the record of a component without a Secret, and saves the request that would
// find that out. If there is one, it is read before it is written.
func (s *Store) Assume(c Component) *Record {
	return &Record{store: s, component: c, sizes: map[int64]int{}, assumed: true}
}

// Content returns the content that was written for the revision; it may be called once. The error
// is a LostError if there is none, or if it is not the written one.
func (r *Record) Content(ctx context.Context, revision Revision) ([]byte, error) {
	defer func() { r.entries = nil }()
	lost := &LostError{Secret: r.store.KeyOf(r.component)}
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

func (s *Store) secretType() corev1.SecretType {
	return corev1.SecretType(s.options.Name + "/revisions")
}

// Update is the input of Save.
type Update struct {
	Revision Revision
	// Content is the content of the revision; nil keeps the stored content.
	Content []byte
	// Set is added to the history; nil: the history stays.
	Set *Set
	Retention
}

// Save writes the content of a revision, or its set, or both. Of the contents of other revisions it
// keeps the one before: the status may have that one until it is written. If the Secret is not as
// it was read, as after the storage was restored, it is read again. Save fails with a conflict if
// another process has written content of this or a later revision by then. It fails with a
// TooLargeError if the content or the set is too large; if only one of the two is, it writes the
// other one.
func (r *Record) Save(ctx context.Context, u Update) error {
	err := r.save(ctx, u)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		read, readErr := r.store.Read(ctx, r.component)
		switch {
		case readErr != nil:
			err = readErr
		case r.assumed || !read.hasContentSince(u):
			*r = *read
			err = r.save(ctx, u)
		}
	}
	if err != nil {
		return fmt.Errorf("write Secret %s of the revision: %w", r.store.KeyOf(r.component), err)
	}
	r.assumed, r.entries = false, nil
	r.forgetLargeHistory()
	return nil
}

// hasContentSince reports whether the update would replace content of the same or a later revision.
func (r *Record) hasContentSince(u Update) bool {
	for number := range r.sizes {
		if u.Content != nil && number >= u.Revision.Number {
			return true
		}
	}
	return false
}

func (r *Record) save(ctx context.Context, u Update) error {
	key, err := r.store.options.Key(ctx)
	if err != nil {
		return err
	}
	changes, sizes := map[string][]byte{}, maps.Clone(r.sizes)
	var tooLarge error
	if u.Content != nil {
		sealed, err := seal(key, r.store.boundTo(r.component, u.Revision), u.Content, maxSealed)
		if tooLarge = err; err != nil && !IsTooLarge(err) {
			return err
		}
		if err == nil {
			r.putContent(changes, sizes, u.Revision.Number, sealed)
		}
	}
	history := r.history
	if u.Set != nil {
		sets, err := r.Sets(ctx)
		if _, lost := errors.AsType[*LostError](err); err != nil && !lost { // lost content starts again
			return err
		}
		merged := u.merge(sets, *u.Set)
		// The same sets are not written again, because each seal is another one.
		same := slices.EqualFunc(merged, sets, func(a, b Set) bool { return a.Revision == b.Revision && a.Digest == b.Digest })
		room := maxData
		for _, size := range sizes {
			room -= size
		}
		history, err = u.sealSets(key, r.store.boundToHistory(r.component), merged, room)
		if err != nil && !IsTooLarge(err) {
			return err
		}
		if tooLarge = errors.Join(tooLarge, err); err == nil && !same {
			changes[entryHistory] = history
		}
	}
	if len(changes) > 0 {
		if err := r.write(ctx, changes); err != nil {
			return err
		}
		r.sizes = sizes
		if changes[entryHistory] != nil {
			r.history = history
		}
	}
	return tooLarge
}

// IsTooLarge reports whether an error is, or wraps, a TooLargeError.
func IsTooLarge(err error) bool {
	_, tooLarge := errors.AsType[*TooLargeError](err)
	return tooLarge
}

// putContent adds the content of a revision to the changes, and removes all other contents but the
// one before.
func (r *Record) putContent(changes map[string][]byte, sizes map[int64]int, revision int64, sealed []byte) {
	before := int64(-1)
	for number := range sizes {
		if number < revision {
			before = max(before, number)
		}
	}
	for number := range sizes {
		if number != revision && number != before {
			changes[entryOf(number)] = nil
			delete(sizes, number)
		}
	}
	changes[entryOf(revision)], sizes[revision] = sealed, len(sealed)
}

// write changes the entries of the Secret; nil removes one.
func (r *Record) write(ctx context.Context, changes map[string][]byte) error {
	key, options := r.store.KeyOf(r.component), r.store.options
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	var err error
	if r.resourceVersion == "" {
		apiVersion, kind := r.component.ToAPIVersionAndKind()
		secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: r.component.Name, UID: r.component.UID}}
		secret.Type, secret.Data = r.store.secretType(), changes
		err = options.Client.Create(ctx, secret, client.FieldOwner(options.FieldOwner))
	} else {
		err = r.patch(ctx, secret, changes)
	}
	if err == nil {
		r.uid, r.resourceVersion = secret.UID, secret.ResourceVersion
	}
	return err
}

// patch changes the very Secret that was read, if no other client changed it since.
func (r *Record) patch(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.uid, "resourceVersion": r.resourceVersion}, "data": data,
	})
	if err != nil {
		return err
	}
	return r.store.options.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(r.store.options.FieldOwner))
}

// Erase removes the Secret of a component. It is no error if there is none. Without a record, which may be nil, the Secret
// is looked for.
func (s *Store) Erase(ctx context.Context, c Component, known *Record) (err error) {
	if s == nil {
		return nil
	}
	secret := &metav1.PartialObjectMetadata{}
	if known != nil && known.component.UID == c.UID {
		secret.UID = known.uid
	}
	if secret.UID == "" {
		secret, err = s.metadataOf(ctx, c)
	}
	if key := s.KeyOf(c); err == nil {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		err = s.options.Client.Delete(ctx, object, client.Preconditions{UID: &secret.UID})
	}
	if apierrors.IsConflict(err) && known != nil {
		return s.Erase(ctx, c, nil) // another client has made it anew
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove Secret %s of the revisions: %w", s.KeyOf(c), err)
	}
	return nil
}

func (s *Store) metadataOf(ctx context.Context, c Component) (*metav1.PartialObjectMetadata, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret, s.options.Client.Get(ctx, s.KeyOf(c), secret)
}

// IsOrphaned reports whether a component has a Secret that does not refer to it any more.
func (s *Store) IsOrphaned(ctx context.Context, c Component) (bool, error) {
	if s == nil {
		return false, nil
	}
	secret, err := s.metadataOf(ctx, c)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !slices.ContainsFunc(secret.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == c.UID }), nil
}

// entryOf is the key of a revision in the data of the Secret.
func entryOf(revision int64) string { return "r" + strconv.FormatInt(revision, 10) }

// maxReadable is how much of the name of the component is in the name of its Secret.
const maxReadable = 40

// KeyOf returns namespace and name of the Secret of a component.
func (s *Store) KeyOf(c Component) client.ObjectKey {
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

// boundTo is the value that a seal is bound to.
func (s *Store) boundTo(c Component, revision Revision) []byte {
	return []byte(strings.Join(append(s.identityOf(c), strconv.FormatInt(revision.Number, 10), revision.Digest), "\x00"))
}

// boundToHistory is the value that the seal of the history is bound to.
func (s *Store) boundToHistory(c Component) []byte {
	return []byte(strings.Join(append(s.identityOf(c), entryHistory), "\x00"))
}
