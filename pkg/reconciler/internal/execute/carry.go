// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/owned"
)

// carry copies fields of the live object to the body of a PUT. Both are
// the content of objects; live is not changed.
type carry func(body, live map[string]any)

// carriers are the kinds of the server itself on which a PUT of the very manifest that an object was
// created from would be refused, or would reset fields that the server or a controller has set. Kinds
// that are not here are written without a read; a test sends each to the server twice.
var carriers = map[schema.GroupKind]carry{
	{Group: "batch", Kind: "Job"}:   carryJob,
	{Kind: "Pod"}:                   carryPod,
	{Kind: "PersistentVolumeClaim"}: carryClaim,
	{Kind: "PersistentVolume"}:      carryVolume,
	{Kind: "Node"}:                  carryNode,
	{Kind: "Secret"}:                carryToken,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               carryBundles,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           carryBundles,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   carryBundles,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: carryBundles,
}

// carrierOf returns the function that copies fields from the live object, besides the fields that
// have an owner by design; nil if there is nothing to copy.
func carrierOf(resource cluster.Resource, manifest map[string]any) carry {
	kind := resource.GVK().GroupKind()
	_, hasBundles := bundlePaths[kind]
	switch {
	case confidential.IsSecret(kind) && manifest["type"] != tokenType, hasBundles && !hasEmptyBundle(manifest):
		return nil // nothing is left to a controller
	case cluster.IsBuiltIn(kind.Group):
		return carriers[kind]
	case !resource.Has("status") && !owned.IsSet(manifest, "status"):
		// The status is part of the object like everything else, so a PUT
		// without it would delete it.
		return func(body, live map[string]any) { keepMissing(body, live, "status") }
	}
	return nil
}

// leftPaths are the fields that the manifest leaves to their owners by design.
func (e *Executor) leftPaths(ctx context.Context, resource cluster.Resource, manifest map[string]any) ([][]string, error) {
	paths := owned.Paths(resource.GVK().GroupKind(), manifest)
	if cluster.IsBuiltIn(resource.GVR.Group) || !resource.Has("scale") {
		return paths, nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err == nil && !owned.IsSet(manifest, path...) {
		paths = append(paths, path)
	}
	return paths, err
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
			body[key] = runtime.DeepCopyJSONValue(value)
		}
	}
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

// jobLabels are the labels that the server puts on a Job's pods, so that the
// Job finds them by the selector that the server makes as well.
var jobLabels = []string{
	"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
}

// carryJob carries the selector and the labels that go with it. A Job that queues suspend and
// resume stays as it is, unless the manifest sets suspend.
func carryJob(body, live map[string]any) {
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil {
		return
	}
	keepMissing(spec, liveSpec, "suspend")
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	keepMissing(spec, liveSpec, "selector")
	labels := child(child(child(spec, "template"), "metadata"), "labels")
	if labels != nil {
		keepMissing(labels, inner(liveSpec, "template", "metadata", "labels"), jobLabels...)
	}
}

