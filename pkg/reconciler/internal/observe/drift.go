// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// maxFields is how many fields of one object are listed, maxPath how many bytes of
	// the path of each.
	maxFields = 4
	maxPath   = 120
)

// DriftOf returns at which paths of the manifest the live object differs from it, and the field
// manager that was last, as far as the managed fields show it. The result contains no value.
//
// A field that we own has the value that we wrote, however the server spells it: a client that
// changes a field becomes its owner. A client that removes a field leaves no trace.
func DriftOf(live *unstructured.Unstructured, desired *plan.Desired, fieldOwner string) *report.Drift {
	return searchDrift(live, desired, fieldOwner).drift()
}

// Differences returns the paths of the manifest at which the live object has another value, whoever has set it.
func Differences(live *unstructured.Unstructured, desired *plan.Desired) []string {
	return searchDrift(live, desired, "").result.Fields
}

func searchDrift(live *unstructured.Unstructured, desired *plan.Desired, fieldOwner string) *driftSearch {
	content, manifest := withoutScale(live, desired.Manifest), desired.Manifest.Object
	s := &driftSearch{fieldOwner: fieldOwner, ignored: desired.Policies.IgnoreFields}
	var nodes []node
	for e := range managed(live) {
		nodes = append(nodes, node{entry: &e, fields: e.fields})
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
	return s
}

// metadata compares the metadata that manifests set, besides the identity of the object.
func (s *driftSearch) metadata(content, manifest map[string]any, nodes []node) {
	desired, _ := manifest["metadata"].(map[string]any)
	live, _ := content["metadata"].(map[string]any)
	for _, key := range []string{"annotations", "labels", "ownerReferences"} {
		s.field(place{path: "metadata", pointer: "/metadata"}, key, live, desired, below(nodes, "f:metadata"))
	}
	finalizers, _ := desired["finalizers"].([]any)
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
	manager, subresource, time string
	fields                     map[string]any
}

// managed returns the entries of the managed fields of an object.
func managed(live *unstructured.Unstructured) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		list, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields")
		elements, _ := list.([]any)
		for _, element := range elements {
			raw, _ := element.(map[string]any)
			var e entry
			e.manager, _ = raw["manager"].(string)
			e.subresource, _ = raw["subresource"].(string)
			e.time, _ = raw["time"].(string)
			e.fields, _ = raw["fieldsV1"].(map[string]any)
			if !yield(e) {
				return
			}
		}
	}
}

// at returns when the manager has set its fields last; zero if that is not known.
func (e entry) at() time.Time {
	at, _ := time.Parse(time.RFC3339, e.time)
	return at
}

// driftSearch collects where an object differs from its manifest.
type driftSearch struct {
	fieldOwner string
	ignored    []string
	result     report.Drift
	// gone are the paths of empty maps that the object does not have. The server may have dropped
	// them itself, so they count only if nothing else differs.
	gone []string
}

// place is where in the manifest the search is. The last key is empty in an element of a list.
type place struct{ path, pointer, last string }

// plain are keys that need no brackets in a path.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (p place) key(key string) place {
	pointer := p.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	switch {
	case !plain.MatchString(key):
		return place{p.path + "[" + key + "]", pointer, key}
	case p.path == "":
		return place{key, pointer, key}
	default:
		return place{p.path + "." + key, pointer, key}
	}
}

// found notes a field, unless we own it: then the server has changed it when we wrote it.
func (s *driftSearch) found(path string, nodes []node) {
	for _, n := range nodes {
		if n.entry.manager == s.fieldOwner && n.entry.subresource == "" {
			return
		}
	}
	if len(s.result.Fields) >= maxFields {
		s.result.More++
	} else {
		s.result.Fields = append(s.result.Fields, strings.ToValidUTF8(path[:min(len(path), maxPath)], ""))
	}
	for _, n := range nodes {
		if at := n.entry.at(); s.result.Manager == "" || at.After(s.result.At) {
			s.result.Manager, s.result.At = n.entry.manager, at
		}
	}
}

func (s *driftSearch) drift() *report.Drift {
	if len(s.result.Fields) == 0 {
		for _, path := range s.gone {
			s.found(path, nil)
		}
	}
	s.result.Manager = strings.ToValidUTF8(s.result.Manager[:min(len(s.result.Manager), maxPath)], "")
	return &s.result
}

