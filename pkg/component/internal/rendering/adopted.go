// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// anotherTime is added to the time of a rendering to find out what is made of it: all parts of a date differ.
const anotherTime = (400*24+25)*time.Hour + 61*time.Minute + 61*time.Second

// Adopted is what a Helm release has rendered.
type Adopted struct {
	// Objects are the objects, and Hooks those of hooks.
	Objects, Hooks []*unstructured.Unstructured
	// Time is when they were rendered; zero if it is not known.
	Time time.Time
}

// all returns the objects, and the objects of hooks; it may be called on nil.
func (a *Adopted) all() []*unstructured.Unstructured {
	if a == nil {
		return nil
	}
	return slices.Concat(a.Objects, a.Hooks)
}

// carryOver adds the values that random parts have live, or else in the release, to what is kept of the revision. Without a release,
// only some parts have the live value: see mayCarry. Values that are kept already stay.
func (r *Renderer) carryOver(ctx context.Context, request Request, found randomParts, k *kept) error {
	c := manifests.FromContext(ctx).Client
	if c == nil {
		return errNoClient
	}
	before := map[report.Key]*unstructured.Unstructured{}
	for _, object := range request.Adopted.all() {
		before[keyOf(object, request.Namespace)] = object
	}
	known, live := k.places(), map[objectID]*unstructured.Unstructured{}
	carried := randomParts{Values: slices.Clone(k.Values), Groups: slices.Clone(k.Groups)}
	for _, value := range found.Values {
		if _, isKnown := known[value.place()]; isKnown {
			continue
		}
		object, read := live[value.Object]
		if !read {
			var err error
			if object, err = liveObject(ctx, c, value.Object, request.Namespace); err != nil {
				return fmt.Errorf("read %s %s, which has a random value: %w", value.Object.Kind, value.Object.Name, err)
			}
			live[value.Object] = object
		}
		if request.Adopted == nil && !r.mayCarry(request, value, object, k.lost != "") {
			continue
		}
		if of, exists := carriedValue(object, before[keyOf(value.Object.object(), request.Namespace)], value); exists {
			carried.Values = append(carried.Values, randomValue{Object: value.Object, Path: value.Path, Value: of})
		}
	}
	for _, group := range found.Groups {
		if _, isKnown := known[group.place()]; isKnown || request.Adopted == nil {
			continue
		}
		var objects []map[string]any
		for _, object := range request.Adopted.Objects {
			inGroup := objectID{group.objectGroup, object.GetName()}.object()
			if keyOf(object, request.Namespace) == keyOf(inGroup, request.Namespace) && !slices.Contains(group.Fixed, object.GetName()) {
				objects = append(objects, object.Object)
			}
		}
		if len(objects) == len(group.Objects) {
			carried.Groups = append(carried.Groups, randomGroup{objectGroup: group.objectGroup, Objects: objects})
		}
	}
	k.randomParts, k.secret.saved = carried, false
	return nil
}

// asInstalled renders at another time, and as if the objects of the release did not exist, or without a release, the rendered objects. So
// it finds values that are made of the time and of these objects, such as the checksum of a password that is looked up: Helm computed it of
// another password than it has installed.
func (r *Renderer) asInstalled(ctx context.Context, request Request, rendered []client.Object, at time.Time) ([][]client.Object, error) {
	later, _, err := r.generate(renders.WithTime(ctx, at.Add(anotherTime)), request)
	if err != nil {
		return nil, err
	}
	hiding := &hidden{objects: map[report.Key]bool{}, namespace: request.Namespace}
	for _, object := range request.Adopted.all() {
		hiding.objects[keyOf(object, request.Namespace)] = true
	}
	if request.Adopted == nil {
		for _, object := range rendered {
			hiding.objects[keyOf(object, request.Namespace)] = true
		}
	}
	ctx = withClients(ctx, func(c client.Client) client.Client { return &blind{c, hiding} })
	before, _, err := r.generate(ctx, request)
	switch {
	case err == nil:
		return [][]client.Object{later, before}, nil
	case hiding.failed.Load(), errors.Is(err, context.DeadlineExceeded):
		return nil, err
	default: // the chart refuses to be rendered without the objects, so that it makes nothing of their absence
		return [][]client.Object{later}, nil
	}
}

// hidden are objects that a blind client does not find.
type hidden struct {
	objects   map[report.Key]bool
	namespace string
	// failed: another request than for what does not exist has failed.
	failed atomic.Bool
}

func (h *hidden) has(c client.Client, object client.Object) bool {
	gvk, err := c.GroupVersionKindFor(object)
	return err == nil && h.objects[report.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: cmp.Or(object.GetNamespace(), h.namespace), Name: object.GetName()}]
}

// blind is a client that does not find the hidden objects.
type blind struct {
	client.Client
	hidden *hidden
}

func (b *blind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := b.Client.Get(ctx, key, object, options...)
	switch {
	case err == nil && b.hidden.has(b.Client, object):
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	case err != nil && !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err):
		b.hidden.failed.Store(true)
	}
	return err
}

