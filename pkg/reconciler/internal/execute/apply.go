// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// apply sends the manifest as a server-side apply and does not change the fields of other
// managers alone. Some earlier entries in managedFields count as ours: what we wrote as
// a PUT under another policy, and under the verb override the fields of one-off
// managers. The answer shows whether there are any, so nothing has to be read before.
// If so, they are united with ours and the apply is sent again; only then the server
// removes those of their fields that the manifest lacks.
func (e *Executor) apply(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	object, metadata := body(step.Desired.Manifest)
	ignored, err := e.leftFields(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	if _, bundled := bundlePaths[resource.GVK().GroupKind()]; bundled || len(ignored) > 0 || isClaim(resource) {
		object = object.DeepCopy()
		metadata = object.Object["metadata"].(map[string]any)
		dropEmptyBundles(resource, object.Object)
	}
	if len(ignored) > 0 || isClaim(resource) {
		live, err := e.readFirst(ctx, resource, step)
		if err != nil {
			return nil, err
		}
		for _, pointer := range ignored {
			applyLive(object.Object, live.Object, pointer)
		}
		if isClaim(resource) {
			keepSize(inner(object.Object, "spec"), inner(live.Object, "spec"))
		}
	}
	precondition(metadata, step)
	live, err := e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
	if isServerFailure(err) {
		var migrated bool
		if migrated, err = e.migrateVersions(ctx, resource, step, metadata, err); migrated {
			live, err = e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
		}
	}
	if err != nil {
		return nil, err
	}
	united, more, err := uniteEntries(live.GetManagedFields(), e.options.FieldOwner, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == e.options.FieldOwner || step.Verb == plan.VerbOverride && isOneOff(entry.Manager)
	})
	if err != nil || united == nil {
		return live, err
	}
	live, err = e.setManagers(ctx, resource, step, live, united)
	if err != nil || !more {
		return live, err
	}
	metadata["resourceVersion"] = live.GetResourceVersion()
	live, err = e.objects.Apply(ctx, resource, object, e.options.FieldOwner)
	if err != nil {
		return nil, fmt.Errorf("apply again, after acquiring fields: %w", err)
	}
	return live, nil
}

// migrateVersions rewrites the entries of managedFields in versions that the server does
// not serve any more, and puts the new resourceVersion into the metadata of what is
// to be applied. The server converts an object to the version of each entry when it
// is applied, and fails if the definition of the type does not have that version. If
// there are no such entries, the object is not changed and failure is returned.
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
		// What is remembered of the version may have been true before.
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
	return answered && status.ErrStatus.Code == http.StatusInternalServerError
}

// setManagers replaces the entries of the managers of the object, as it was answered.
func (e *Executor) setManagers(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(live.GetUID())},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
	})
	if err != nil {
		return nil, err
	}
	live, err = e.objects.Patch(ctx, resource, step.Key.Namespace, step.Key.Name, types.JSONPatchType, patch, e.options.FieldOwner)
	if err != nil {
		return nil, fmt.Errorf("acquire fields of earlier managers: %w", err)
	}
	return live, nil
}

// oneOff are managers of tools that persons and scripts use, not of controllers that
// would write their fields again. The last one is what the server
// invents for an object with unknown managers.
var oneOff = []string{"kubectl", "helm", "oc", "k9s", "before-first-apply"}

// isOneOff reports whether the manager is one of them, or a command of kubectl
// with a name of its own, such as kubectl-edit.
func isOneOff(manager string) bool {
	return slices.Contains(oneOff, manager) || strings.HasPrefix(manager, "kubectl-")
}

// uniteEntries merges the entries that count as ours into our entry of server-side
// apply. The result is nil if there are none. Entries for subresources stay as
// they are: a number of replicas set through "scale" keeps its entry. The
// second result reports whether we own more fields than before.
func uniteEntries(entries []metav1.ManagedFieldsEntry, owner string, counts func(metav1.ManagedFieldsEntry) bool) (united []metav1.ManagedFieldsEntry, more bool, err error) {
	ours, others := -1, 0
	for _, entry := range entries {
		isOurs := entry.Manager == owner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
		switch {
		case isOurs && ours < 0:
			ours = len(united)
		case !isOurs && entry.Subresource == "" && counts(entry):
			others++
			continue
		}
		united = append(united, entry)
	}
	if others == 0 || ours < 0 {
		return nil, false, nil
	}
	before, err := fieldsOf(united[ours])
	if err != nil {
		return nil, false, err
	}
	all := before
	for _, entry := range entries {
		if entry.Subresource != "" || !counts(entry) {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, false, err
		}
		all = all.Union(fields)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, false, fmt.Errorf("managed fields of %s: %w", owner, err)
	}
	united[ours].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return united, !all.Equals(before), nil
}

// migrateEntries gives the entries of versions that are not served the version of the
// object, and unites those of one manager. An entry with unreadable fields is
// dropped. The second result reports whether there were any such entries.
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
		if raw, err := known.Union(fields).ToJSON(); err == nil {
			translated[same].FieldsV1, changed = metav1.NewFieldsV1(string(raw)), true
		}
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
