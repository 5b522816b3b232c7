// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// maxLooks is how many objects are read, before anything is recorded, to find out whether a component was restored.
const maxLooks = 10

// carries reports whether random values come from objects that were there before the component.
func (r Request) carries() bool { return r.Adopted != nil || r.IsNew && r.RestoredFrom != "" }

// findPrevious looks for objects of a previous component of the same name before the first object is recorded. If it finds one, it
// notes in the request that the component was restored. It looks only if the rendering has hooks, or used random values, the time or
// answers of the cluster. Again: the objects have to be rendered again, without the hooks.
func (r *Renderer) findPrevious(ctx context.Context, request *Request, objects []client.Object, read *answers) (again bool, err error) {
	c, hooks := manifests.FromContext(ctx).Client, slices.ContainsFunc(objects, r.ranForRevision)
	known := request.RestoredFrom != "" || slices.ContainsFunc(request.Component.GetStatus().Inventory.Items, isBegun)
	if c == nil || !request.IsNew || known || !hooks && !read.random.Used() && !read.random.Time.Load() && !read.asked.Load() {
		return false, nil
	}
	var secrets, others []client.Object
	for _, object := range objects {
		switch {
		case r.ranForRevision(object):
		case confidential.IsSecret(object.GetObjectKind().GroupVersionKind().GroupKind()):
			secrets = append(secrets, object)
		default:
			others = append(others, object)
		}
	}
	looked := append(secrets, others...)
	for _, object := range looked[:min(len(looked), maxLooks)] {
		id := idOf(object.(*unstructured.Unstructured))
		live, err := liveObject(ctx, c, id, request.Namespace)
		if err != nil && !IsRefusal(err) {
			return false, fmt.Errorf("look whether %s %s was restored from a backup: %w", id.Kind, id.Name, err)
		}
		if uid := r.previous(*request, live); err == nil && uid != "" {
			request.RestoredFrom, request.HooksRan = uid, !r.HooksOnRestore
			return hooks && request.HooksRan, nil
		}
	}
	return false, nil
}

// isBegun reports whether the component has written an object, or is about to. If a process ends between the finalizer and the first write
// of the status, the next process finds the objects of a previous component by their labels, and records them without that.
func isBegun(item v1alpha1.InventoryItem) bool { return item.Digest != "" || item.Intended != "" }

// previous returns the uid of the previous component that owns an object; empty if there is none.
func (r *Renderer) previous(request Request, live *unstructured.Unstructured) apitypes.UID {
	owner := r.ownerOf(request, live)
	if owner == request.Component.GetUID() {
		return ""
	}
	return owner
}

// ownerOf returns the uid of the component that owns an object by label and annotation, if it has the kind and the name of the component
// of the request. It is in the same namespace. For an object in that namespace, the owner may be in another one: a restore into a new
// namespace copies objects with their annotations.
func (r *Renderer) ownerOf(request Request, live *unstructured.Unstructured) apitypes.UID {
	if live == nil || live.GetLabels()[r.Self.Annotation(vocabulary.LabelOwnerID)] == "" {
		return ""
	}
	parts, namespace := strings.Split(r.Self.Value(live, vocabulary.AnnotationOwner), "/"), request.Component.GetNamespace()
	if len(parts) != 5 || parts[0] != r.Self.Kind.Group || parts[1] != r.Self.Kind.Kind || parts[3] != request.Component.GetName() {
		return ""
	}
	if parts[2] != namespace && live.GetNamespace() != namespace {
		return ""
	}
	return apitypes.UID(parts[4])
}

// mayCarry reports whether a random part of a component without a Helm release may have the value of a live object: of a Secret, a bundle
// of certificate authorities, or an annotation of a pod template, such as the checksum of a Secret. The object belongs to a previous
// component, or, if the record of the random values is lost, to this one.
func (r *Renderer) mayCarry(request Request, value randomValue, live *unstructured.Unstructured, lost bool) bool {
	if owner := r.ownerOf(request, live); owner == "" || owner == request.Component.GetUID() && !lost {
		return false
	}
	return isOfSecret(value) || isAt(value, "caBundle", 0) || isAt(value, "template", 3) && isAt(value, "metadata", 2) && isAt(value, "annotations", 1)
}

// isOfSecret reports whether a random part is the content of a Secret.
func isOfSecret(value randomValue) bool {
	group, _ := schema.ParseGroupVersion(value.Object.APIVersion)
	return confidential.IsSecret(group.WithKind(value.Object.Kind).GroupKind()) && len(value.Path) > 0 && (value.Path[0] == "data" || value.Path[0] == "stringData")
}

// isAt reports whether a step of the path of a random part, counted from its end, is a key.
func isAt(value randomValue, key string, fromEnd int) bool {
	at := len(value.Path) - 1 - fromEnd
	return at >= 0 && value.Path[at] == key
}
