// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/owned"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// serverSideApply sends the manifest as a server-side apply and does not change the fields of other managers
// alone. Some earlier entries in managedFields count as ours: the entry of our PUT under another
// policy, the entry of the operator that ours replaces, and under the verb override the fields of
// one-off managers. Only when they are united with ours, the server removes their fields that the
// manifest lacks. If the plan saw entries of one-off managers, that is done first: a conflict then
// leaves a difference, which is planned again. Otherwise the answer shows whether there are any, so
// nothing has to be read before; the apply is sent again then.
func (e *Executor) serverSideApply(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	object, metadata := body(step.Desired.Manifest)
	ignored, err := e.leftFields(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	left, err := e.leftPaths(ctx, resource, object.Object)
	if err != nil {
		return nil, err
	}
	drops := step.ItemAfter.Replicas != nil && e.desiredReplicas(ctx, resource, object) == nil // the number of replicas
	first := step.Reclaims && e.removed == nil                                                 // a preview asks about the apply itself
	reads := len(ignored) > 0 || isClaim(resource) || drops || first
	if hasEmptyBundle(object.Object) || reads {
		object = object.DeepCopy()
		metadata = object.Object["metadata"].(map[string]any)
		carryBundles(object.Object, nil) // an empty caBundle that is sent becomes ours
	}
	precondition(metadata, step)
	a := application{resource: resource, step: step, object: object, metadata: metadata, left: left, ignored: ignored}
	var live *unstructured.Unstructured
	if reads {
		if live, err = e.readFirst(ctx, resource, step); err != nil {
			return nil, err
		}
		for _, path := range left {
			// Fields that we own are sent with the manifest once more: without them, the server
			// would reset them.
			if drops && observe.Owns(live, e.options.FieldOwner, managedPath(path)...) {
				keepPath(object.Object, live.Object, path)
			}
		}
		for _, path := range ignored {
			// Sending a field that the manifest lacks would make it ours.
			if _, ours := lookup(object.Object, path); ours {
				keepPath(object.Object, live.Object, path)
			}
		}
		if isClaim(resource) {
			keepSize(inner(object.Object, "spec"), inner(live.Object, "spec"))
		}
		if first {
			if live, _, err = e.takeOver(ctx, a, live); err != nil {
				return nil, err
			}
		}
	}
	answer, err := e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
	if isServerFailure(err) {
		var migrated bool
		if migrated, err = e.migrateVersions(ctx, resource, step, metadata, err); migrated {
			live = nil
			answer, err = e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
		}
	}
	if isExclusion(err) {
		answer, err = e.applyExcluded(ctx, a, live, err)
	}
	if err != nil {
		return nil, err
	}
	answer, more, err := e.takeOver(ctx, a, answer)
	if err != nil || !more {
		return answer, err
	}
	if answer, err = e.objects.Apply(ctx, resource, object, e.options.FieldOwner); err != nil {
		return nil, fmt.Errorf("apply again, after acquiring fields: %w", err)
	}
	return answer, nil
}

type application struct {
	resource cluster.Resource
	step     plan.Step
	object   *unstructured.Unstructured
	metadata map[string]any
	// left are the fields that we do not own, and ignored the fields that we do not take over.
	left, ignored [][]string
}

// takeOver makes the entries that count as ours one entry. The object is returned as it was
// answered, and whether we own more fields than before.
func (e *Executor) takeOver(ctx context.Context, a application, live *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	owner := metav1.ManagedFieldsEntry{Manager: e.options.FieldOwner, APIVersion: a.resource.GVR.GroupVersion().String()}
	united, more, err := uniteEntries(live.GetManagedFields(), owner, a.leaves, func(entry metav1.ManagedFieldsEntry) bool {
		former := a.step.Owner.Former
		return entry.Manager == e.options.FieldOwner || former != "" && entry.Manager == former || a.step.Verb == plan.VerbOverride && owned.IsOneOff(entry.Manager)
	})
	if err != nil || united == nil {
		return live, false, err
	}
	if live, err = e.setManagers(ctx, a.resource, a.step, live, united); err != nil {
		if e.removed != nil {
			e.reclaimed = more
		}
		return nil, false, err
	}
	a.metadata["resourceVersion"] = live.GetResourceVersion()
	return live, !more.Empty(), nil
}

// migrateVersions rewrites the entries of managedFields in versions that the server does not serve
// any more, and puts the new resourceVersion into the metadata of the object to be applied. The
// server converts an object to the version of each entry when it is applied, and fails if the
// definition of the type does not have that version. If there are no such entries, the object is
// not changed and failure is returned.
func (e *Executor) migrateVersions(ctx context.Context, resource cluster.Resource, step plan.Step, metadata map[string]any, failure error) (migrated bool, err error) {
	live, err := e.readFirst(ctx, resource, step)
	if err != nil {
		return false, err
	}
	served := map[string]bool{resource.GVR.Version: true}
	for _, entry := range live.GetManagedFields() {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if err != nil || gv.Group != resource.GVR.Group || served[gv.Version] {
			continue
		}
		// The cached kinds of the version may be out of date.
		kinds, err := e.types.Kinds(ctx, gv)
		if err != nil {
			return false, errors.Join(failure, err)
		}
		_, served[gv.Version] = kinds[resource.Kind]
	}
	entries, changed := migrateEntries(live.GetManagedFields(), resource.GVR.GroupVersion(), served)
	if !changed {
		return false, failure
	}
	live, err = e.setManagers(ctx, resource, step, live, entries)
	if err != nil {
		return false, err
	}
	metadata["resourceVersion"] = live.GetResourceVersion()
	return true, nil
}

// isServerFailure reports whether the server has failed without a reason of its own.
func isServerFailure(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return answered && status.ErrStatus.Code == http.StatusInternalServerError && !isUntyped(status.ErrStatus.Message)
}

func (e *Executor) setManagers(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, error) {
	set := map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries}
	live, err := e.patch(ctx, resource, step, types.JSONPatchType, append(preconditions(live), set))
	if err != nil {
		return nil, fmt.Errorf("acquire fields of earlier managers: %w", err)
	}
	return live, nil
}

