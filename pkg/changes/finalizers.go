// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/types"
)

// pendingSuffix makes the name of the pending finalizer, which is on an object until its
// creation was handled.
const pendingSuffix = "-pending"

// OpinionatedReconciler makes a controller keep a finalizer of its own on every object, from before
// the first call until Deleted was handled. So no deletion is missed while the process is down, and
// a restart distinguishes handled objects (Resynced) from new ones (Created). Changes of status or
// metadata alone are no changes. It is given to NewController as it is: a wrapper would hide it, so
// wrap its Reconciler.
type OpinionatedReconciler struct {
	Reconciler
	// Finalizer is the finalizer, such as example.com/notify. No two controllers may
	// share it. A second one with the suffix -pending is on an object until Created
	// was handled. To rename it is to handle all objects again, and to keep the old
	// one on them. Required.
	Finalizer string
}

func (o OpinionatedReconciler) accepts(obj client.Object) error {
	if _, ok := o.Reconciler.(opinionated); ok {
		return errors.New("an opinionated reconciler is wrapped in another one, which would ignore its Finalizer")
	}
	return acceptedBy(o.Reconciler, obj)
}

func (o OpinionatedReconciler) finalizer() string { return o.Finalizer }

// OpinionatedWatcher is a Watcher that is used as [OpinionatedReconciler] describes.
type OpinionatedWatcher[T client.Object] struct {
	Watcher[T]
	// Finalizer is the finalizer, like the field of an OpinionatedReconciler. Required.
	Finalizer string
}

func (o *OpinionatedWatcher[T]) finalizer() string { return o.Finalizer }

// opinionated is a Reconciler that wants a finalizer.
type opinionated interface{ finalizer() string }

// acceptedBy returns the reasons of the reconciler against a controller for such objects.
func acceptedBy(r Reconciler, obj client.Object) error {
	if isNil(r) {
		return errors.New("the reconciler is nil")
	}
	if r, ok := r.(interface{ accepts(client.Object) error }); ok {
		return r.accepts(obj)
	}
	return nil
}

// checkFinalizer reports why the API server would refuse one of the two finalizers
// on some kind: built-in kinds demand a domain.
func checkFinalizer(finalizer string) error {
	if finalizer == "" {
		return errors.New("the Finalizer is missing")
	}
	problems := validation.IsQualifiedName(finalizer + pendingSuffix)
	if !strings.Contains(finalizer, "/") {
		problems = append(problems, "it needs a domain in front, as in example.com/notify")
	}
	if len(problems) > 0 {
		return fmt.Errorf("the Finalizer %q cannot be used with the suffix %s: %s", finalizer, pendingSuffix, strings.Join(problems, "; "))
	}
	return nil
}

// ownFinalizers are the two finalizers of an opinionated reconciler; the zero value is none.
type ownFinalizers struct{ finalizer string }

func (m ownFinalizers) pendingFinalizer() string { return m.finalizer + pendingSuffix }

func (m ownFinalizers) isOn(obj client.Object) bool {
	return m.finalizer != "" && slices.Contains(obj.GetFinalizers(), m.finalizer)
}

func (m ownFinalizers) isPendingOn(obj client.Object) bool {
	return m.finalizer != "" && slices.Contains(obj.GetFinalizers(), m.pendingFinalizer())
}

func (m ownFinalizers) isAnyOn(obj client.Object) bool { return m.isOn(obj) || m.isPendingOn(obj) }

// finalizerWriter writes our finalizers. It writes metadata through the version that the server
// prefers, because an older one may not hold everything that is stored.
type finalizerWriter struct {
	ownFinalizers
	client client.Client
	reader client.Reader // the server, not a cache
	kind   schema.GroupKind
	owner  string
}

// add puts finalizers on an object, if it has not changed. The object gets the state of the server.
func (s *finalizerWriter) add(ctx context.Context, obj client.Object, finalizers ...string) error {
	all := slices.Clone(obj.GetFinalizers())
	for _, finalizer := range finalizers {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	patch := map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": all,
	}}
	return s.patch(ctx, obj, apitypes.MergePatchType, patch)
}

// remove removes finalizers from an object, whatever else was changed meanwhile. It is fine
// if the object is gone.
func (s *finalizerWriter) remove(ctx context.Context, obj client.Object, finalizers ...string) (written, error) {
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": obj.GetUID()}}
	// From the end, so that no index moves.
	for i, finalizer := range slices.Backward(obj.GetFinalizers()) {
		if slices.Contains(finalizers, finalizer) {
			path := fmt.Sprintf("/metadata/finalizers/%d", i)
			patch = append(patch,
				map[string]any{"op": "test", "path": path, "value": finalizer},
				map[string]any{"op": "remove", "path": path})
		}
	}
	if len(patch) > 1 {
		err := s.patch(ctx, obj, apitypes.JSONPatchType, patch)
		if types.IsGone(err, obj.GetName()) {
			return written{uid: obj.GetUID()}, nil
		}
		if err != nil {
			return written{}, err
		}
	}
	return written{uid: obj.GetUID(), version: obj.GetResourceVersion()}, nil
}

func (s *finalizerWriter) patch(ctx context.Context, obj client.Object, form apitypes.PatchType, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	metadata, err := s.metadataOf(client.ObjectKeyFromObject(obj))
	if err != nil {
		return err
	}
	if err := s.client.Patch(ctx, metadata, client.RawPatch(form, data), client.FieldOwner(s.owner)); err != nil {
		return fmt.Errorf("write the finalizers of %s %s: %w", s.kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetFinalizers(metadata.Finalizers)
	obj.SetResourceVersion(metadata.ResourceVersion)
	obj.SetManagedFields(metadata.ManagedFields)
	return nil
}

// find asks the server whether an object that the cache lost is there, as it is if it
// no longer fits a selector. It returns nil if the object is gone.
func (s *finalizerWriter) find(ctx context.Context, obj client.Object) (*metav1.PartialObjectMetadata, error) {
	metadata, err := s.metadataOf(client.ObjectKeyFromObject(obj))
	if err != nil {
		return nil, err
	}
	err = s.reader.Get(ctx, client.ObjectKeyFromObject(obj), metadata)
	switch {
	case types.IsGone(err, obj.GetName()):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for %s %s, which the cache has no longer: %w", s.kind, client.ObjectKeyFromObject(obj), err)
	case metadata.UID != obj.GetUID():
		return nil, nil
	}
	return metadata, nil
}

func (s *finalizerWriter) metadataOf(key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(s.kind)
	if err != nil {
		return nil, fmt.Errorf("find the preferred version of %s: %w", s.kind, err)
	}
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	metadata.SetGroupVersionKind(mapping.GroupVersionKind)
	return metadata, nil
}
