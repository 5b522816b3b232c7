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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// DesiredSet holds the desired objects of an owner, built and checked by one call, for the
// calls that follow.
type DesiredSet struct {
	owner  plan.Owner
	prefix string // of labels and annotations
	key    []byte // of the digests
	// unserved are types that the cluster does not serve yet.
	unserved          []schema.GroupVersionKind
	objects           []plan.Desired
	digest            string // of all manifests
	managed           []v1alpha1.TypeInfo
	missingNamespaces v1alpha1.MissingNamespacesPolicy
	confidential      bool // the reconcile that rendered them
	// pack holds the objects in place of objects, if it is not nil.
	pack *desired.Pack
}

// ErrOutdated is the error of Apply if the DesiredSet of the request is no longer valid: the server
// has started to serve types since, or the set belongs to another owner or Reconciler. Nothing was
// done then, and the objects themselves are needed.
var ErrOutdated = errors.New("the desired objects have to be built again")

// Pack returns the same set in a form that needs little memory: all manifests are compressed, also
// manifests of Secrets. If the set before is equal, Pack returns it; before may be nil. Pack
// returns nil if there is nothing to pack.
func (w *DesiredSet) Pack(before *DesiredSet) *DesiredSet {
	if w == nil || w.pack != nil {
		return w
	}
	if before != nil && before.pack != nil && before.equals(w) {
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

func (w *DesiredSet) desired() []plan.Desired {
	if w.pack != nil {
		return w.pack.Objects()
	}
	return w.objects
}

func (w *DesiredSet) equals(other *DesiredSet) bool {
	return w.owner == other.owner && w.prefix == other.prefix && bytes.Equal(w.key, other.key) && w.digest == other.digest &&
		slices.Equal(w.unserved, other.unserved) && w.confidential == other.confidential &&
		slices.Equal(w.managed, other.managed) && w.missingNamespaces == other.missingNamespaces &&
		slices.EqualFunc(w.desired(), other.desired(), func(a, b plan.Desired) bool {
			a.Manifest, a.Packed, b.Manifest, b.Packed = nil, nil, nil, nil
			return reflect.DeepEqual(a, b)
		})
}

// Size returns about how many bytes of memory a packed DesiredSet needs.
func (w *DesiredSet) Size() int {
	if w == nil || w.pack == nil {
		return 0
	}
	return w.pack.Size
}

// workloads are the kinds of the group apps with pods.
var workloads = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}

// Workloads returns the manifests of the Deployments, StatefulSets, DaemonSets and ReplicaSets that are ready by the rules of their type:
// they have no expression of their own, and none of the rules matches. They must not be changed.
func (w *DesiredSet) Workloads(rules []ReadyWhen) (manifests []*unstructured.Unstructured) {
	if w == nil {
		return nil
	}
	for _, d := range w.desired() {
		isWorkload := d.Key.Group == "apps" && slices.Contains(workloads, d.Key.Kind)
		byRule := slices.ContainsFunc(rules, func(r ReadyWhen) bool { return r.Type.Matches(d.Key.Group, d.Key.Kind) })
		if isWorkload && d.Policies.ReadyWhen == "" && !byRule {
			manifests = append(manifests, d.Unpacked().Manifest)
		}
	}
	return manifests
}

func (w *DesiredSet) isConfidential() bool { return w != nil && w.confidential }

// desiredObjects returns the desired objects of the request, and stores data that later calls can
// reuse in the input.
func (r *Reconciler) desiredObjects(ctx context.Context, in *input, request ApplyRequest) ([]plan.Desired, error) {
	if known := request.Desired; known != nil {
		if err := r.checkReusable(ctx, in, known); err != nil {
			return nil, err
		}
		in.reusable, in.manifest = known, known.digest
		in.ManagedTypes, in.MissingNamespaces = known.managed, known.missingNamespaces
		return known.desired(), nil
	}
	var unserved []schema.GroupVersionKind
	objects, err := r.build(ctx, in, desired.Input{
		Objects: request.Objects, Namespace: request.Namespace, ComponentDigest: request.ComponentDigest, Managed: request.ManagedTypes,
		Shared: r.shared.objects(), Stored: request.Stored,
		Resolve: func(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
			namespaced, served, err = r.resolve(ctx, gvk)
			if err == nil && !served {
				unserved = append(unserved, gvk)
			}
			return namespaced, served, err
		},
	}, request.Policies)
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		invalid.unserved = unserved
	}
	if err != nil {
		return nil, err
	}
	in.manifest = desired.ManifestDigest(objects)
	in.reusable = &DesiredSet{
		owner: in.Owner, prefix: r.name, key: r.settings.hasher.Key, unserved: unserved, objects: objects, digest: in.manifest,
		managed: slices.Clone(in.ManagedTypes), missingNamespaces: in.MissingNamespaces, confidential: confidential.Is(ctx),
	}
	return objects, nil
}

// checkReusable returns an error if a set of an earlier call is no longer valid, or belongs to
// another owner or Reconciler.
func (r *Reconciler) checkReusable(ctx context.Context, in *input, known *DesiredSet) error {
	if known.owner != in.Owner || known.prefix != r.name || !bytes.Equal(known.key, r.settings.hasher.Key) {
		return fmt.Errorf("%w: they are those of %s, built by %s", ErrOutdated, known.owner.Ref.Title(), known.prefix)
	}
	for _, gvk := range known.unserved {
		if _, served, err := r.resolve(ctx, gvk); err != nil || served {
			return ErrOutdated
		}
	}
	return nil
}
