// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSteps bounds the work for references and allOf of one chart.
	maxSteps = 100_000
	// maxRepeats bounds how often a reference occurs on the path to a value.
	maxRepeats = 2
	// coreKey has the Kubernetes type that a reference names.
	coreKey = "$core"
)

// fragment is a JSON schema, or a part of one. What a comment says is one, too.
type fragment map[string]any

// parseSchema parses values.schema.json.
func parseSchema(text []byte) (fragment, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil, nil
	}
	value, err := decodeJSON(text)
	if err != nil {
		return nil, fmt.Errorf("values.schema.json is not valid JSON: %w", err)
	}
	switch v := value.(type) {
	case map[string]any:
		return v, nil
	case bool:
		return nil, nil
	default:
		return nil, fmt.Errorf("values.schema.json is %s; it has to be an object", describe(value))
	}
}

// overlay returns both fragments in one. Where both have a keyword, the upper one wins, except that
// the properties and the required keys of both count.
func overlay(upper, lower fragment) fragment {
	if len(upper) == 0 {
		return lower
	}
	united := maps.Clone(lower)
	if united == nil {
		united = fragment{}
	}
	for keyword, value := range upper {
		united[keyword] = value
	}
	if above, below := fragments(upper["properties"]), fragments(lower["properties"]); above != nil && below != nil {
		properties := map[string]any{}
		for key, property := range below {
			properties[key] = map[string]any(property)
		}
		for key, property := range above {
			properties[key] = map[string]any(overlay(property, below[key]))
		}
		united["properties"] = properties
	}
	if above, below := list(upper["required"]), list(lower["required"]); above != nil && below != nil {
		united["required"] = slices.Concat(above, below)
	}
	return united
}

// fragments returns the schemas of an object of schemas.
func fragments(value any) map[string]fragment {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	properties := map[string]fragment{}
	for key, value := range object {
		switch property := value.(type) {
		case map[string]any:
			properties[key] = property
		case bool:
			// A property that is forbidden is none.
			if property {
				properties[key] = fragment{}
			}
		}
	}
	return properties
}

func list(value any) []any          { v, _ := value.([]any); return v }
func text(value any) string         { v, _ := value.(string); return v }
func subschema(value any) fragment  { v, _ := value.(map[string]any); return v }
func has(f fragment, k string) bool { _, ok := f[k]; return ok }

// resolve replaces the references and allOf of a fragment by what they say. Nothing is loaded: a
// reference leads into the schema, or names a Kubernetes type, or is ignored with a note.
func (l *learner) resolve(p *place, f fragment) fragment {
	for has(f, "$ref") || has(f, "allOf") {
		if l.steps++; l.steps > maxSteps {
			return nil
		}
		f = maps.Clone(f)
		if parts, ok := f["allOf"]; ok {
			delete(f, "allOf")
			for _, part := range list(parts) {
				f = overlay(f, l.resolve(p, subschema(part)))
			}
			continue
		}
		reference := text(f["$ref"])
		delete(f, "$ref")
		if core, ok := coreByReference(reference); ok {
			f[coreKey] = core
			continue
		}
		target, ok := l.lookUp(reference)
		repeats := 0
		for _, ref := range p.refs {
			if ref == reference {
				repeats++
			}
		}
		switch {
		case !ok:
			l.note(*p, "refers to the schema %q, which is not in the chart's schema; the reference is ignored.", reference)
		case repeats >= maxRepeats:
			l.note(*p, "has a schema that refers to itself; it ends here.")
		default:
			p.refs = append(slices.Clip(p.refs), reference)
			f = overlay(f, target)
		}
	}
	return f
}

