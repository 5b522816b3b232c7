// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
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
	owner             plan.Owner
	objects           []plan.Desired
	digest            string // of all manifests
	managed           []v1alpha1.TypeInfo
	missingNamespaces v1alpha1.MissingNamespacesPolicy
	secrets           *redact.Secrets // knows what must not be told of them
	// packed is how many bytes the manifests take; 0 if they are not packed.
	packed int
}

// Pack returns the same in a form that takes little memory: the manifests are
// compressed, those of Secrets, too. If the same objects are wanted as before, that is
// returned; before may be nil.
func (w *Wanted) Pack(before *Wanted) *Wanted {
	if w == nil || w.packed > 0 {
		return w
	}
	if before != nil && before.packed > 0 && before.says(w) {
		return before
	}
	packed := *w
	packed.objects, packed.packed = desired.Pack(w.objects)
	return &packed
}

// says tells whether both want the same.
func (w *Wanted) says(other *Wanted) bool {
	return w.owner == other.owner && w.digest == other.digest && w.secrets == other.secrets &&
		slices.Equal(w.managed, other.managed) && w.missingNamespaces == other.missingNamespaces &&
		slices.EqualFunc(w.objects, other.objects, func(a, b plan.Desired) bool {
			a.Manifest, a.Packed, b.Manifest, b.Packed = nil, nil, nil, nil
			return reflect.DeepEqual(a, b)
		})
}

// perObject is about what an object takes besides its manifest, in bytes.
const perObject = 512

// Size is about how many bytes of memory a packed Wanted takes.
func (w *Wanted) Size() int {
	if w == nil {
		return 0
	}
	return w.packed + len(w.objects)*perObject
}

// confide notes the secrets among the objects, unless they are known.
func (w *Wanted) confide(secrets *redact.Secrets) {
	if w == nil || w.secrets == secrets {
		return
	}
	for i := range w.objects {
		if w.objects[i].Key.GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
			continue
		}
		if manifest := w.objects[i].Unpacked().Manifest; manifest != nil {
			secrets.AddObjects(manifest)
		}
	}
}

// wanted returns what the request asks for, and notes in the input what of that can be
// kept for calls that follow.
func (r *Reconciler) wanted(ctx context.Context, in *input, request ApplyRequest) ([]plan.Desired, error) {
	if known := request.Wanted; known != nil {
		if known.owner != in.Owner {
			return nil, fmt.Errorf("the wanted objects are those of %s, not of %s; give the objects themselves",
				known.owner.Ref.Title(), in.Owner.Ref.Title())
		}
		in.wanted, in.manifest = known, known.digest
		in.Managed, in.MissingNamespaces = known.managed, known.missingNamespaces
		return known.objects, nil
	}
	complete := true
	objects, err := r.build(ctx, in, desired.Input{
		Objects: request.Objects, Namespace: request.Namespace, ComponentDigest: request.ComponentDigest, Managed: request.ManagedTypes,
		Resolve: func(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
			namespaced, served, err = r.resolve(ctx, gvk)
			complete = complete && served
			return namespaced, served, err
		},
	}, request.Policies)
	if err != nil {
		return nil, err
	}
	in.manifest = desired.ManifestDigest(objects)
	if complete {
		in.wanted = &Wanted{
			owner: in.Owner, objects: objects, digest: in.manifest,
			managed: slices.Clone(in.Managed), missingNamespaces: in.MissingNamespaces,
			secrets: redact.From(ctx),
		}
	}
	return objects, nil
}
