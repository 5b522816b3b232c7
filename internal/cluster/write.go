// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Create creates an object that must not exist and returns it as the server
// keeps it.
func (o *Objects) Create(ctx context.Context, r Resource, object *unstructured.Unstructured, fieldManager string) (*unstructured.Unstructured, error) {
	body, err := encode(object.Object)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, objectID{resource: r, namespace: object.GetNamespace(), name: object.GetName()}, call{
		verb: http.MethodPost, params: writeParams(fieldManager), contentType: runtime.ContentTypeJSON, body: body,
	})
}

// Try is Create up to the point where the object would be stored: it finds out whether validation
// and admission accept it.
func (o *Objects) Try(ctx context.Context, r Resource, object *unstructured.Unstructured, fieldManager string) error {
	_, err := o.DryRun(DryRun{}).Create(ctx, r, object, fieldManager)
	return err
}

// Update replaces an object and returns it as the server keeps it. The uid and
// the resourceVersion of the object, where they are set, are preconditions.
func (o *Objects) Update(ctx context.Context, r Resource, object *unstructured.Unstructured, fieldManager string) (*unstructured.Unstructured, error) {
	body, err := encode(object.Object)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, objectID{r, object.GetNamespace(), object.GetName(), object.GetUID()}, call{
		verb: http.MethodPut, params: writeParams(fieldManager), contentType: runtime.ContentTypeJSON, body: body,
	})
}

// Apply sends an object as a forced server-side apply, which acquires the fields of other managers,
// and returns it as the server keeps it. The uid and the resourceVersion of the object, where they
// are set, are preconditions; the resourceVersion "1" demands that the object does not exist.
func (o *Objects) Apply(ctx context.Context, r Resource, object *unstructured.Unstructured, fieldManager string) (*unstructured.Unstructured, error) {
	body, err := encode(object.Object)
	if err != nil {
		return nil, err
	}
	params := writeParams(fieldManager)
	params["force"] = "true"
	return o.write(ctx, objectID{r, object.GetNamespace(), object.GetName(), object.GetUID()}, call{
		verb: http.MethodPatch, params: params, contentType: string(types.ApplyYAMLPatchType), body: body,
	})
}

// Patch sends a patch and returns the object as the server keeps it.
func (o *Objects) Patch(ctx context.Context, r Resource, namespace, name string, patchType types.PatchType, patch []byte, fieldManager string) (*unstructured.Unstructured, error) {
	return o.write(ctx, objectID{resource: r, namespace: namespace, name: name}, call{
		verb: http.MethodPatch, params: writeParams(fieldManager), contentType: string(patchType), body: patch,
	})
}

func (o *Objects) write(ctx context.Context, id objectID, c call) (*unstructured.Unstructured, error) {
	if err := named(id.resource, id.name); err != nil {
		return nil, err
	}
	if err := o.dryRun.beforeWrite(); err != nil {
		return nil, err
	}
	c.resource, c.namespace, c.name, c.params = id.resource, id.namespace, id.name, o.dryRun.params(c.params)
	answer, err := o.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return o.dryRun.answered(decodeObject(answer, id))
}

func writeParams(fieldManager string) map[string]string {
	params := map[string]string{"fieldValidation": metav1.FieldValidationWarn}
	if fieldManager != "" {
		params["fieldManager"] = fieldManager
	}
	return params
}

// Delete deletes an object, and its dependents according to the propagation. With gone, the server
// answered that the object does not exist any more. Otherwise it still exists, and live is its last
// state, or nil if the answer lacks it. The server refuses the deletion with a conflict if the
// object has another uid or, where it is given, another resourceVersion.
func (o *Objects) Delete(ctx context.Context, r Resource, namespace, name string, uid types.UID, resourceVersion string, propagation metav1.DeletionPropagation) (gone bool, live *unstructured.Unstructured, err error) {
	if err := named(r, name); err != nil {
		return false, nil, err
	}
	if uid == "" {
		return false, nil, fmt.Errorf("a %s is deleted only by its uid, and none is given", r.Kind)
	}
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
	}
	if resourceVersion != "" {
		options.Preconditions.ResourceVersion = &resourceVersion
	}
	if err := o.dryRun.beforeWrite(); err != nil {
		return false, nil, err
	}
	if o.dryRun != nil {
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := encode(options)
	if err != nil {
		return false, nil, err
	}
	answer, err := o.send(ctx, call{
		verb: http.MethodDelete, resource: r, namespace: namespace, name: name,
		contentType: runtime.ContentTypeJSON, body: body,
	})
	if err != nil {
		return false, nil, err
	}
	return readDeletion(answer, objectID{r, namespace, name, uid})
}

// readDeletion reads the answer to a DELETE. The server answers with a Status
// if the object is gone, and with the object if it has to wait for finalizers
// or a grace period. For some kinds (Pod, PersistentVolumeClaim, Service,
// ServiceAccount ...) it answers with the object in either case; then one
// without a deletion timestamp was removed at once, and so was a pod that
// has nothing to wait for.
func readDeletion(answer []byte, id objectID) (gone bool, live *unstructured.Unstructured, err error) {
	var status metav1.Status
	if err := utiljson.Unmarshal(answer, &status); err == nil && status.Kind == "Status" && status.APIVersion == "v1" {
		err := confirms(status, id)
		return err == nil && status.Status == metav1.StatusSuccess, nil, err
	}
	object, err := decodeObject(answer, id)
	if err != nil {
		return false, nil, err
	}
	if object.GetDeletionTimestamp() != nil && !isRemovedPod(id.resource, object) {
		return false, object, nil
	}
	// Only the server's own types are known to answer like this. The answer of an aggregated server
	// may mean anything.
	return IsBuiltIn(id.resource.GVR.Group), nil, nil
}

func isRemovedPod(r Resource, object *unstructured.Unstructured) bool {
	if r.Kind != "Pod" || r.GVR.Group != "" || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}
