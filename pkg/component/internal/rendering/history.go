// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/revisions"
)

// runOnRollback is the value of the annotation run-on of objects that belong to a revision and are
// applied when it is rolled back to, such as the rollback hooks of a chart.
const runOnRollback = "rollback"

// unsaved returns the objects as they are to be kept; nil if they are in the history, or if one of
// them cannot be serialised, which the engine refuses.
func (r *Renderer) unsaved(ctx context.Context, request Request, last *Last, objects []client.Object) (*revisions.Set, error) {
	if r.Preview || r.Revisions == nil || request.Limit == 0 || request.Component.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if request.Stored != "" && last.changes > 0 {
		return nil, nil // manifests that change with every rendering are kept once
	}
	digest, err := r.Revisions.Identify(ctx, request.Namespace, last.digest)
	if err != nil || digest == request.Stored {
		return nil, err
	}
	set := &revisions.Set{Revision: request.Revision.Number, Digest: digest, Namespace: request.Namespace, Public: !confidential.Is(ctx)}
	for _, object := range objects {
		encoded, err := json.Marshal(object.(runtime.Unstructured).UnstructuredContent())
		if err != nil {
			return nil, nil
		}
		set.Objects = append(set.Objects, encoded)
	}
	return set, nil
}

// forApply returns the objects without those that only a rollback applies.
func (r *Renderer) forApply(objects []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(objects), r.isForRollback)
}

func (r *Renderer) isForRollback(object client.Object) bool {
	return strings.EqualFold(r.Self.Value(object, v1alpha1.AnnotationRunOn), runOnRollback)
}

// Pinned says what is different from the manifests of the earlier revision.
type Pinned struct {
	// NewerDefinitions are the CustomResourceDefinitions that stay as a later revision has them.
	NewerDefinitions []string
	// Hooks are the objects that ran for other revisions. They stay as they are.
	Hooks []report.Key
}

// A MissingRevisionError says that the manifests of a revision are not kept.
type MissingRevisionError struct {
	Revision int64
	// Kept are the revisions with manifests that are kept.
	Kept []int64
	Err  error
}

// Error lists the revisions that are kept.
func (e *MissingRevisionError) Error() string {
	text := fmt.Sprintf("revision %d cannot be applied again, because its manifests are not kept", e.Revision)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if len(e.Kept) == 0 {
		return text + "; those of no revision are"
	}
	numbers := make([]string, len(e.Kept))
	for i, number := range e.Kept {
		numbers[i] = strconv.FormatInt(number, 10)
	}
	return text + "; those of revision " + strings.Join(numbers, ", ") + " are"
}

// Unwrap returns why they are not kept.
func (e *MissingRevisionError) Unwrap() error { return e.Err }

// Restore returns the objects of an earlier revision, and keeps them as those of the revision of the
// request. The error is a MissingRevisionError if they are not kept.
func (r *Renderer) Restore(ctx context.Context, request Request, pinned v1alpha1.RevisionStatus, last *Last) (Rendering, error) {
	last.start(request, r.Now())
	record, sets, err := r.sets(ctx, request, pinned.Revision)
	if record != nil {
		last.kept.secret.record = record
	}
	if err != nil {
		return Rendering{}, err
	}
	rendering := Rendering{Stored: request.Stored}
	set, found := find(sets, request.Revision.Number, request.Stored)
	if !found {
		if set, found = find(sets, pinned.Revision, pinned.Digest); !found {
			return Rendering{}, notIn(sets, pinned.Revision)
		}
		set.Revision = request.Revision.Number
		if err := r.keepRestored(ctx, request, &set, sets, &rendering, &last.kept); err != nil {
			return Rendering{}, err
		}
	}
	err = r.activate(ctx, set, sets, pinned, &rendering)
	return rendering, err
}

// Stored returns the objects of the revision of the request as the history has them. The error is a
// MissingRevisionError if it does not have them.
func (r *Renderer) Stored(ctx context.Context, request Request) (Rendering, error) {
	_, sets, err := r.sets(ctx, request, request.Revision.Number)
	if err != nil {
		return Rendering{}, err
	}
	set, found := find(sets, request.Revision.Number, request.Stored)
	if !found {
		return Rendering{}, notIn(sets, request.Revision.Number)
	}
	objects, err := objectsOf(ctx, set)
	return Rendering{Objects: r.forApply(objects), Namespace: set.Namespace, Stored: request.Stored}, err
}

// sets returns the Secret of the revisions and the sets in it. The error is a MissingRevisionError about the revision if they
// are lost.
func (r *Renderer) sets(ctx context.Context, request Request, revision int64) (*revisions.Record, []revisions.Set, error) {
	record, err := r.Revisions.Read(ctx, r.Self.Revisions(request.Component))
	if err != nil {
		return nil, nil, err
	}
	sets, err := record.Sets(ctx)
	if lost, ok := errors.AsType[*revisions.LostError](err); ok {
		err = &MissingRevisionError{Revision: revision, Err: lost}
	}
	return record, sets, err
}

// notIn is the error about a revision that is none of the sets.
func notIn(sets []revisions.Set, revision int64) error {
	missing := &MissingRevisionError{Revision: revision}
	for _, set := range sets {
		missing.Kept = append(missing.Kept, set.Revision)
	}
	return missing
}

