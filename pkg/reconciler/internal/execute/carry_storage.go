// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// volumeDomains are the prefixes of the annotations by which the controllers of
// volumes remember what they did.
var volumeDomains = []string{"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/"}

// carryClaim carries what binding and defaulting have set: a claim's spec is
// immutable but for its size, which can only grow.
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

// keepSize keeps the size of a claim that somebody has let grow beyond its
// manifest: the server refuses to let it shrink.
func keepSize(spec, liveSpec map[string]any) {
	path := []string{"resources", "requests", "storage"}
	wanted, _, _ := unstructured.NestedString(spec, path...)
	actual, _, _ := unstructured.NestedString(liveSpec, path...)
	if isLess(wanted, actual) {
		_ = unstructured.SetNestedField(spec, actual, path...) // wanted was there
	}
}

// isLess compares quantities; what is none is not less.
func isLess(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) < 0
}

// carryVolume carries what binding and defaulting have set.
func carryVolume(body, live map[string]any) {
	carryVolumeAnnotations(body, live)
	spec, liveSpec := child(body, "spec"), inner(live, "spec")
	if spec == nil {
		return
	}
	keepMissing(spec, liveSpec)
	// A manifest may name the claim; the server adds the claim's uid, without
	// which the volume would have to be bound anew.
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