// lookUp returns the part of the schema that a JSON pointer ("#/$defs/image") names.
func (l *learner) lookUp(reference string) (fragment, bool) {
	pointer, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	var at any = map[string]any(l.schema)
	for i, token := range strings.Split(pointer, "/") {
		if i == 0 {
			if token != "" {
				return nil, false
			}
			continue
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := at.(type) {
		case map[string]any:
			at = v[token]
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(v) {
				return nil, false
			}
			at = v[index]
		default:
			return nil, false
		}
	}
	found, ok := at.(map[string]any)
	return found, ok
}

// reading is what a fragment says about one value.
type reading struct {
	// kind is its type, or "" if the fragment does not say.
	kind Type
	// weak reports that the details are missing: an object without keys or a list without elements.
	weak       bool
	core       string
	origin     Origin
	doc        string
	properties map[string]fragment
	elem       fragment
	// required reports that the fragment itself says that the value is required.
	required bool
	source   fragment
}

// allows reports whether a type of another source agrees with the reading.
func (r reading) allows(kind Type) bool {
	switch r.kind {
	case "", Any, kind:
		return true
	case Object, Map, Core:
		return kind == Object || kind == Map || kind == Core
	default:
		return false
	}
}

// requires reports whether a key is required.
func (r reading) requires(key string) bool {
	return slices.Contains(list(r.source["required"]), any(key))
}

// read resolves a fragment and returns what it says.
func (l *learner) read(p *place, f *fragment, origin Origin) reading {
	*f = l.resolve(p, *f)
	r := l.interpret(p, *f)
	r.origin = origin
	r.doc = sentences(firstOf(text(r.source["description"]), text(r.source["title"])))
	r.required = r.source["required"] == true
	return r
}

// interpret returns what a fragment without references says.
func (l *learner) interpret(p *place, f fragment) reading {
	r := reading{source: f, properties: fragments(f["properties"])}
	types := typeNames(f)
	if len(types) == 0 && !has(f, coreKey) {
		if alternatives := l.alternatives(p, f); len(alternatives) > 0 {
			return l.choose(p, f, alternatives)
		}
	}
	switch {
	case isCore(text(f[coreKey])):
		r.kind, r.core = Core, text(f[coreKey])
	case text(f[coreKey]) == string(IntOrString), f["x-kubernetes-int-or-string"] == true:
		r.kind = IntOrString
	default:
		var ok bool
		if r.kind, ok = unionOf(types); !ok {
			l.note(*p, "accepts any value: it has one of several types.")
		}
	}
	switch r.kind {
	case Object:
		l.interpretObject(p, &r)
	case List:
		r.elem = subschema(f["items"])
		elem := l.preview(p, r.elem)
		r.weak = elem.kind == "" || elem.weak
	}
	return r
}

func (l *learner) interpretObject(p *place, r *reading) {
	elem := subschema(r.source["additionalProperties"])
	if patterns := fragments(r.source["patternProperties"]); len(elem) == 0 && len(patterns) == 1 {
		for _, pattern := range patterns {
			elem = pattern
		}
	}
	switch {
	case len(r.properties) > 0:
		if len(elem) > 0 {
			l.note(*p, "has only the keys that are described, although it accepts others.")
		}
	case len(elem) > 0:
		r.kind, r.elem = Map, elem
	default:
		r.weak = true
	}
}

// preview interprets a fragment without notes and without an effect on the references of the place.
func (l *learner) preview(p *place, f fragment) reading {
	at, notes := *p, len(l.notes)
	r := l.interpret(&at, l.resolve(&at, f))
	l.notes = l.notes[:notes]
	return r
}

// alternatives returns what anyOf and oneOf say, without those that say nothing about the type.
func (l *learner) alternatives(p *place, f fragment) []reading {
	var said []reading
	for _, part := range slices.Concat(list(f["anyOf"]), list(f["oneOf"])) {
		if l.steps++; l.steps > maxSteps {
			return nil
		}
		if r := l.preview(p, subschema(part)); r.kind != "" {
			said = append(said, r)
		}
	}
	return said
}

// choose returns what several alternatives have in common.
func (l *learner) choose(p *place, f fragment, alternatives []reading) reading {
	if len(alternatives) == 1 {
		r := alternatives[0]
		r.source = overlay(f, r.source)
		return r
	}
	r := reading{source: f}
	types := map[string]bool{}
	for _, alternative := range alternatives {
		switch alternative.kind {
		case IntOrString:
			types["integer"], types["string"] = true, true
		case Object, Map, Core:
			types["object"] = true
		case List:
			types["array"] = true
		case Any:
			r.kind = Any
			return r
		default:
			types[jsonTypes[alternative.kind]] = true
		}
	}
	var ok bool
	if r.kind, ok = unionOf(slices.Sorted(maps.Keys(types))); !ok {
		l.note(*p, "accepts any value: it has one of several types.")
	}
	// Which of the objects or lists it is, is open.
	r.weak = r.kind == Object || r.kind == List
	return r
}

var jsonTypes = map[Type]string{Bool: "boolean", Integer: "integer", Number: "number", String: "string"}

// typeNames returns the JSON types that a fragment allows, but for null.
func typeNames(f fragment) []string {
	var names []string
	switch v := f["type"].(type) {
	case string:
		names = []string{v}
	case []any:
		for _, name := range v {
			names = append(names, text(name))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "null" })
	if len(names) > 0 {
		return names
	}
	if constants := constantsOf(f); len(constants) > 0 {
		for _, constant := range constants {
			for kind, name := range jsonTypes {
				if kind != Number && agrees(kind, constant) || kind == Number && isFraction(constant) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	switch {
	case has(f, "properties"), subschema(f["additionalProperties"]) != nil, has(f, "patternProperties"):
		return []string{"object"}
	case has(f, "items"):
		return []string{"array"}
	}
	return nil
}

func isFraction(value any) bool { _, ok := value.(float64); return ok }

// unionOf returns the type that covers JSON types, "" for none, and false if only Any does.
func unionOf(names []string) (Type, bool) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		return "", true
	}
	if len(names) == 1 {
		switch names[0] {
		case "object":
			return Object, true
		case "array":
			return List, true
		}
		for kind, name := range jsonTypes {
			if name == names[0] {
				return kind, true
			}
		}
		return "", true
	}
	switch strings.Join(names, ",") {
	case "integer,string":
		return IntOrString, true
	case "integer,number":
		return Number, true
	}
	return Any, false
}

// constantsOf returns the values that a fragment allows, but for null.
func constantsOf(f fragment) []any {
	constants := list(f["enum"])
	if constant, ok := f["const"]; ok {
		constants = []any{constant}
	}
	return slices.DeleteFunc(slices.Clone(constants), func(value any) bool { return value == nil })
}

// restrict takes the restrictions over that a structural schema can say for the type.
func (l *learner) restrict(field *Field, p place, sources ...fragment) {
	f := fragment{}
	for _, source := range sources {
		f = overlay(f, source)
	}
	switch field.Type {
	case String:
		field.MinLength, field.MaxLength = length(f["minLength"]), length(f["maxLength"])
		field.Pattern = text(f["pattern"])
		if _, err := regexp.Compile(field.Pattern); err != nil {
			l.note(p, "has a pattern that is no regular expression of Kubernetes; it is left out.")
			field.Pattern = ""
		}
	case Integer, Number:
		field.Minimum = bound(f["minimum"], f["exclusiveMinimum"], field.Type, true)
		field.Maximum = bound(f["maximum"], f["exclusiveMaximum"], field.Type, false)
	default:
		return
	}
	seen := map[any]bool{}
	for _, constant := range constantsOf(f) {
		if number, ok := constant.(float64); !agrees(field.Type, constant) || ok && !isExact(number) {
			field.Enum = nil
			return
		}
		if !seen[constant] {
			seen[constant] = true
			field.Enum = append(field.Enum, constant)
		}
	}
}

func length(value any) *int64 {
	if n, ok := value.(int64); ok && n >= 0 {
		return &n
	}
	return nil
}

// bound returns a limit. An exclusive one of integers becomes the next integer; one of fractions
// becomes an inclusive limit, which allows one value more.
func bound(inclusive, exclusive any, kind Type, lower bool) *float64 {
	next := func(limit float64) float64 {
		switch {
		case kind != Integer:
			return limit
		case lower:
			return math.Floor(limit) + 1
		default:
			return math.Ceil(limit) - 1
		}
	}
	limit, ok := float(inclusive)
	if ok && kind == Integer && lower {
		limit = math.Ceil(limit)
	} else if ok && kind == Integer {
		limit = math.Floor(limit)
	}
	// It is a number in newer drafts of JSON schema, and a switch in older ones.
	if exclusive == true {
		inclusive, _ := float(inclusive)
		limit = next(inclusive)
	}
	if other, isNumber := float(exclusive); isNumber {
		other = next(other)
		if !ok || (other > limit) == lower {
			limit = other
		}
		ok = true
	}
	if !ok || !isExact(limit) {
		return nil
	}
	return &limit
}

// isExact reports whether a number is small enough to be written as it is: beyond it, a float64
// does not tell integers apart, and markers cannot express it.
func isExact(number float64) bool { return math.Abs(number) <= 1<<53 }

func float(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// integral reports whether the restrictions of a fragment are those of integers.
func integral(f fragment) bool {
	for _, keyword := range []string{"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"} {
		if isFraction(f[keyword]) {
			return false
		}
	}
	return !slices.ContainsFunc(constantsOf(f), isFraction)
}