// objectsOf decodes the objects of a set. The reconcile is confidential then, unless it is known that no Secret was read for the set.
func objectsOf(ctx context.Context, set revisions.Set) ([]client.Object, error) {
	if !set.Public {
		confidential.Note(ctx)
	}
	objects := make([]client.Object, 0, len(set.Objects))
	for _, encoded := range set.Objects {
		object, err := decode(encoded)
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", set.Revision, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// find returns the set of a revision, if it has the digest.
func find(sets []revisions.Set, revision int64, digest string) (revisions.Set, bool) {
	at := slices.IndexFunc(sets, func(set revisions.Set) bool { return set.Revision == revision && set.Digest == digest })
	if at < 0 || digest == "" {
		return revisions.Set{}, false
	}
	return sets[at], true
}

// keepRestored makes the set that of the revision of the request: its definitions are the latest
// ones, because a rollback never goes back to an earlier version of a definition.
func (r *Renderer) keepRestored(ctx context.Context, request Request, set *revisions.Set, sets []revisions.Set, rendering *Rendering, k *kept) (err error) {
	latest, of := map[string]json.RawMessage{}, map[string]int64{}
	for i := len(sets) - 1; i >= 0; i-- {
		for _, object := range sets[i].Objects {
			if name := definitionIn(object); name != "" && sets[i].Revision >= of[name] {
				latest[name], of[name] = object, sets[i].Revision
			}
		}
	}
	set.Objects = slices.Clone(set.Objects)
	parts := []string{set.Namespace}
	for i, object := range set.Objects {
		if name := definitionIn(object); name != "" {
			set.Objects[i] = latest[name]
		}
		parts = append(parts, string(set.Objects[i]))
	}
	if set.Digest, err = r.Revisions.Identify(ctx, parts...); err != nil {
		return err
	}
	if r.Preview {
		return nil
	}
	return r.write(ctx, request, revisions.Update{Set: set}, rendering, k)
}

// definitionIn returns the name of the CustomResourceDefinition that the object is; empty if it is
// none.
func definitionIn(object json.RawMessage) string {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if json.Unmarshal(object, &head) != nil || head.Kind != "CustomResourceDefinition" || !strings.HasPrefix(head.APIVersion, "apiextensions.k8s.io/") {
		return ""
	}
	return head.Metadata.Name
}

// activate adds the objects of a set to the rendering, as a rollback applies them: hooks of an
// installation or an upgrade are left out, and those of a rollback run for its revision.
func (r *Renderer) activate(ctx context.Context, set revisions.Set, sets []revisions.Set, pinned v1alpha1.RevisionStatus, rendering *Rendering) error {
	rendering.Namespace = set.Namespace
	original, _ := find(sets, pinned.Revision, pinned.Digest)
	before := map[string]string{}
	for _, object := range original.Objects {
		if name := definitionIn(object); name != "" {
			before[name] = string(object)
		}
	}
	objects, err := objectsOf(ctx, set)
	if err != nil {
		return err
	}
	revision, applied := r.Self.Annotation(v1alpha1.AnnotationRevision), map[report.Key]bool{}
	for i, object := range objects {
		if name := definitionIn(set.Objects[i]); before[name] != "" && before[name] != string(set.Objects[i]) {
			rendering.Pinned.NewerDefinitions = append(rendering.Pinned.NewerDefinitions, "CustomResourceDefinition "+name)
		}
		annotations := object.GetAnnotations()
		switch {
		case r.isForRollback(object):
			delete(annotations, r.Self.Annotation(v1alpha1.AnnotationRunOn))
			annotations[revision] = strconv.FormatInt(set.Revision, 10)
			object.SetAnnotations(annotations)
		case r.ranForRevision(object):
			continue
		}
		rendering.Objects = append(rendering.Objects, object)
		applied[keyOf(object, set.Namespace)] = true
	}
	for _, other := range append(sets, set) {
		for _, encoded := range other.Objects {
			if !bytes.Contains(encoded, []byte(revision)) { // most objects are not decoded
				continue
			}
			object, err := decode(encoded)
			if err != nil || !r.ranForRevision(object) {
				continue
			}
			if hook := keyOf(object, other.Namespace); !applied[hook] {
				rendering.Pinned.Hooks = append(rendering.Pinned.Hooks, hook)
			}
		}
	}
	return nil
}

// ranForRevision reports whether an object does its work once in each revision and ends, as the hooks
// of a chart do.
func (r *Renderer) ranForRevision(object client.Object) bool {
	if r.Self.Value(object, v1alpha1.AnnotationRevision) == "" {
		return false
	}
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	return kind == schema.GroupKind{Group: "batch", Kind: "Job"} || kind == schema.GroupKind{Kind: "Pod"} || r.Self.Value(object, v1alpha1.AnnotationPurgeOrder) != ""
}

// keyOf identifies an object, which is in the namespace unless it names another one.
func keyOf(object client.Object, namespace string) report.Key {
	kind := object.GetObjectKind().GroupVersionKind()
	return report.Key{Group: kind.Group, Kind: kind.Kind, Namespace: cmp.Or(object.GetNamespace(), namespace), Name: object.GetName()}
}

func decode(encoded json.RawMessage) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(encoded, &object.Object); err != nil {
		return nil, err
	}
	return object, nil
}
