// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"slices"
	"strings"
)

// maxCurated bounds the leaves of a curated tree.
const maxCurated = 15

// wish is a value that users of most charts set. It is the key of a field, below a key that
// contains a word ("" for anywhere).
type wish struct {
	above string
	keys  []string
	// kinds restricts the types; nil allows all.
	kinds []Type
}

var flag, quantity = []Type{Bool}, []Type{Integer, Number, IntOrString}

// wishes are in the order of their importance: the last ones give way if the tree is full. The
// keys of one wish are alternatives.
var wishes = []wish{
	{"image", []string{"repository", "name", "registry"}, []Type{String}},
	{"image", []string{"tag"}, []Type{String}},
	{"", []string{"replicaCount", "replicas", "count"}, quantity},
	{"", []string{"resources"}, nil},
	{"ingress", []string{"enabled"}, flag},
	{"ingress", []string{"hostname", "host", "hosts", "hostnames"}, nil},
	{"persist", []string{"enabled"}, flag},
	{"persist", []string{"size"}, nil},
	{"service", []string{"type"}, []Type{String}},
	{"", []string{"existingSecret", "existingSecretName", "secretName"}, []Type{String}},
	{"autoscal", []string{"enabled"}, flag},
	{"metrics", []string{"enabled"}, flag},
	{"", []string{"nodeSelector"}, nil},
	{"", []string{"tolerations"}, nil},
	{"", []string{"affinity"}, nil},
	{"image", []string{"pullPolicy"}, nil},
	{"persist", []string{"storageClass", "storageClassName"}, nil},
	{"service", []string{"port"}, nil},
	{"ingress", []string{"ingressClassName", "className"}, nil},
	{"ingress", []string{"tls"}, nil},
}

// asides are parts of keys of what belongs to helpers of the application, not to it.
var asides = []string{"global", "volumepermissions", "initcontainer", "sysctl", "test", "diagnostic", "exporter", "rbac", "serviceaccount", "servicemonitor", "hook", "default"}

// Curate returns a copy of the tree with the values that users of a chart set most: at most 15
// leaves of image, replicas, resources, ingress, persistence, service, existing secrets,
// autoscaling, metrics and placement. Of several candidates, the one that is nested least is
// taken, and the first one of those.
func Curate(root *Field) *Field {
	byDepth := candidatePaths(root, nil)
	slices.SortStableFunc(byDepth, func(a, b candidate) int { return len(a.keys) - len(b.keys) })
	taken := map[string]bool{}
	leaves := 0
	for _, wish := range wishes {
		chosen, ok := wish.find(byDepth)
		if !ok {
			continue
		}
		if total, _ := Leaves(chosen.field); leaves+total <= maxCurated {
			leaves += total
			taken[strings.Join(chosen.keys, ".")] = true
		}
	}
	return filter(root, "", func(path string) bool { return taken[path] })
}

// candidate is a field and the keys that lead to it.
type candidate struct {
	keys  []string
	field *Field
}

// candidatePaths returns the fields of an object, in their order.
func candidatePaths(object *Field, keys []string) []candidate {
	var found []candidate
	for _, field := range object.Fields {
		at := append(slices.Clip(keys), field.Key)
		if isAside(field.Key) {
			continue
		}
		found = append(found, candidate{at, field})
		// Below a Kubernetes type, everything belongs to it.
		if field.Type == Object && field.Core == "" {
			found = append(found, candidatePaths(field, at)...)
		}
	}
	return found
}

func isAside(key string) bool {
	lower := strings.ToLower(key)
	return slices.ContainsFunc(asides, func(word string) bool { return strings.Contains(lower, word) })
}

// find returns the candidate that fulfils a wish with the least depth.
func (w wish) find(candidates []candidate) (candidate, bool) {
	depth := 0
	var best candidate
	bestKey := len(w.keys)
	for _, c := range candidates {
		if depth > 0 && len(c.keys) > depth {
			break
		}
		if key := w.matches(c); key >= 0 && key < bestKey {
			depth, best, bestKey = len(c.keys), c, key
		}
	}
	return best, depth > 0
}

// matches returns which key of the wish a candidate has, or -1.
func (w wish) matches(c candidate) int {
	if w.kinds != nil && !slices.Contains(w.kinds, c.field.Type) {
		return -1
	}
	last := len(c.keys) - 1
	metrics := slices.ContainsFunc(c.keys[:last], func(key string) bool { return strings.Contains(strings.ToLower(key), "metrics") })
	switch {
	case w.above == "" && metrics:
		return -1
	case w.above != "" && (last == 0 || !strings.Contains(strings.ToLower(c.keys[last-1]), w.above)):
		return -1
	case w.above != "metrics" && metrics:
		return -1
	}
	return slices.Index(w.keys, c.keys[last])
}
