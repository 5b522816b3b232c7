// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/manifests"
)

const (
	// holdBase is how long manifests are kept after a change that nothing explains; with every
	// further change it doubles up to holdLimit.
	//
	// Limit: the time for which the last manifests stay after a different rendering of the same input; it doubles
	// with every further one.
	holdBase = time.Hour
	// Limit: the longest such time.
	holdLimit = 6 * time.Hour
)

// Last is the last rendering of a component that was applied. The zero value is none. It keeps a generator that
// renders something else every time, such as a random password or the time, from making the
// objects change with every reconcile.
type Last struct {
	inputs  string // the digest of the component
	answers string // the digest of what the generator read
	digest  string // of the objects
	// changes counts the changes that nothing explains.
	changes int
	// until is when the next such change is applied; before, it is objects that are applied.
	until   time.Time
	objects []client.Object
	// finding says where two renderings of the same input differ; empty if that is not known.
	finding string
	// kept are the random values of the revision. They outlive the rendering.
	kept kept
}

// accept returns the objects to apply, and reports whether they are those of an earlier
// rendering. A change that nothing in the component explains is applied if the cluster
// explains it, which is asked only then. Else the first one is applied at once, because it
// may come from something that the generator looks up elsewhere. The next one has to wait;
// until then the manifests that were applied last are applied in its place.
func (r *Last) accept(current Last, now time.Time, explained func() bool) (objects []client.Object, held bool) {
	objects, current.kept = current.objects, r.kept
	current.objects = nil // they are kept only where they may be needed
	switch {
	case r.inputs != current.inputs:
		*r = current
	case r.digest == current.digest:
		if r.changes > 0 && !now.Before(r.until) {
			// The renderings are equal again, and the delay has passed.
			current.finding = r.finding
			*r = current
		}
	case (r.answers != current.answers || !now.Before(r.until)) && explained():
		current.finding = r.finding
		if now.Before(r.until) { // what nothing explained before still counts
			current.objects, current.changes, current.until = objects, r.changes, r.until
		}
		*r = current
	case now.Before(r.until):
		return r.objects, true
	default:
		current.objects, current.changes, current.finding = objects, r.changes+1, r.finding
		current.until = now.Add(backoff.Delay(r.changes, holdBase, holdLimit))
		*r = current
	}
	return objects, false
}

// Notices returns the sentences about the manifests for the message of the component.
func (r *Last) Notices() []string {
	if r.kept.notice != "" {
		return append([]string{r.kept.notice}, r.findings()...)
	}
	return r.findings()
}

// findings returns the sentences about manifests that change for no reason.
func (r *Last) findings() []string {
	var notices []string
	if r.finding != "" {
		notices = append(notices, r.finding)
	}
	if r.changes >= 2 {
		notices = append(notices, fmt.Sprintf("the manifests change with every rendering although nothing else does, so changes are applied at most once in %s",
			backoff.Delay(r.changes-1, holdBase, holdLimit)))
	}
	return notices
}

// digestOfObjects is the same whatever the order of the objects is. It has no key, and leaves
// memory only as a part of digests that have one.
func digestOfObjects(objects []client.Object) string {
	parts := make([]string, 0, len(objects))
	for _, object := range objects {
		parts = append(parts, digest.Hasher{}.Manifest(object.(runtime.Unstructured).UnstructuredContent()))
	}
	slices.Sort(parts)
	return digest.Combine(parts...)
}

// inputsOf identifies the input of the generator: the digest of the component, which the
// context has, and its labels. It is empty without a digest.
func inputsOf(ctx context.Context, c client.Object) string {
	component := manifests.FromContext(ctx).Digest
	if component == "" {
		return ""
	}
	parts := []string{component}
	for _, key := range slices.Sorted(maps.Keys(c.GetLabels())) {
		parts = append(parts, key, c.GetLabels()[key])
	}
	return digest.Combine(parts...)
}

// Record returns the Secret of the revisions as it is known, or nil.
func (r *Last) Record() *revisions.Record { return r.kept.secret.record }

// answers notes what a generator reads with its clients while it renders.
type answers struct {
	lock sync.Mutex
	read []string
	// asked: something was looked up, or listed. foundNothing: something of it does not exist.
	asked, foundNothing atomic.Bool
	// random says whether random values or the time were used.
	random *renders.Randomness
}

func (a *answers) add(parts ...string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.read = append(a.read, digest.Combine(parts...))
}

// noteServed notes what the target serves, if that is known: a generator may have asked.
func (a *answers) noteServed(ctx context.Context) {
	target, ok := renders.Target(ctx)
	if !ok {
		return
	}
	if served, known := target.Types().LastServed(); known {
		a.add(append([]string{"served", served.Version}, served.APIVersions...)...)
	}
}

// digest identifies everything that was read, in whatever order.
func (a *answers) digest() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	return digest.Combine(slices.Sorted(slices.Values(a.read))...)
}

// noting is a client that notes the versions of what it reads.
type noting struct {
	client.Client
	answers *answers
}

func (n *noting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	n.answers.asked.Store(true)
	err := n.Client.Get(ctx, key, object, options...)
	switch kind := n.kindOf(object); {
	case apierrors.IsNotFound(err):
		n.answers.foundNothing.Store(true)
		n.answers.add("get", kind, key.String())
	case err == nil:
		n.answers.add("get", kind, key.String(), string(object.GetUID()), object.GetResourceVersion())
	}
	return err
}

func (n *noting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	n.answers.asked.Store(true)
	err := n.Client.List(ctx, list, options...)
	if err != nil {
		return err
	}
	parts := []string{"list", n.kindOf(list)}
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			parts = append(parts, string(object.GetUID()), object.GetResourceVersion())
		}
		return nil
	})
	if apimeta.LenList(list) == 0 {
		n.answers.foundNothing.Store(true)
	}
	n.answers.add(parts...)
	return nil
}

func (n *noting) kindOf(object runtime.Object) string {
	gvk, err := n.GroupVersionKindFor(object)
	if err != nil {
		return ""
	}
	return gvk.String()
}
