// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import "slices"

// podKeys are the fields of a pod's spec that admission and the scheduler set.
// Nearly all of a pod's spec is immutable, so a PUT without them is refused.
var podKeys = []string{
	"nodeName", "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "imagePullSecrets", "overhead",
	"runtimeClassName",
}

// carryPod carries what was added to the pod after its manifest was sent.
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
		// Gates are removed by those who wait, and never come back.
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

// carryNode carries what the controllers of nodes and of their cloud have set.
// Addresses of pods and the identity in the cloud cannot be changed any more.
func carryNode(body, live map[string]any) {
	if spec := child(body, "spec"); spec != nil {
		keepMissing(spec, inner(live, "spec"), "podCIDR", "podCIDRs", "providerID", "taints")
	}
}

// addMissing adds the elements of a list that only the live object has, in the
// places that they have there. The keys tell elements apart.
func addMissing(body, live map[string]any, list string, keys ...string) {
	wanted := mapsIn(body[list])
	var merged []any
	for _, element := range mapsIn(live[list]) {
		if own := matching(wanted, element, keys...); own != nil {
			merged = append(merged, own)
			continue
		}
		merged = append(merged, deepCopy(element))
	}
	for _, element := range wanted {
		if matching(mapsIn(live[list]), element, keys...) == nil {
			merged = append(merged, element)
		}
	}
	if len(merged) > 0 {
		body[list] = merged
	}
}

// matching returns the element that has the same values at the keys.
func matching(elements []map[string]any, like map[string]any, keys ...string) map[string]any {
	at := slices.IndexFunc(elements, func(element map[string]any) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return element[key] != like[key] })
	})
	if at < 0 {
		return nil
	}
	return elements[at]
}

// mapsIn returns the elements of a list that are maps.
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