// bundlePaths name the places where kinds keep the configuration of a client with a caBundle, which
// other controllers, such as cert-manager, fill in. A list is walked, its elements are identified
// by their names.
var bundlePaths = map[schema.GroupKind][]string{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               {"spec", "conversion", "webhook", "clientConfig"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {"spec"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"webhooks", "clientConfig"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"webhooks", "clientConfig"},
}

// clientConfigs returns the configurations of clients in an object, by the name
// of the list element that they are in. A kind without a path has none.
func clientConfigs(object map[string]any, path []string) map[string]map[string]any {
	if len(path) == 0 {
		return nil
	}
	if len(path) == 2 && path[0] == "webhooks" {
		configs := map[string]map[string]any{}
		webhooks, _ := object["webhooks"].([]any)
		for _, webhook := range webhooks {
			webhook, _ := webhook.(map[string]any)
			name, _ := webhook["name"].(string)
			if config := inner(webhook, "clientConfig"); config != nil {
				configs[name] = config
			}
		}
		return configs
	}
	if config := inner(object, path...); config != nil {
		return map[string]map[string]any{"": config}
	}
	return nil
}

func pathsOf(object map[string]any) []string {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return bundlePaths[schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()]
}

// isEmptyBundle reports whether the configuration leaves the caBundle to another controller: it is
// missing, empty, or a placeholder that decodes to white space.
func isEmptyBundle(config map[string]any) bool {
	if skip, _ := config["insecureSkipTLSVerify"].(bool); skip {
		return false // a caBundle would be refused
	}
	text, _ := config["caBundle"].(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.TrimSpace(string(decoded)) == ""
}

func hasEmptyBundle(manifest map[string]any) bool {
	for _, config := range clientConfigs(manifest, pathsOf(manifest)) {
		if isEmptyBundle(config) {
			return true
		}
	}
	return false
}

func carryBundles(body, live map[string]any) {
	liveConfigs := clientConfigs(live, pathsOf(live))
	for name, config := range clientConfigs(body, pathsOf(body)) {
		if !isEmptyBundle(config) {
			continue
		}
		delete(config, "caBundle")
		keepMissing(config, liveConfigs[name], "caBundle")
	}
}

// podKeys are the fields of a pod's spec that admission and the scheduler set.
// Nearly all of a pod's spec is immutable, so a PUT without them is refused.
var podKeys = []string{
	"nodeName", "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "imagePullSecrets", "overhead",
	"runtimeClassName",
}

// carryPod carries the fields that were added to the pod after its manifest was sent.
func carryPod(body, live map[string]any) {
	if annotations := child(child(body, "metadata"), "annotations"); annotations != nil {
		keepMissing(annotations, inner(live, "metadata", "annotations")) // networks keep addresses there
	}
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil || liveSpec == nil {
		return
	}
	keepMissing(spec, liveSpec, podKeys...)
	if spec["schedulingGates"] != nil {
		// Gates are removed by the controllers that have set them, and never come back.
		delete(spec, "schedulingGates")
		keepMissing(spec, liveSpec, "schedulingGates")
	}
	addMissing(spec, liveSpec, "volumes", "name")
	addMissing(spec, liveSpec, "tolerations", "key", "operator", "value", "effect")
	for _, kind := range []string{"initContainers", "containers"} {
		addMissing(spec, liveSpec, kind, "name")
		for _, container := range mapsIn(spec[kind]) {
			liveContainer := matching(mapsIn(liveSpec[kind]), container, "name")
			addMissing(container, liveContainer, "volumeMounts", "mountPath")
			keepMissing(container, liveContainer, "resources")
		}
	}
}

// carryNode carries the fields that the controllers of nodes and of their cloud have set. The
// addresses of pods and the provider ID cannot be changed any more.
func carryNode(body, live map[string]any) {
	if spec := child(body, "spec"); spec != nil {
		keepMissing(spec, inner(live, "spec"), "podCIDR", "podCIDRs", "providerID", "taints")
	}
}

// addMissing adds the elements of a list that only the live object has, in the
// places that they have there. The keys identify elements.
func addMissing(body, live map[string]any, list string, keys ...string) {
	desired := mapsIn(body[list])
	var merged []any
	for _, element := range mapsIn(live[list]) {
		if own := matching(desired, element, keys...); own != nil {
			merged = append(merged, own)
			continue
		}
		merged = append(merged, runtime.DeepCopyJSONValue(element))
	}
	for _, element := range desired {
		if matching(mapsIn(live[list]), element, keys...) == nil {
			merged = append(merged, element)
		}
	}
	if len(merged) > 0 {
		body[list] = merged
	}
}

func matching(elements []map[string]any, like map[string]any, keys ...string) map[string]any {
	at := slices.IndexFunc(elements, func(element map[string]any) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return element[key] != like[key] })
	})
	if at < 0 {
		return nil
	}
	return elements[at]
}

func mapsIn(list any) []map[string]any {
	elements, _ := list.([]any)
	all := make([]map[string]any, 0, len(elements))
	for _, element := range elements {
		if m, ok := element.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// volumeDomains are the prefixes of the annotations in which the controllers of volumes keep their
// state.
var volumeDomains = []string{"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/"}

// carryClaim carries the fields that binding and defaulting have set: a claim's spec is immutable
// but for its size, which can only grow.
func carryClaim(body, live map[string]any) {
	carryVolumeAnnotations(body, live)
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil {
		return
	}
	keepMissing(spec, liveSpec)
	keepSize(spec, liveSpec)
}

func isClaim(resource cluster.Resource) bool {
	return resource.GVR.Group == "" && resource.Kind == "PersistentVolumeClaim"
}

// keepSize keeps the size of a volume claim that has grown beyond its
// manifest: the server refuses to let it shrink.
func keepSize(spec, liveSpec map[string]any) {
	path := []string{"resources", "requests", "storage"}
	desired, _, _ := unstructured.NestedString(spec, path...)
	actual, _, _ := unstructured.NestedString(liveSpec, path...)
	if isLess(desired, actual) {
		_ = unstructured.SetNestedField(spec, actual, path...) // desired was there
	}
}

// isLess compares quantities; it is false if one of the texts is not a quantity.
func isLess(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) < 0
}

// carryVolume carries the fields that binding and defaulting have set.
func carryVolume(body, live map[string]any) {
	carryVolumeAnnotations(body, live)
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil {
		return
	}
	keepMissing(spec, liveSpec)
	// A manifest may name the claim; the server adds the claim's uid, without
	// which the volume would have to be bound again.
	claim, liveClaim := inner(spec, "claimRef"), inner(liveSpec, "claimRef")
	if claim != nil && claim["name"] == liveClaim["name"] && claim["namespace"] == liveClaim["namespace"] {
		keepMissing(claim, liveClaim)
	}
}

func carryVolumeAnnotations(body, live map[string]any) {
	liveAnnotations := inner(live, "metadata", "annotations")
	for key := range liveAnnotations {
		for _, domain := range volumeDomains {
			if annotations := child(child(body, "metadata"), "annotations"); annotations != nil && strings.HasPrefix(key, domain) {
				keepMissing(annotations, liveAnnotations, key)
			}
		}
	}
}

const tokenType = "kubernetes.io/service-account-token"

// carryToken carries the token: without it the controller would issue another
// one, and the first would not be valid any more for the clients that use it.
func carryToken(body, live map[string]any) {
	if data, liveData := child(body, "data"), inner(live, "data"); data != nil {
		keepMissing(data, liveData, "token", "ca.crt", "namespace")
	}
	if annotations := child(child(body, "metadata"), "annotations"); annotations != nil {
		keepMissing(annotations, inner(live, "metadata", "annotations"), "kubernetes.io/service-account.uid")
	}
}
