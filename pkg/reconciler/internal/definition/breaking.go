// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Rule names a kind of breaking change.
type Rule string

// The rules about a definition as a whole.
const (
	// NamesChanged: clients do not find the type, and objects of it name another kind.
	NamesChanged Rule = "NamesChanged"
	// ScopeChanged: objects in namespaces become objects without, or the other way round.
	ScopeChanged Rule = "ScopeChanged"
	// StoredVersionRemoved: objects are stored in the version.
	StoredVersionRemoved Rule = "StoredVersionRemoved"
	// ServedVersionRemoved: clients use the version.
	ServedVersionRemoved Rule = "ServedVersionRemoved"
	// ConversionRemoved: objects of one version are not converted to the other any more.
	ConversionRemoved Rule = "ConversionRemoved"
	// SubresourceRemoved: clients use the subresource, such as kubectl scale.
	SubresourceRemoved Rule = "SubresourceRemoved"
	// SelectorRemoved: clients select by the field.
	SelectorRemoved Rule = "SelectorRemoved"
)

// Immutable reports whether the server refuses the change on any definition, also on one without objects.
func (r Rule) Immutable() bool { return r == NamesChanged || r == ScopeChanged }

// Change is a change that breaks something.
type Change struct {
	// Version is the version of the type; empty if the change is about all of them.
	Version string
	// Path is the field of the objects, such as .spec.replicas; empty if the change is about no field.
	Path string
	Rule Rule
	// Message describes the change.
	Message string
}

// String returns the change in one sentence.
func (c Change) String() string {
	var b strings.Builder
	if c.Version != "" {
		b.WriteString("version " + c.Version + ": ")
	}
	if c.Path != "" {
		b.WriteString(c.Path + ": ")
	}
	return b.String() + c.Message + " (" + string(c.Rule) + ")"
}

// Breaking returns the breaking changes from the live definition to the desired one, in the order
// of the versions of the live one. Both are objects of apiextensions.k8s.io/v1. It is empty if
// nothing breaks.
func Breaking(live, desired map[string]any) []Change {
	before, after := fields(live["spec"]), fields(desired["spec"])
	var found []Change
	add := func(version string, rule Rule, format string, args ...any) {
		found = append(found, Change{Version: version, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
	if old, new := text(before["group"]), text(after["group"]); old != new {
		add("", NamesChanged, "the group changes from %s to %s", old, new)
	}
	for _, name := range []string{"kind", "plural", "listKind"} {
		if old, new := nameOf(before, name), nameOf(after, name); old != new {
			add("", NamesChanged, "names.%s changes from %s to %s", name, old, new)
		}
	}
	if old, new := text(before["scope"]), text(after["scope"]); old != new {
		add("", ScopeChanged, "the scope changes from %s to %s", old, new)
	}
	versions := list(after["versions"])
	if isWebhook(before) && !isWebhook(after) && len(versions) > 1 {
		add("", ConversionRemoved, "the conversion webhook is removed, and there is more than one version")
	}
	prunes := before["preserveUnknownFields"] == true && after["preserveUnknownFields"] != true
	stored := list(fields(live["status"])["storedVersions"])
	for _, element := range list(before["versions"]) {
		old := fields(element)
		name := text(old["name"])
		index := slices.IndexFunc(versions, func(v any) bool { return fields(v)["name"] == name })
		isStored := slices.Contains(stored, any(name))
		switch {
		case index < 0 && isStored:
			add(name, StoredVersionRemoved, "it is removed, and status.storedVersions says that objects are stored in it")
		case index < 0 && old["served"] == true:
			add(name, ServedVersionRemoved, "it is removed, and it was served")
		}
		if index < 0 {
			continue
		}
		new := fields(versions[index])
		if old["served"] == true && new["served"] != true {
			add(name, ServedVersionRemoved, "it is not served any more")
		}
		found = append(found, subresources(name, old, new)...)
		if old["served"] == true || isStored {
			found = append(found, compareVersions(name, old, new, prunes)...)
		}
	}
	return append(found, lostInStorage(before, after)...)
}

// nameOf returns a name of the type; the server fills in the kind of lists.
func nameOf(spec map[string]any, name string) string {
	names := fields(spec["names"])
	if value := text(names[name]); value != "" || name != "listKind" {
		return value
	}
	return text(names["kind"]) + "List"
}

func isWebhook(spec map[string]any) bool { return fields(spec["conversion"])["strategy"] == "Webhook" }

func subresources(version string, old, new map[string]any) (found []Change) {
	before, after := fields(old["subresources"]), fields(new["subresources"])
	for _, name := range []string{"status", "scale"} {
		if before[name] == nil {
			continue
		}
		if after[name] == nil {
			found = append(found, Change{Version: version, Rule: SubresourceRemoved, Message: "the subresource " + name + " is removed"})
		} else if name == "scale" && !reflect.DeepEqual(before[name], after[name]) {
			found = append(found, Change{Version: version, Rule: SubresourceRemoved, Message: "the subresource scale is about other fields"})
		}
	}
	for _, selectable := range list(old["selectableFields"]) {
		if !slices.ContainsFunc(list(new["selectableFields"]), func(other any) bool { return reflect.DeepEqual(other, selectable) }) {
			found = append(found, Change{Version: version, Path: text(fields(selectable)["jsonPath"]), Rule: SelectorRemoved, Message: "the field cannot be selected by any more"})
		}
	}
	return found
}

func schemaOf(version map[string]any) map[string]any {
	return fields(fields(version["schema"])["openAPIV3Schema"])
}

func compareVersions(version string, old, new map[string]any, prunes bool) []Change {
	c := &comparison{version: version}
	if prunes {
		c.add("", UnknownFieldsPruned, "fields that the schema does not have are removed from now on: preserveUnknownFields was true")
	}
	c.compare("", schemaOf(old), schemaOf(new))
	return c.found
}

// losing are the rules about fields that are lost when an object is stored in another version
// without a conversion.
var losing = []Rule{FieldRemoved, TypeChanged, UnknownFieldsPruned}

// lostInStorage compares the schemas of the former and the new storage version, if nothing converts
// the objects.
func lostInStorage(before, after map[string]any) (found []Change) {
	storage := func(spec map[string]any) map[string]any {
		for _, version := range list(spec["versions"]) {
			if fields(version)["storage"] == true {
				return fields(version)
			}
		}
		return nil
	}
	old, new := storage(before), storage(after)
	if old == nil || new == nil || old["name"] == new["name"] || isWebhook(after) {
		return nil
	}
	c := &comparison{version: text(old["name"])}
	c.compare("", schemaOf(old), schemaOf(new))
	for _, change := range c.found {
		if slices.Contains(losing, change.Rule) {
			change.Message = "objects are stored as " + text(new["name"]) + " without a conversion: " + change.Message
			found = append(found, change)
		}
	}
	return found
}

func fields(value any) map[string]any { m, _ := value.(map[string]any); return m }
func list(value any) []any            { l, _ := value.([]any); return l }
func text(value any) string           { s, _ := value.(string); return s }

// number returns a number of JSON or YAML.
func number(value any) (n float64, ok bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	case int:
		return float64(value), true
	}
	return 0, false
}

// equal compares values that come from JSON and from YAML.
func equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && cmp.Compare(x, y) == 0
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, has := b[key]; !has || !equal(value, other) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}
