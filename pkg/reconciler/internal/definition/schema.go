// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The rules about the schema of a version.
const (
	// FieldRemoved: values of the field are lost.
	FieldRemoved Rule = "FieldRemoved"
	// UnknownFieldsPruned: values that the schema does not name are lost.
	UnknownFieldsPruned Rule = "UnknownFieldsPruned"
	// TypeChanged: values of the former type are refused.
	TypeChanged Rule = "TypeChanged"
	// FieldRequired: objects without the field are refused, and there is no default.
	FieldRequired Rule = "FieldRequired"
	// DefaultChanged: objects without a value get another one, or none.
	DefaultChanged Rule = "DefaultChanged"
	// ValuesRemoved: some values of an enum, or null, are refused.
	ValuesRemoved Rule = "ValuesRemoved"
	// BoundTightened: some numbers, lengths or sizes are refused.
	BoundTightened Rule = "BoundTightened"
	// PatternChanged: some texts are refused.
	PatternChanged Rule = "PatternChanged"
	// ValidationAdded: some objects are refused by an expression or by another schema.
	ValidationAdded Rule = "ValidationAdded"
	// MergingChanged: server-side apply treats a list or a map in another way.
	MergingChanged Rule = "MergingChanged"
	// UnknownChange: the schema has a keyword that this package does not know.
	UnknownChange Rule = "UnknownChange"
)

type comparison struct {
	version string
	found   []Change
}

