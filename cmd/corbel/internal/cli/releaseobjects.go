// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/helmrecord"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Labels and annotations by which Helm knows its objects.
const (
	helmName      = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	managedBy     = "app.kubernetes.io/managed-by"
)

// objectsOf reads the labels and annotations of all objects of a component.
func (h *handback) objectsOf(ctx context.Context, connection *connection, c inspect.Component) ([]metav1.PartialObjectMetadata, error) {
	inventory, err := connection.reader.Inventory(ctx, c)
	if err != nil {
		return nil, err
	}
	var objects []metav1.PartialObjectMetadata
	for _, item := range inventory.Items {
		if item.UID == "" || item.Phase == vocabulary.PhaseReleased {
			continue // it is not there, or belongs to others
		}
		object := metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind})
		err := connection.client.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name}, &object)
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s of %s: %w", item.Kind, item.Namespace, item.Name, c, err)
		}
		if object.UID == item.UID {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return objects, nil
}

// foreign returns which objects do not belong to the component alone. Those that are marked for the release already belong to nothing else.
// The status may be forged, so that the objects themselves have to say it.
func foreign(c inspect.Component, objects []metav1.PartialObjectMetadata, release *helmrelease.Release) error {
	gvk := c.Object.GroupVersionKind()
	owner := strings.Join([]string{gvk.Group, gvk.Kind, c.Object.GetNamespace(), c.Object.GetName(), string(c.Object.GetUID())}, "/")
	var others []string
	for _, object := range objects {
		text := object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
		now, isOwned := object.Annotations[c.Reconciler+"/"+vocabulary.AnnotationOwner]
		_, isLabelled := object.Labels[c.Reconciler+"/"+vocabulary.LabelOwnerID]
		helm := object.Annotations[helmName] != ""
		marked := release != nil && object.Annotations[helmName] == release.Name && object.Annotations[helmNamespace] == release.Namespace
		switch {
		case helm && !marked:
			others = append(others, text+" belongs to Helm release "+object.Annotations[helmNamespace]+"/"+object.Annotations[helmName])
		case release != nil && !isOwned && !isLabelled && (marked || !isIn(release, object)): // by an earlier run
		case now != owner:
			others = append(others, text+" has another owner, or none")
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("not all objects of %s belong to it: %s; reconcile it, and look at the objects with \"corbel owner\"", c, strings.Join(others, "; "))
	}
	return nil
}

// addManifests adds the objects and the hooks to a release, and returns which files they come from. Values that the operator does
// not tell are those of the live objects.
func (h *handback) addManifests(ctx context.Context, connection *connection, c inspect.Component, release *helmrelease.Release, manifests []preview.Manifest) (func(*unstructured.Unstructured) string, error) {
	files := map[*unstructured.Unstructured]string{}
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{Object: manifest.Object}
		if manifest.Hidden {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			err := connection.client.Get(ctx, client.ObjectKey{Namespace: cmp.Or(object.GetNamespace(), release.Namespace), Name: object.GetName()}, live)
			if apierrors.IsNotFound(err) {
				// All but those of hooks exist. What it has cannot be read, because the operator does not tell it of other namespaces.
				h.leftOut = append(h.leftOut, object.GetKind()+" "+strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read %s %s of %s: %w", object.GetKind(), object.GetName(), c, err)
			}
			object.Object, _ = fill(object.Object, live.Object).(map[string]any)
		}
		files[object] = manifest.File
		runOn := object.GetAnnotations()[c.Reconciler+"/"+v1alpha1.AnnotationRunOn]
		clean(object, c.Reconciler)
		switch {
		case object.GetAnnotations()[helmrecord.HookKey] != "":
			limitHook(object, runOn)
			release.HookObjects = append(release.HookObjects, object)
		case object.GetKind() == "CustomResourceDefinition" && !strings.Contains(manifest.File, "/templates/"):
			// Helm would delete one of the folder crds, with all its instances, because no template has it.
		default:
			release.Objects = append(release.Objects, object)
		}
	}
	return func(object *unstructured.Unstructured) string { return files[object] }, nil
}

// fill returns the values of a live object at the paths of a manifest without values.
func fill(manifest, live any) any {
	switch manifest := manifest.(type) {
	case map[string]any:
		fields, _ := live.(map[string]any)
		filled := map[string]any{}
		for key, field := range manifest {
			if value, ok := fields[key]; ok {
				filled[key] = fill(field, value)
			}
		}
		return filled
	case []any:
		elements, _ := live.([]any)
		if len(elements) != len(manifest) {
			return live
		}
		filled := make([]any, len(elements))
		for i := range elements {
			filled[i] = fill(manifest[i], elements[i])
		}
		return filled
	}
	return live
}

// ours reports whether a label or an annotation is one of Corbel.
func ours(key, reconciler string) bool {
	return strings.HasPrefix(key, reconciler+"/") || strings.HasPrefix(key, "helm.corbel.run/")
}

// clean removes the labels and annotations of Corbel from a manifest.
func clean(object *unstructured.Unstructured, reconciler string) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for _, set := range []map[string]string{labels, annotations} {
		maps.DeleteFunc(set, func(key, _ string) bool { return ours(key, reconciler) })
	}
	if len(labels) == 0 {
		labels = nil
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// limitHook makes a hook run only when this object of it does: one with several moments is rendered for each of them.
func limitHook(object *unstructured.Unstructured, runOn string) {
	annotations := object.GetAnnotations()
	events := strings.FieldsFunc(annotations[helmrecord.HookKey], func(r rune) bool { return r == ',' || r == ' ' })
	events = slices.DeleteFunc(events, func(event string) bool {
		if runOn == "" {
			return event == "pre-delete" || event == "post-delete"
		}
		return event != runOn
	})
	if len(events) > 0 {
		annotations[helmrecord.HookKey] = strings.Join(events, ",")
		object.SetAnnotations(annotations)
	}
}

// isIn reports whether an object is one of the release, and not of its hooks.
func isIn(release *helmrelease.Release, object metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(release.Objects, func(manifest *unstructured.Unstructured) bool {
		return manifest.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind() && manifest.GetName() == object.Name &&
			(object.Namespace == "" || cmp.Or(manifest.GetNamespace(), release.Namespace) == object.Namespace)
	})
}

// mark gives an object the labels and annotations of the release in place of those of the component. The request demands the object
// as it was read; a controller may write it meanwhile.
func (h *handback) mark(ctx context.Context, connection *connection, l *parting, object metav1.PartialObjectMetadata) error {
	first := true
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if !first {
			uid := object.UID
			if err := connection.client.Get(ctx, client.ObjectKeyFromObject(&object), &object); err != nil {
				return err
			}
			if object.UID != uid {
				return errors.New("it was replaced by another one")
			}
			if err := foreign(l.component, []metav1.PartialObjectMetadata{object}, l.release); err != nil {
				return err
			}
		}
		first = false
		labels, annotations := marks(object, l.component.Reconciler, l.release)
		if len(labels)+len(annotations) == 0 {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.UID, "resourceVersion": object.ResourceVersion, "labels": labels, "annotations": annotations,
		}})
		if err != nil {
			return err
		}
		return connection.client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(steering.FieldManager))
	})
	if apierrors.IsNotFound(err) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("make %s %s/%s an object of %s: %w", object.Kind, object.Namespace, object.Name, l.release.Title(), err)
	}
	return nil
}

// marks returns the labels and annotations to change; nil removes one. An object that is not in the release only loses those of Corbel.
func marks(object metav1.PartialObjectMetadata, reconciler string, release *helmrelease.Release) (labels, annotations map[string]any) {
	labels, annotations = map[string]any{}, map[string]any{}
	for key := range object.Labels {
		if ours(key, reconciler) {
			labels[key] = nil
		}
	}
	for key := range object.Annotations {
		if ours(key, reconciler) {
			annotations[key] = nil
		}
	}
	if !isIn(release, object) {
		return labels, annotations
	}
	set := func(to map[string]any, key, from, value string) {
		if from != value {
			to[key] = value
		}
	}
	set(labels, managedBy, object.Labels[managedBy], "Helm")
	set(annotations, helmName, object.Annotations[helmName], release.Name)
	set(annotations, helmNamespace, object.Annotations[helmNamespace], release.Namespace)
	return labels, annotations
}
