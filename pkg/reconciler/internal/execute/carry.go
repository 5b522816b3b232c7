// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// carry takes fields of the live object over into the body of a PUT. Both are
// the content of objects; live is not changed.
type carry func(body, live map[string]any)

// carrier is a kind on which a PUT of the very manifest that it was created
// from would be refused, or would reset what the server or a controller has set.
type carrier struct {
	// needed tells, from the manifest alone, whether the object must be read.
	// Nil means always.
	needed func(manifest map[string]any) bool
	carry  carry
}

// carriers are the kinds of the server itself. Kinds that are not here are
// written without a read; a test sends each to the server twice.
var carriers = map[schema.GroupKind]carrier{
	{Group: "batch", Kind: "Job"}:        {carry: carryJob},
	{Kind: "Pod"}:                        {carry: carryPod},
	{Kind: "PersistentVolumeClaim"}:      {carry: carryClaim},
	{Kind: "PersistentVolume"}:           {carry: carryVolume},
	{Kind: "Node"}:                       {carry: carryNode},
	{Kind: "ServiceAccount"}:             {needed: lacks("secrets", "imagePullSecrets"), carry: carryKeys("secrets", "imagePullSecrets")},
	{Kind: "Secret"}:                     {needed: isToken, carry: carryToken},
	{Group: "apps", Kind: "Deployment"}:  {carry: carryDeployment},
	{Group: "apps", Kind: "StatefulSet"}: scalable,
	{Group: "apps", Kind: "ReplicaSet"}:  scalable,
	{Kind: "ReplicationController"}:      scalable,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: {
		needed: has("aggregationRule"), carry: carryKeys("rules"),
	},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               bundled,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           bundled,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   bundled,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: bundled,
}

var (
	scalable = carrier{
		needed: func(manifest map[string]any) bool { return !found(manifest, "spec", "replicas") },
		carry:  carryPath("spec", "replicas"),
	}
	bundled = carrier{needed: hasEmptyBundle, carry: carryBundles}
)

// carryDeployment carries, besides the replicas, the number of the revision: its
// controller would have to put it back after every write.
func carryDeployment(body, live map[string]any) {
	carryPath("spec", "replicas")(body, live)
	if annotations := child(child(body, "metadata"), "annotations"); annotations != nil {
		keepMissing(annotations, inner(live, "metadata", "annotations"), "deployment.kubernetes.io/revision")
	}
}

// carriersOf returns what has to be taken over from the live object; if there
// is nothing, the object need not be read.
func (e *Executor) carriersOf(ctx context.Context, resource cluster.Resource, manifest map[string]any) ([]carry, error) {
	if cluster.IsBuiltIn(resource.GVR.Group) {
		known, listed := carriers[resource.GVK().GroupKind()]
		if !listed || known.needed != nil && !known.needed(manifest) {
			return nil, nil
		}
		return []carry{known.carry}, nil
	}
	var needed []carry
	if resource.Has("scale") {
		path, err := e.replicasPath(ctx, resource)
		if err != nil {
			return nil, err
		}
		if !found(manifest, path...) {
			needed = append(needed, carryPath(path...))
		}
	}
	if !resource.Has("status") && !found(manifest, "status") {
		// The status is part of the object like everything else, so a PUT
		// without it would delete it.
		needed = append(needed, carryKeys("status"))
	}
	return needed, nil
}

func found(object map[string]any, path ...string) bool {
	value, ok, err := unstructured.NestedFieldNoCopy(object, path...)
	return ok && err == nil && value != nil
}

// lacks is a question about a manifest: is any of the fields missing?
func lacks(keys ...string) func(map[string]any) bool {
	return func(manifest map[string]any) bool {
		for _, key := range keys {
			if !found(manifest, key) {
				return true
			}
		}
		return false
	}
}

func has(key string) func(map[string]any) bool {
	return func(manifest map[string]any) bool { return found(manifest, key) }
}

// carryKeys carries fields at the top that the manifest does not set.
func carryKeys(keys ...string) carry {
	return func(body, live map[string]any) { keepMissing(body, live, keys...) }
}

// carryPath carries the field with the path if the manifest does not set it.
func carryPath(path ...string) carry {
	return func(body, live map[string]any) {
		value, ok, err := unstructured.NestedFieldCopy(live, path...)
		if ok && err == nil && !found(body, path...) {
			// It fails only if the manifest has something else than a map on
			// the way, which the server will complain about.
			_ = unstructured.SetNestedField(body, value, path...)
		}
	}
}

// keepMissing copies the keys, or all if none are given, that body lacks.
func keepMissing(body, live map[string]any, keys ...string) {
	if len(keys) == 0 {
		for key := range live {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if value, ok := live[key]; ok && body[key] == nil {
			body[key] = deepCopy(value)
		}
	}
}

// deepCopy copies a JSON value.
func deepCopy(value any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"": value}}).DeepCopy().Object[""]
}

// child returns the map at key, making it if it is missing. It returns nil if
// there is something else, about which the server will complain.
func child(object map[string]any, key string) map[string]any {
	if object == nil {
		return nil
	}
	if object[key] == nil {
		object[key] = map[string]any{}
	}
	inner, _ := object[key].(map[string]any)
	return inner
}

// inner returns the map at the path for reading; nil if there is none.
func inner(object map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	m, _ := value.(map[string]any)
	return m
}
