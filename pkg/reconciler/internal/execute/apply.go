// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// merge sends the manifest as a server-side apply and leaves the fields of
// other managers alone. What we wrote as a PUT under another policy becomes ours
// in the sense of server-side apply.
func (e *Executor) merge(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	return e.apply(ctx, resource, step, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == e.options.FieldOwner
	})
}

// override is merge, and takes over the fields of one-off managers.
func (e *Executor) override(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	return e.apply(ctx, resource, step, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == e.options.FieldOwner || isOneOff(entry.Manager)
	})
}

// apply sends the manifest as a server-side apply. Whether earlier entries of
// managers count as ours shows in the answer, so nothing has to be read before.
// If there are any, they are united with ours and the apply is sent again; only
// then the server removes those of their fields that the manifest lacks.
func (e *Executor) apply(ctx context.Context, resource cluster.Resource, step plan.Step, counts func(metav1.ManagedFieldsEntry) bool) (*unstructured.Unstructured, error) {
	object, metadata := body(step.Desired.Manifest)
	ignored, err := e.leftFields(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	if needsApplyCopy(resource, ignored) {
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
	united, more, err := unite(live.GetManagedFields(), e.options.FieldOwner, counts)
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
		return nil, fmt.Errorf("apply again, after taking over fields: %w", err)
	}
	return live, nil
}

func needsApplyCopy(resource cluster.Resource, ignored []string) bool {
	_, bundled := bundlePaths[resource.GVK().GroupKind()]
	return bundled || len(ignored) > 0 || isClaim(resource)
}

// migrateVersions rewrites the entries of managedFields whose version the server does
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
	entries, changed := translate(live.GetManagedFields(), resource.GVR.GroupVersion(), served)
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
		return nil, fmt.Errorf("take over fields of earlier managers: %w", err)
	}
	return live, nil
}