func (c *comparison) add(path string, rule Rule, format string, args ...any) {
	c.found = append(c.found, Change{Version: c.version, Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

const (
	preserves   = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
	embedded    = "x-kubernetes-embedded-resource"
	anyValue    = "any value"
	either      = "integer or string"
)

// typeOf returns the type of the values of a schema.
func typeOf(schema map[string]any) string {
	if schema[intOrString] == true {
		return either
	}
	return cmp.Or(text(schema["type"]), anyValue)
}

// widens reports whether all values of one type are values of another.
func widens(old, new string) bool {
	return old == new || new == anyValue || old == "integer" && new == "number" ||
		new == either && (old == "integer" || old == "string")
}

// described are the keywords that refuse nothing and lose nothing.
var described = []string{
	"description", "title", "example", "externalDocs", "id", "$schema", "deprecated",
	// They are compared on their own.
	"type", "properties", "additionalProperties", "items", "required", "default", "enum", "nullable", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "multipleOf", "pattern", "format",
	"uniqueItems", "allOf", "anyOf", "oneOf", "not", preserves, intOrString, embedded,
	"x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}

func (c *comparison) compare(path string, old, new map[string]any) {
	if before, after := typeOf(old), typeOf(new); !widens(before, after) {
		c.add(path, TypeChanged, "the type changes from %s to %s", before, after)
		return // the rest is about other values
	}
	if old[preserves] == true && new[preserves] != true {
		c.add(path, UnknownFieldsPruned, "fields that the schema does not have are removed from now on")
	}
	c.compareProperties(path, old, new)
	if items := fields(old["items"]); items != nil && new["items"] != nil {
		c.compare(path+"[*]", items, fields(new["items"]))
	}
	c.compareValues(path, old, new)
	c.compareBounds(path, old, new)
	c.compareValidations(path, old, new)
	c.compareMerging(path, old, new)
	for _, keyword := range slices.Sorted(maps.Keys(new)) {
		if !slices.Contains(described, keyword) && !equal(old[keyword], new[keyword]) {
			c.add(path, UnknownChange, "%s is set or changed", keyword)
		}
	}
}

// compareProperties compares the fields of an object, and the values of a map.
func (c *comparison) compareProperties(path string, old, new map[string]any) {
	before, after := fields(old["properties"]), fields(new["properties"])
	others, open := othersOf(new)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		at := path + "." + name
		switch {
		case after[name] != nil:
			c.compare(at, fields(before[name]), fields(after[name]))
		case open:
			c.compareWithOthers(at, fields(before[name]), others)
		default:
			c.add(at, FieldRemoved, "the field is removed")
		}
	}
	formerOthers, wasOpen := othersOf(old)
	if wasOpen {
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if before[name] == nil {
				c.compare(path+"."+name, formerOthers, fields(after[name]))
			}
		}
	}
	switch {
	case old["additionalProperties"] == nil || old["additionalProperties"] == false:
	case !open:
		c.add(path+"[*]", FieldRemoved, "keys of the map are not accepted any more")
	default:
		c.compareWithOthers(path+"[*]", formerOthers, others)
	}
	required := list(old["required"])
	for _, element := range list(new["required"]) {
		name := text(element)
		if _, hasDefault := fields(after[name])["default"]; !slices.Contains(required, element) && !hasDefault {
			c.add(path+"."+name, FieldRequired, "the field becomes required, and has no default")
		}
	}
}

// compareWithOthers compares the schema of a field with the schema of the values that properties do
// not name. Without a schema all values are kept, and only a default is lost.
func (c *comparison) compareWithOthers(path string, old, others map[string]any) {
	if others != nil {
		c.compare(path, old, others)
	} else if value, had := old["default"]; had {
		c.add(path, DefaultChanged, "the default changes from %v to none", value)
	}
}

// othersOf returns the schema of the values that the properties do not name; open reports whether they are kept.
func othersOf(schema map[string]any) (others map[string]any, open bool) {
	switch additional := schema["additionalProperties"].(type) {
	case map[string]any:
		return additional, true
	case bool:
		return nil, additional
	}
	return nil, schema[preserves] == true || typeOf(schema) == anyValue
}

// compareValues compares which values are allowed, and which one counts if there is none.
func (c *comparison) compareValues(path string, old, new map[string]any) {
	if value, had := old["default"]; had && !equal(value, new["default"]) {
		c.add(path, DefaultChanged, "the default changes from %v to %v", value, valueOrNone(new["default"]))
	}
	if old["nullable"] == true && new["nullable"] != true {
		c.add(path, ValuesRemoved, "null is not allowed any more")
	}
	if new["enum"] == nil {
		return
	}
	if old["enum"] == nil {
		c.add(path, ValuesRemoved, "only %v are allowed from now on", new["enum"])
		return
	}
	var removed []any
	for _, value := range list(old["enum"]) {
		if !slices.ContainsFunc(list(new["enum"]), func(other any) bool { return equal(value, other) }) {
			removed = append(removed, value)
		}
	}
	if len(removed) > 0 {
		c.add(path, ValuesRemoved, "the values %v are not allowed any more", removed)
	}
}

func valueOrNone(value any) any {
	if value == nil {
		return "none"
	}
	return value
}

// wideFormats are the formats that allow all values of another one.
var wideFormats = map[string][]string{"int64": {"", "int32"}, "double": {"", "float"}}

// compareBounds compares the limits of numbers, texts, lists and maps.
func (c *comparison) compareBounds(path string, old, new map[string]any) {
	for _, keyword := range []string{"minimum", "minLength", "minItems", "minProperties"} {
		after, set := number(new[keyword])
		before, was := number(old[keyword])
		if !was && keyword != "minimum" {
			was = true // at least nothing
		}
		if set && (!was || after > before) {
			c.add(path, BoundTightened, "%s changes from %v to %v", keyword, valueOrNone(old[keyword]), new[keyword])
		}
	}
	for _, keyword := range []string{"maximum", "maxLength", "maxItems", "maxProperties"} {
		after, set := number(new[keyword])
		if before, was := number(old[keyword]); set && (!was || after < before) {
			c.add(path, BoundTightened, "%s changes from %v to %v", keyword, valueOrNone(old[keyword]), new[keyword])
		}
	}
	for _, bound := range []string{"minimum", "maximum"} {
		exclusive := "exclusive" + strings.ToUpper(bound[:1]) + bound[1:]
		if new[exclusive] == true && old[exclusive] != true && equal(old[bound], new[bound]) {
			c.add(path, BoundTightened, "%s itself is not allowed any more", bound)
		}
	}
	if after, set := number(new["multipleOf"]); set {
		if before, was := number(old["multipleOf"]); !was || math.Mod(before, after) != 0 {
			c.add(path, BoundTightened, "multipleOf changes from %v to %v", valueOrNone(old["multipleOf"]), new["multipleOf"])
		}
	}
	if new["uniqueItems"] == true && old["uniqueItems"] != true {
		c.add(path, BoundTightened, "values must be unique from now on")
	}
	if pattern := text(new["pattern"]); pattern != "" && pattern != text(old["pattern"]) {
		c.add(path, PatternChanged, "the pattern changes from %q to %q", text(old["pattern"]), pattern)
	}
	if before, after := text(old["format"]), text(new["format"]); after != "" && after != before && !slices.Contains(wideFormats[after], before) {
		c.add(path, PatternChanged, "the format changes from %q to %q", before, after)
	}
}

// anyOfEither are the alternatives that equal x-kubernetes-int-or-string.
var anyOfEither = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// compareValidations compares expressions and further schemas.
func (c *comparison) compareValidations(path string, old, new map[string]any) {
	for _, element := range list(new["x-kubernetes-validations"]) {
		rule := fields(element)["rule"]
		if !slices.ContainsFunc(list(old["x-kubernetes-validations"]), func(other any) bool { return fields(other)["rule"] == rule }) {
			c.add(path, ValidationAdded, "objects must satisfy %v from now on", rule)
		}
	}
	has := func(all []any, one any) bool {
		return slices.ContainsFunc(all, func(other any) bool { return equal(one, other) })
	}
	allBefore, anyBefore := list(old["allOf"]), list(old["anyOf"])
	for _, schema := range list(new["allOf"]) {
		if !has(allBefore, schema) {
			c.add(path, ValidationAdded, "allOf has another schema")
		}
	}
	if alternatives := list(new["anyOf"]); len(alternatives) > 0 && !(new[intOrString] == true && equal(any(alternatives), any(anyOfEither))) {
		fewer := slices.ContainsFunc(anyBefore, func(one any) bool { return !has(alternatives, one) })
		if len(anyBefore) == 0 || fewer {
			c.add(path, ValidationAdded, "anyOf has fewer alternatives")
		}
	}
	for _, keyword := range []string{"oneOf", "not"} {
		if new[keyword] != nil && !equal(old[keyword], new[keyword]) {
			c.add(path, ValidationAdded, "%s is set or changed", keyword)
		}
	}
	if new[embedded] == true && old[embedded] != true {
		c.add(path, ValidationAdded, "the value must be an object with apiVersion, kind and metadata from now on")
	}
}

// mergesAs are the ways that count if none is set.
var mergesAs = map[string]string{"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}

// compareMerging compares how server-side apply merges lists and maps.
func (c *comparison) compareMerging(path string, old, new map[string]any) {
	for _, keyword := range []string{"x-kubernetes-list-type", "x-kubernetes-map-type"} {
		otherwise := mergesAs[keyword]
		if before, after := cmp.Or(text(old[keyword]), otherwise), cmp.Or(text(new[keyword]), otherwise); before != after {
			c.add(path, MergingChanged, "%s changes from %s to %s", keyword, before, after)
		}
	}
	if keys := "x-kubernetes-list-map-keys"; old[keys] != nil && new[keys] != nil && !equal(old[keys], new[keys]) {
		c.add(path, MergingChanged, "%s changes from %v to %v", keys, old[keys], new[keys])
	}
}