// preconditions are the operations of a JSON patch that demand the object as it was answered.
func preconditions(live *unstructured.Unstructured) []map[string]any {
	return []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(live.GetUID())},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	}
}

// leaves returns the fields of an entry that do not become ours.
func (a application) leaves(fields *fieldpath.Set, isOurs bool) *fieldpath.Set {
	kept := fieldpath.NewSet()
	fields.Iterate(func(field fieldpath.Path) {
		lies := func(path []string) bool { return liesAt(a.object.Object, path, field) }
		if slices.ContainsFunc(a.left, lies) || !isOurs && slices.ContainsFunc(a.ignored, lies) {
			kept.Insert(field)
		}
	})
	return kept
}

// liesAt reports whether a managed field is at or below a path of the object, whose elements of lists are numbers.
func liesAt(object any, path []string, field fieldpath.Path) bool {
	if len(field) < len(path) {
		return false
	}
	for i, segment := range path {
		if name := field[i].FieldName; name != nil {
			if *name != segment {
				return false
			}
			fields, _ := object.(map[string]any)
			object = fields[segment]
			continue
		}
		list, _ := object.([]any)
		at, ok := index(list, segment)
		if !ok {
			return false
		}
		object = list[at]
		element, _ := object.(map[string]any)
		switch key, value := field[i].Key, field[i].Value; {
		case key != nil:
			for _, part := range *key {
				if own, set := element[part.Name]; set && !sameNumber(own, part.Value.Unstructured()) {
					return false
				}
			}
		case value != nil && !sameNumber(object, (*value).Unstructured()):
			return false
		}
	}
	return true
}

// uniteEntries merges the entries that count as ours into our entry of server-side
// apply, but for the fields that do not become ours. The result is nil if nothing
// changes. Entries for subresources stay as they are: a number of replicas set through
// "scale" keeps its entry. The second result is the fields that we own then and did not own before.
func uniteEntries(entries []metav1.ManagedFieldsEntry, owner metav1.ManagedFieldsEntry, leaves func(fields *fieldpath.Set, isOurs bool) *fieldpath.Set, counts func(metav1.ManagedFieldsEntry) bool) (united []metav1.ManagedFieldsEntry, more *fieldpath.Set, err error) {
	ours, changed := -1, false
	all, before := fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range entries {
		if entry.Subresource != "" || !counts(entry) {
			united = append(united, entry)
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, nil, err
		}
		isOurs := entry.Manager == owner.Manager && entry.Operation == metav1.ManagedFieldsOperationApply && ours < 0
		kept := leaves(fields, isOurs)
		taken := fields.Difference(kept)
		switch {
		case isOurs:
			ours, before, changed = len(united), fields, changed || !kept.Empty()
			united, all = append(united, entry), all.Union(taken)
		case !kept.Empty() && fields.Leaves().Difference(kept).Empty():
			united = append(united, entry) // the rest are maps around its fields
		default:
			changed, all = true, all.Union(taken)
			if !kept.Empty() {
				united = append(united, withFields(entry, kept))
			}
		}
	}
	if !changed {
		return nil, fieldpath.NewSet(), nil
	}
	if ours < 0 {
		ours, united = len(united), append(united, owner)
		united[ours].Operation, united[ours].FieldsType = metav1.ManagedFieldsOperationApply, "FieldsV1"
	}
	united[ours] = withFields(united[ours], all)
	return united, all.Difference(before), nil
}

// managedPath is a path of fields as managedFields have it.
func managedPath(path []string) []string {
	managed := make([]string, len(path))
	for i, field := range path {
		managed[i] = "f:" + field
	}
	return managed
}

func withFields(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) metav1.ManagedFieldsEntry {
	if raw, err := fields.ToJSON(); err == nil { // fields that were read can be written
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
	return entry
}

// migrateEntries gives the entries of versions that are not served the version of the object, and
// unites the entries of one manager. An entry with unreadable fields is dropped. The second result
// reports whether there were any such entries.
func migrateEntries(entries []metav1.ManagedFieldsEntry, to schema.GroupVersion, served map[string]bool) (translated []metav1.ManagedFieldsEntry, changed bool) {
	for _, entry := range entries {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if unserved := err != nil || gv.Group == to.Group && !served[gv.Version]; unserved {
			entry.APIVersion, changed = to.String(), true
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			changed = true
			continue
		}
		same := slices.IndexFunc(translated, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation &&
				other.Subresource == entry.Subresource && other.APIVersion == entry.APIVersion
		})
		if same < 0 {
			translated = append(translated, entry)
			continue
		}
		known, _ := fieldsOf(translated[same]) // it was read before
		translated[same], changed = withFields(translated[same], known.Union(fields)), true
	}
	return translated, changed
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", entry.Manager, err)
	}
	return fields, nil
}
