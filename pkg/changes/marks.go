// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// marks are the two finalizers of an opinionated reconciler; the zero value is none.
type marks struct{ finalizer string }

func (m marks) pendingMark() string { return m.finalizer + pendingSuffix }

func (m marks) claimed(obj client.Object) bool {
	return m.finalizer != "" && slices.Contains(obj.GetFinalizers(), m.finalizer)
}

func (m marks) pending(obj client.Object) bool {
	return m.finalizer != "" && slices.Contains(obj.GetFinalizers(), m.pendingMark())
}

func (m marks) any(obj client.Object) bool { return m.claimed(obj) || m.pending(obj) }

// added returns the finalizers of an object with these.
func added(finalizers []string, more ...string) []string {
	finalizers = slices.Clone(finalizers)
	for _, finalizer := range more {
		if !slices.Contains(finalizers, finalizer) {
			finalizers = append(finalizers, finalizer)
		}
	}
	return finalizers
}

// scribe writes the marks. It writes metadata through the version that the server
// prefers, because an older one may not hold everything that is stored.
type scribe struct {
	marks
	client client.Client
	reader client.Reader // the server, not a cache
	kind   schema.GroupKind
	owner  string
}

// claim puts finalizers on an object, if it still is what we know. The object becomes
// what it is on the server.
func (s *scribe) claim(ctx context.Context, obj client.Object, finalizers ...string) error {
	patch := map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(),
		"finalizers": added(obj.GetFinalizers(), finalizers...),
	}}
	return s.patch(ctx, obj, apitypes.MergePatchType, patch)
}

// take takes finalizers off an object, whatever else was changed meanwhile. It is fine
// if the object is gone.
func (s *scribe) take(ctx context.Context, obj client.Object, finalizers ...string) (written, error) {
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
		if cluster.IsGone(err, obj.GetName()) {
			return written{uid: obj.GetUID()}, nil
		}
		if err != nil {
			return written{}, err
		}
	}
	return written{uid: obj.GetUID(), version: obj.GetResourceVersion()}, nil
}

func (s *scribe) patch(ctx context.Context, obj client.Object, form apitypes.PatchType, content any) error {
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
func (s *scribe) find(ctx context.Context, obj client.Object) (*metav1.PartialObjectMetadata, error) {
	metadata, err := s.metadataOf(client.ObjectKeyFromObject(obj))
	if err != nil {
		return nil, err
	}
	err = s.reader.Get(ctx, client.ObjectKeyFromObject(obj), metadata)
	switch {
	case cluster.IsGone(err, obj.GetName()):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for %s %s, which the cache has no longer: %w", s.kind, client.ObjectKeyFromObject(obj), err)
	case metadata.UID != obj.GetUID():
		return nil, nil
	}
	return metadata, nil
}

func (s *scribe) metadataOf(key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	mapping, err := s.client.RESTMapper().RESTMapping(s.kind)
	if err != nil {
		return nil, fmt.Errorf("find the preferred version of %s: %w", s.kind, err)
	}
	return metadataFor(mapping, key), nil
}

func metadataFor(mapping *meta.RESTMapping, key client.ObjectKey) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	metadata.SetGroupVersionKind(mapping.GroupVersionKind)
	return metadata
}