// node is an entry of the managed fields at one place: the fields below it. If there are none, the
// entry owns everything there, or nothing but the place itself: it is the former unless another
// entry owns a field below.
type node struct {
	entry  *entry
	fields map[string]any
}

// below follows the entries to a field.
func below(nodes []node, name string) []node {
	return follow(nodes, func(step string) bool { return step == name })
}

// element follows the entries to an element of a list. Where elements have no keys
// the list is owned as a whole.
func element(nodes []node, live map[string]any) []node {
	return follow(nodes, func(step string) bool {
		keys, ok := strings.CutPrefix(step, "k:")
		return ok && matches(keys, live)
	})
}

func follow(nodes []node, leads func(step string) bool) []node {
	var owners, whole []node
	for _, n := range nodes {
		if len(n.fields) == 0 {
			whole = append(whole, n)
		}
		for step, value := range n.fields {
			if leads(step) {
				fields, _ := value.(map[string]any)
				owners = append(owners, node{entry: n.entry, fields: fields})
			}
		}
	}
	if len(owners) == 0 {
		return whole
	}
	return owners
}

func matches(keys string, live map[string]any) bool {
	var desired map[string]any
	if err := json.Unmarshal([]byte(keys), &desired); err != nil || len(desired) == 0 {
		return false
	}
	for key, value := range desired {
		if !same(live[key], value) {
			return false
		}
	}
	return true
}

// field compares one field of a map, if the manifest sets it.
func (s *driftSearch) field(at place, key string, live, desired map[string]any, nodes []node) {
	if value, there := desired[key]; there && value != nil {
		s.compare(at.key(key), live[key], value, below(nodes, "f:"+key))
	}
}

// compare looks for differences at and below a place. Missing and empty are the same.
func (s *driftSearch) compare(at place, live, desired any, nodes []node) {
	switch {
	case slices.Contains(s.ignored, at.pointer):
		return
	case digest.IsZero(desired) && digest.IsZero(live):
		if _, isMap := desired.(map[string]any); isMap && live == nil && digest.ChoosesByPresence(at.last) {
			s.gone = append(s.gone, at.path)
		}
		return
	case live == nil:
		s.found(at.path, nil) // an absent field has no owner
		return
	}
	switch desired := desired.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		if !ok || digest.IsZero(desired) && digest.SelectsAll(at.last) {
			s.found(at.path, nodes)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(desired)) {
			s.field(at, key, fields, desired, nodes)
		}
	case []any:
		s.list(at, live, desired, nodes)
	default:
		if !same(live, desired) {
			s.found(at.path, nodes)
		}
	}
}

// list compares elements that have names with their counterparts, and all other elements one by
// one. Elements with the same name, such as mounts of one volume, have the same order.
func (s *driftSearch) list(at place, live any, desired []any, nodes []node) {
	elements, _ := live.([]any)
	named := len(desired) > 0 && !slices.ContainsFunc(desired, func(e any) bool { return nameOf(e) == "" })
	if !named && len(elements) != len(desired) {
		s.found(at.path, nodes)
		return
	}
	byName := map[string][]any{}
	if named {
		for _, element := range elements {
			byName[nameOf(element)] = append(byName[nameOf(element)], element)
		}
	}
	for i, element := range desired {
		inner := place{path: at.path + "[" + strconv.Itoa(i) + "]", pointer: at.pointer + "/" + strconv.Itoa(i)}
		var there any
		if named {
			name := nameOf(element)
			inner.path = at.path + "[name=" + name + "]"
			if counterparts := byName[name]; len(counterparts) > 0 {
				there, byName[name] = counterparts[0], counterparts[1:]
			}
		} else {
			there = elements[i]
		}
		s.compare(inner, there, element, ownersOf(nodes, there))
	}
}

func ownersOf(nodes []node, live any) []node {
	if fields, ok := live.(map[string]any); ok {
		return element(nodes, fields)
	}
	return nodes // of a list of values
}

// nameOf is the name of an element; names are no secrets.
func nameOf(element any) string {
	fields, _ := element.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// same reports whether two values are the same, however they are spelled.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) || digest.IsZero(a) && digest.IsZero(b) {
		return true
	}
	x, okX := quantity(a)
	y, okY := quantity(b)
	return okX && okY && x.Cmp(y) == 0
}

// quantity reads numbers and texts such as "500m".
func quantity(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return resource.Quantity{}, false
	}
	const long = 40 // no quantity is longer, and only short ones are cheap
	if text == "" || len(text) > long {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
