// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// maxFields is how many fields of one object are told, maxPath how many bytes of
	// the path of each.
	maxFields = 4
	maxPath   = 120
)

// DriftOf tells at which paths of the manifest the live object differs from it,
// and who did that last, as far as the managed fields tell. No value is part of the answer.
//
// A field that we own is as we wrote it, however the server spells it; whoever
// changes a field takes it from us. Who removes one leaves no trace.
func DriftOf(live *unstructured.Unstructured, desired *plan.Desired, fieldOwner string) *plan.Drift {
	content, manifest := withoutScale(live, desired.Manifest), desired.Manifest.Object
	s := &search{ignored: desired.Policies.IgnoreFields}
	for _, entry := range managed(live) {
		if entry, ok := entry.(map[string]any); ok {
			s.entries = append(s.entries, entryOf(entry, fieldOwner))
		}
	}
	nodes := make([]node, len(s.entries))
	for i, entry := range s.entries {
		nodes[i] = node{entry: i, fields: entry.fields}
	}
	for _, key := range slices.Sorted(maps.Keys(manifest)) {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			s.metadata(content, manifest, nodes)
		default:
			s.field(place{}, key, content, manifest, nodes)
		}
	}
	return s.drift()
}

// metadata looks at what manifests set of it, besides what identifies the object.
func (s *search) metadata(content, manifest map[string]any, nodes []node) {
	wanted, _ := manifest["metadata"].(map[string]any)
	live, _ := content["metadata"].(map[string]any)
	for _, key := range []string{"annotations", "labels", "ownerReferences"} {
		s.field(place{path: "metadata", pointer: "/metadata"}, key, live, wanted, below(nodes, "f:metadata"))
	}
	finalizers, _ := wanted["finalizers"].([]any)
	there, _ := live["finalizers"].([]any)
	for _, finalizer := range finalizers {
		if !slices.Contains(there, finalizer) && !slices.Contains(s.ignored, "/metadata/finalizers") {
			s.found("metadata.finalizers", nil)
			return
		}
	}
}

// entry is one entry of the managed fields.
type entry struct {
	manager string
	at      time.Time
	ours    bool
	fields  map[string]any
}

func entryOf(raw map[string]any, fieldOwner string) entry {
	var e entry
	e.manager, _ = raw["manager"].(string)
	subresource, _ := raw["subresource"].(string)
	e.ours = e.manager == fieldOwner && subresource == ""
	e.fields, _ = raw["fieldsV1"].(map[string]any)
	if text, ok := raw["time"].(string); ok {
		e.at, _ = time.Parse(time.RFC3339, text)
	}
	return e
}

// search collects where an object differs from its manifest.
type search struct {
	entries []entry
	ignored []string
	result  plan.Drift
}

// place is where in the manifest the search is.
type place struct{ path, pointer string }

// plain are keys that need no brackets in a path.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (p place) key(key string) place {
	pointer := p.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	switch {
	case !plain.MatchString(key):
		return place{p.path + "[" + key + "]", pointer}
	case p.path == "":
		return place{key, pointer}
	default:
		return place{p.path + "." + key, pointer}
	}
}

// found notes a field, unless we own it: then the server has changed it when we wrote it.
func (s *search) found(path string, nodes []node) {
	for _, n := range nodes {
		if s.entries[n.entry].ours {
			return
		}
	}
	if len(s.result.Fields) >= maxFields {
		s.result.More++
	} else {
		s.result.Fields = append(s.result.Fields, strings.ToValidUTF8(path[:min(len(path), maxPath)], ""))
	}
	for _, n := range nodes {
		if e := s.entries[n.entry]; s.result.Manager == "" || e.at.After(s.result.At) {
			s.result.Manager, s.result.At = e.manager, e.at
		}
	}
}

func (s *search) drift() *plan.Drift {
	s.result.Manager = strings.ToValidUTF8(s.result.Manager[:min(len(s.result.Manager), maxPath)], "")
	return &s.result
}
