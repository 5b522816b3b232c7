// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Wanted are the wanted objects of an owner as one call has understood them, for the
// calls that follow.
type Wanted struct {
	owner  plan.Owner
	prefix string // of the marks
	key    []byte // of the digests
	// unserved are types that the cluster does not serve yet.
	unserved          []schema.GroupVersionKind
	objects           []plan.Desired
	digest            string // of all manifests
	managed           []v1alpha1.TypeInfo
	missingNamespaces v1alpha1.MissingNamespacesPolicy
	secrets           *redact.Secrets // that the reconcile which rendered them has met
	// pack holds the objects in place of objects, if it is not nil.
	pack *desired.Pack
}

// ErrOutdated is the error of Apply if the Wanted of the request does not hold any more,
// because types have come to be served since, or if it is that of another owner or
// Reconciler. Nothing was done then, and the objects themselves are needed.
var ErrOutdated = errors.New("the wanted objects have to be looked at anew")

// Pack returns the same in a form that takes little memory: the manifests are
// compressed, those of Secrets, too. If the same objects are wanted as before, that is
// returned; before may be nil. It returns nil if there is nothing to pack.
func (w *Wanted) Pack(before *Wanted) *Wanted {
	if w == nil || w.pack != nil {
		return w
	}
	if before != nil && before.pack != nil && before.says(w) {
		return before
	}
	pack, ok := desired.NewPack(w.objects)
	if !ok {
		return nil
	}
	packed := *w
	packed.objects, packed.pack = nil, pack
	return &packed
}

// desired are the objects.
func (w *Wanted) desired() []plan.Desired {
	if w.pack != nil {
		return w.pack.Objects()
	}
	return w.objects
}

// says tells whether both want the same.
func (w *Wanted) says(other *Wanted) bool {
	return w.owner == other.owner && w.prefix == other.prefix && bytes.Equal(w.key, other.key) && w.digest == other.digest &&
		slices.Equal(w.unserved, other.unserved) && w.secrets.Equal(other.secrets) &&
		slices.Equal(w.managed, other.managed) && w.missingNamespaces == other.missingNamespaces &&
		slices.EqualFunc(w.desired(), other.desired(), func(a, b plan.Desired) bool {
			a.Manifest, a.Packed, b.Manifest, b.Packed = nil, nil, nil, nil
			return reflect.DeepEqual(a, b)
		})
}

// perObject is about what an object takes besides its manifest, in bytes.
const perObject = 256

// Size is about how many bytes of memory a packed Wanted takes.
func (w *Wanted) Size() int {
	if w == nil || w.pack == nil {
		return 0
	}
	return w.pack.Size + w.pack.Len()*perObject + w.secrets.Size()
}

// confide adds the secrets that the objects may hold.
func (w *Wanted) confide(secrets *redact.Secrets) {
	if w == nil {
		return
	}
	secrets.Include(w.secrets)
	if w.secrets.Size() == 0 {
		return
	}
	for _, object := range w.desired() {
		secrets.Publish(object.Key.Namespace, object.Key.Name)
	}
}

// wanted returns what the request asks for, and notes in the input what of that can be
// kept for calls that follow.
func (r *Reconciler) wanted(ctx context.Context, in *input, request ApplyRequest) ([]plan.Desired, error) {
	if known := request.Wanted; known != nil {
		if err := r.accepts(ctx, in, known); err != nil {
			return nil, err
		}
		in.wanted, in.manifest = known, known.digest
		in.ManagedTypes, in.MissingNamespaces = known.managed, known.missingNamespaces
		return known.desired(), nil
	}
	var unserved []schema.GroupVersionKind
	objects, err := r.build(ctx, in, desired.Input{
		Objects: request.Objects, Namespace: request.Namespace, ComponentDigest: request.ComponentDigest, Managed: request.ManagedTypes,
		Resolve: func(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
			namespaced, served, err = r.resolve(ctx, gvk)
			if err == nil && !served {
				unserved = append(unserved, gvk)
			}
			return namespaced, served, err
		},
	}, request.Policies)
	if err != nil {
		return nil, err
	}
	in.manifest = desired.ManifestDigest(objects)
	in.wanted = &Wanted{
		owner: in.Owner, prefix: r.name, key: r.settings.hasher.Key, unserved: unserved, objects: objects, digest: in.manifest,
		managed: slices.Clone(in.ManagedTypes), missingNamespaces: in.MissingNamespaces, secrets: redact.From(ctx).Copy(),
	}
	return objects, nil
}

// accepts returns an error if what was understood before does not hold any more, or
// was understood for somebody else.
func (r *Reconciler) accepts(ctx context.Context, in *input, known *Wanted) error {
	if known.owner != in.Owner || known.prefix != r.name || !bytes.Equal(known.key, r.settings.hasher.Key) {
		return fmt.Errorf("%w: they are those of %s, as %s has understood them", ErrOutdated, known.owner.Ref.Title(), known.prefix)
	}
	for _, gvk := range known.unserved {
		if _, served, err := r.resolve(ctx, gvk); err != nil || served {
			return ErrOutdated
		}
	}
	return nil
}
