// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"slices"
	"strings"
)

// maxCurated bounds the leaves of a curated tree, and maxNeeded those that are not chosen by their usual names.
const (
	maxCurated = 24
	maxNeeded  = 16
)

// maxCuratedDepth bounds the keys of a path to a curated field.
const maxCuratedDepth = 4

// wish is a value that users of most charts set: a field with one of the keys, the best one first,
// below one of the parents ("" is the root, and none is anything).
type wish struct {
	parents, keys []string
	// kinds restricts the types; nil allows all.
	kinds []Type
}

var (
	inImage   = []string{"image"}
	inIngress = []string{"ingress"}
	inService = []string{"service", "expose"}
	inVolume  = []string{"persistence", "persistentVolume", "storage", "pvc"}
	inAuth    = []string{"", "auth", "admin", "credentials"}
	isText    = []Type{String}
	isSwitch  = []Type{Bool}
	isNumber  = []Type{Integer, Number, IntOrString}
)

// wishes are in the order of their importance: the last ones give way if the tree is full.
var wishes = []wish{
	{inImage, []string{"repository", "name", "registry"}, isText},
	{inImage, []string{"tag"}, isText},
	{nil, []string{"replicaCount", "replicas"}, isNumber},
	{nil, []string{"resources"}, nil},
	{inIngress, []string{"enabled"}, isSwitch},
	{inIngress, []string{"hostname", "host", "hosts", "hostnames"}, nil},
	{inVolume, []string{"enabled"}, isSwitch},
	{inVolume, []string{"size"}, isText},
	{inService, []string{"type"}, isText},
	{inAuth, []string{"existingSecret", "existingSecretName", "secretName"}, isText},
	{inAuth, []string{"password", "adminPassword", "rootPassword", "token"}, isText},
	{[]string{"autoscaling"}, []string{"enabled"}, isSwitch},
	{[]string{"metrics"}, []string{"enabled"}, isSwitch},
	{nil, []string{"nodeSelector"}, nil},
	{nil, []string{"tolerations"}, nil},
	{nil, []string{"affinity"}, nil},
	{inImage, []string{"pullPolicy"}, isText},
	{inVolume, []string{"storageClass", "storageClassName"}, isText},
	{inService, []string{"port"}, isNumber},
	{inIngress, []string{"ingressClassName", "className"}, isText},
	{inIngress, []string{"tls"}, nil},
}

// asides are parts of keys of what belongs to helpers of the application, not to it.
var asides = []string{"global", "volumepermissions", "initcontainer", "sysctl", "test", "diagnostic", "exporter", "rbac", "serviceaccount", "servicemonitor", "hook", "default"}

// mainNames are keys of the component that a chart is named for, the best one first, if none has its name.
var mainNames = []string{"main", "app", "server", "primary", "master", "controller", "operator", "web"}

// Curated returns the paths of the values that users of a chart need most, for [Select]: at most 24 leaves. First come
// those that the chart fails without, then those that its documents tell users to set, then scalars at the top
// level, addresses and passwords, then those with usual names: image, replicas, resources, ingress, persistence,
// service, autoscaling, metrics and placement, and at last those in long tables. Left are the values that are
// documented, and find no place.
func Curated(root *Field, chart string, documents Documents) (taken, left []string) {
	needs := rank(root, documents)
	ranked := needs.ranked()
	leaves := 0
	take := func(path string, field *Field, limit int) bool {
		total, _ := Leaves(field)
		if slices.ContainsFunc(taken, func(above string) bool { return strings.HasPrefix(path+".", above+".") }) {
			return true
		}
		if leaves+total > limit {
			return false
		}
		leaves += total
		taken = append(taken, path)
		return true
	}
	for _, path := range ranked {
		if needs.ranks[path] >= rankSpecific {
			take(path, needs.leaves[path], maxNeeded)
		}
	}
	for _, usual := range usualValues(root, chart) {
		take(strings.Join(usual.keys, "."), usual.field, maxCurated)
	}
	for _, path := range ranked {
		if !take(path, needs.leaves[path], maxCurated) && needs.ranks[path] > rankDocumented {
			left = append(left, path)
		}
	}
	return taken, left
}

// usualValues returns the values with usual names, in the order of their importance. Of several candidates, the
// one that is nested least is taken; of those, one of the component with the name of the chart or a usual name
// like server, and else the first one.
func usualValues(root *Field, chart string) []candidate {
	byDepth := candidatePaths(root, nil)
	slices.SortStableFunc(byDepth, func(a, b candidate) int { return len(a.keys) - len(b.keys) })
	var usual []candidate
	// Of a chart with several components, one is the main component.
	component := mainComponent(root, chart)
	for _, wish := range wishes {
		chosen, ok := wish.find(byDepth, component)
		if !ok {
			continue
		}
		usual = append(usual, chosen)
		// Replicas decide nothing: those of a database are often a component of their own.
		above := chosen.keys[:len(chosen.keys)-1]
		if component == "" && len(above) > min(1, len(wish.parents)) && !slices.Contains(wish.parents, above[0]) && !slices.Equal(wish.kinds, isNumber) {
			component = above[0]
		}
	}
	return usual
}

// mainComponent returns the key of the component that a chart is made for; empty if no name tells.
func mainComponent(root *Field, chart string) string {
	plain := func(name string) string { return strings.ToLower(strings.Join(wordsOf(name), "")) }
	for _, name := range append([]string{chart}, mainNames...) {
		for _, field := range root.Fields {
			isWorkload := slices.ContainsFunc(field.Fields, func(f *Field) bool {
				return slices.Contains([]string{"image", "resources", "replicas", "replicaCount"}, f.Key)
			})
			if isWorkload && name != "" && plain(field.Key) == plain(name) {
				return field.Key
			}
		}
	}
	return ""
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

// find returns the candidate that fulfils a wish with the least depth; of those, one of the component, and of
// those, one with the best key.
func (w wish) find(candidates []candidate, component string) (best candidate, found bool) {
	bestRank := 0
	for _, c := range candidates {
		if found && len(c.keys) > len(best.keys) {
			break
		}
		key := w.matches(c)
		if key < 0 {
			continue
		}
		rank := key
		if c.keys[0] != component {
			rank += len(w.keys)
		}
		if !found || rank < bestRank {
			best, bestRank, found = c, rank, true
		}
	}
	return best, found
}

// matches returns which key of the wish a candidate has, or -1.
func (w wish) matches(c candidate) int {
	last := len(c.keys) - 1
	parent := ""
	if last > 0 {
		parent = c.keys[last-1]
	}
	switch {
	case len(c.keys) > maxCuratedDepth, w.kinds != nil && !slices.Contains(w.kinds, c.field.Type):
		return -1
	case w.parents != nil && !slices.ContainsFunc(w.parents, func(p string) bool { return p == parent || slices.Contains(c.keys[:last], p) }):
		return -1
	case parent != "metrics" && slices.Contains(c.keys[:last], "metrics"), parent == "metrics" && c.keys[last] != "enabled":
		return -1
	}
	return slices.Index(w.keys, c.keys[last])
}
