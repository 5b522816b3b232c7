// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// isExclusion reports whether the server may have refused an apply because a field of the manifest and one of
// another client, or a default, exclude each other.
func isExclusion(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return answered && status.ErrStatus.Reason == metav1.StatusReasonInvalid && !isImmutable(status.ErrStatus) &&
		len(fieldsIn(status.ErrStatus)) > 0 && !slices.Contains(fieldsIn(status.ErrStatus), "metadata.uid")
}

// applyExcluded applies an object again that the server has refused because of fields that are not
// in the manifest. Fields of one-off managers are taken over, under the verb override. Fields
// without an owner, such as defaults, belong to no apply that could remove them, so one JSON patch
// does. Live is the object as it was last answered; nil if it has to be read.
func (e *Executor) applyExcluded(ctx context.Context, a application, live *unstructured.Unstructured, refusal error) (*unstructured.Unstructured, error) {
	var err error
	if live == nil {
		if live, err = e.readFirst(ctx, a.resource, a.step); err != nil {
			return nil, err
		}
	}
	taken, more, err := e.takeOver(ctx, a, live)
	if err != nil {
		return nil, err
	}
	if live = taken; more {
		answer, err := e.objects.Apply(ctx, a.resource, a.object, e.options.FieldOwner)
		if err == nil || !isExclusion(err) {
			return answer, err
		}
		refusal = err
	}
	x := exclusions{live: live, owner: e.options.FieldOwner}
	status, _ := errors.AsType[*apierrors.StatusError](refusal)
	for _, cause := range status.ErrStatus.Details.Causes {
		x.find(live.Object, a.object.Object, nil, segments(cause.Field), cause.Message)
	}
	if len(x.owned) > 0 {
		return nil, fmt.Errorf("%w; %s: only that client can remove it, or the annotation %s/%s: replace",
			refusal, strings.Join(x.owned, ", "), e.options.Name, v1alpha1.AnnotationUpdatePolicy)
	}
	if len(x.operations) == 0 {
		return nil, refusal
	}
	live, err = e.patch(ctx, a.resource, a.step, types.JSONPatchType, append(preconditions(live), x.operations...))
	switch {
	case apierrors.IsInvalid(err):
		return nil, refusal // it was something else
	case err != nil:
		return nil, fmt.Errorf("replace what excludes a field of the manifest: %w", err)
	}
	a.metadata["resourceVersion"] = live.GetResourceVersion()
	return e.objects.Apply(ctx, a.resource, a.object, e.options.FieldOwner)
}

// exclusions are the fields of a live object that exclude fields of its manifest.
type exclusions struct {
	live  *unstructured.Unstructured
	owner string
	// owned name the fields that another field manager has set, with the manager.
	owned []string
	// operations of a JSON patch replace the other fields.
	operations []map[string]any
}

// find follows a path to a field that the server has refused, through the live object and the
// manifest side by side. Its positions in lists are positions in the server's merged object, so all
// elements are looked at that the manifest has too.
func (x *exclusions) find(live, manifest any, at, path []string, message string) {
	switch live := live.(type) {
	case []any:
		elements, _ := manifest.([]any)
		for i, element := range live {
			fields, _ := element.(map[string]any)
			if own := matchingElement(mapsIn(elements), fields); own != nil && len(path) > 0 {
				x.find(element, own, append(slices.Clone(at), fmt.Sprint(i)), path[1:], message)
			}
		}
	case map[string]any:
		fields, ok := manifest.(map[string]any)
		switch {
		case !ok:
		case len(path) == 0:
			x.exclude(live, fields, at, "", message)
		case live[path[0]] != nil && fields[path[0]] != nil:
			x.find(live[path[0]], fields[path[0]], append(slices.Clone(at), path[0]), path[1:], message)
		case len(path) == 1 && len(at) > 0:
			x.exclude(live, fields, at, path[0], message)
		}
	}
}

// elementKeys identify elements of lists, in this order.
var elementKeys = []string{"name", "mountPath", "devicePath", "containerPort", "port", "key", "ip", "type", "uid"}

// matchingElement returns the element that has the same value at the first key that the other one has.
func matchingElement(elements []map[string]any, like map[string]any) map[string]any {
	for _, key := range elementKeys {
		if like[key] != nil {
			return matching(elements, like, key)
		}
	}
	return nil
}

// exclude notes which live fields exclude fields of the manifest. The server has refused one of
// them: either it is not in the manifest, or it is, and the message or the kind of value shows
// which other field excludes it.
func (x *exclusions) exclude(live, manifest map[string]any, at []string, refused, message string) {
	var foreign, named []string
	for _, key := range slices.Sorted(maps.Keys(live)) {
		switch _, isMap := live[key].(map[string]any); {
		case manifest[key] != nil:
		case key == refused:
			foreign, named = nil, []string{key}
		case mentions(message, key):
			named = append(named, key)
		case isMap:
			foreign = append(foreign, key)
		}
		if len(named) > 0 && named[0] == refused {
			break
		}
	}
	if len(named) == 0 && len(foreign) == 1 && manifest[refused] != nil {
		named = foreign
	}
	if len(named) == 0 {
		return
	}
	var operations []map[string]any
	for _, key := range named {
		path := append(slices.Clone(at), key)
		if manager := x.managerOf(path); manager != "" {
			x.owned = append(x.owned, strings.Join(path, ".")+" is set by the field manager "+manager)
			continue
		}
		operations = append(operations, map[string]any{"op": "remove", "path": pointerTo(path)})
	}
	if len(operations) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(manifest)) {
		switch manifest[key].(type) {
		case map[string]any, []any, nil:
			if key != refused || manifest[key] == nil {
				continue
			}
		}
		operations = append(operations, map[string]any{"op": "add", "path": pointerTo(append(slices.Clone(at), key)), "value": manifest[key]})
	}
	for _, operation := range operations { // several causes may be about one path, and a path is removed once
		if !slices.ContainsFunc(x.operations, func(known map[string]any) bool {
			return known["op"] == operation["op"] && known["path"] == operation["path"]
		}) {
			x.operations = append(x.operations, operation)
		}
	}
}

// managerOf returns the field manager that has set something at or below a path, unless it is ours.
func (x *exclusions) managerOf(path []string) string {
	for _, entry := range x.live.GetManagedFields() {
		fields, err := fieldsOf(entry)
		if err != nil || entry.Manager == x.owner {
			continue
		}
		sets := false
		fields.Iterate(func(field fieldpath.Path) { sets = sets || liesAt(x.live.Object, path, field) })
		if sets {
			return entry.Manager
		}
	}
	return ""
}

// mentions reports whether a message names a field, such as "strategy `type`" or "session affinity".
func mentions(message, key string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(message), " ", ""), strings.ToLower(key))
}

// segments splits a path such as spec.containers[0].env.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

// pointerTo is a path of fields of structs, and of positions in lists, as a JSON pointer.
func pointerTo(path []string) string {
	pointer := ""
	for _, element := range path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(element)
	}
	return pointer
}

// adviseOnUntyped names the policy for a manifest that no server-side apply accepts.
func adviseOnUntyped(err error, name string) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Verb == plan.VerbReplace || !isUntyped(e.text) {
		return
	}
	e.text += fmt.Sprintf("; the annotation %s/%s: replace takes it, or correct the manifest", name, v1alpha1.AnnotationUpdatePolicy)
}

// isUntyped reports whether the message is about a manifest that does not fit the schema of its
// type, which only server-side apply demands: it names an element of a list twice, for example, or
// a field that does not exist.
func isUntyped(message string) bool {
	return strings.Contains(message, "failed to create typed patch object")
}