func (b *blind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := b.Client.List(ctx, list, options...); err != nil {
		if !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
			b.hidden.failed.Store(true)
		}
		return err
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return err
	}
	return apimeta.SetList(list, slices.DeleteFunc(items, func(item runtime.Object) bool {
		object, ok := item.(client.Object)
		return ok && b.hidden.has(b.Client, object)
	}))
}

// liveObject reads an object of a rendering; nil if it does not exist. An object whose name cannot be part of a path does not exist: the
// engine refuses its manifest.
func liveObject(ctx context.Context, c client.Client, id objectID, namespace string) (*unstructured.Unstructured, error) {
	if id.Name == "" || len(content.IsPathSegmentName(id.Name)) > 0 || len(content.IsPathSegmentName(id.Namespace)) > 0 {
		return nil, nil
	}
	live := id.object()
	err := c.Get(ctx, client.ObjectKey{Namespace: cmp.Or(id.Namespace, namespace), Name: id.Name}, live)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	return live, err
}

// carriedValue returns the value that a random part has live. Of a part that is a map or a list it is that of the
// release, because the live one has defaults, too.
func carriedValue(live, before *unstructured.Unstructured, value randomValue) (any, bool) {
	var rendered any
	var exists bool
	if before != nil {
		rendered, exists = valueAt(before.Object, value.Path)
	}
	if live == nil || !isScalar(value.Value) || len(value.Path) == 0 {
		return rendered, exists
	}
	if found, there := valueAt(live.Object, value.Path); there && isScalar(found) && (before == nil || sameLists(live.Object, before.Object, value.Path)) {
		return found, true
	}
	if text, found := secretText(live, value.Path); found {
		return text, true
	}
	return rendered, exists
}

// secretText returns what a live Secret has for a path into the stringData of its manifest, and reports whether it has that.
func secretText(live *unstructured.Unstructured, path []any) (string, bool) {
	if live.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) || len(path) != 2 || path[0] != "stringData" {
		return "", false
	}
	encoded, _ := valueAt(live.Object, []any{"data", path[1]})
	of, isText := encoded.(string)
	text, err := base64.StdEncoding.DecodeString(of)
	return string(text), isText && err == nil
}

// sameLists reports whether the lists on a path have the same lengths, so that an index means the same.
func sameLists(a, b any, path []any) bool {
	for i, step := range path {
		if _, isIndex := step.(int64); !isIndex {
			continue
		}
		x, _ := valueAt(a, path[:i])
		y, _ := valueAt(b, path[:i])
		first, _ := x.([]any)
		second, _ := y.([]any)
		if len(first) != len(second) {
			return false
		}
	}
	return true
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// withoutHooksThatRan leaves out the objects that do their work once in each revision, because they did it before the
// component existed. One that is still there becomes a dependent by its label and annotation alone, so that
// the next revision can replace it.
func (r *Renderer) withoutHooksThatRan(ctx context.Context, request Request, objects []client.Object, read *answers) ([]client.Object, error) {
	var left []client.Object
	for _, object := range objects {
		hook := object.(*unstructured.Unstructured)
		if !r.ranForRevision(hook) || r.isForRollback(hook) {
			left = append(left, object)
			continue
		}
		c := manifests.FromContext(ctx).Client
		if c == nil {
			return nil, errNoClient
		}
		if quiet, ok := c.(*noting); ok {
			c = quiet.Client // that it is there is an answer; what its status says is none
		}
		live, err := liveObject(ctx, c, idOf(hook), request.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read the hook %s %s: %w", hook.GetKind(), hook.GetName(), err)
		}
		if live != nil && live.GetDeletionTimestamp() == nil {
			read.add("hook", string(live.GetUID()))
			left = append(left, r.hookThatRan(hook))
		}
	}
	return left, nil
}

// hookThatRan returns the manifest of a hook that is still there, without anything that could change it.
func (r *Renderer) hookThatRan(hook *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := hook.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		suffix, isOurs := strings.CutPrefix(key, r.Self.Annotation(""))
		return !isOurs || slices.Contains([]string{v1alpha1.AnnotationPurgeOrder, v1alpha1.AnnotationDependsOn, v1alpha1.AnnotationStatusHint}, suffix)
	})
	for suffix, value := range map[string]string{
		v1alpha1.AnnotationReconcilePolicy: "once-per-manifest", v1alpha1.AnnotationUpdatePolicy: "ssa-merge", v1alpha1.AnnotationReadyWhen: "true",
		// Helm does not mark the objects of hooks as its own.
		v1alpha1.AnnotationAdoptionPolicy: cmp.Or(r.Self.Value(hook, v1alpha1.AnnotationAdoptionPolicy), "if-unowned"),
	} {
		annotations[r.Self.Annotation(suffix)] = value
	}
	stub := idOf(hook).object()
	stub.SetAnnotations(annotations)
	return stub
}
