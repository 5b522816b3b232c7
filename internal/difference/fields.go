// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Change is a field that differs between two states of an object.
type Change struct {
	// Path leads to the field, such as spec.template.spec.containers[name=api].image.
	Path string
	// Old and New are the values: texts as they are, everything else as JSON. A field that is
	// not there has an empty one. Long values are cut. The values of a Secret are masked.
	Old, New string
}

// Mask returns the change without its values.
func (c Change) Mask() Change {
	if c.Old != "" {
		c.Old = Masked
	}
	if c.New != "" {
		c.New = Masked
	}
	return c
}

// Masked stands for a value that must not be shown.
const Masked = "***"

// maxValue is how many bytes of a value are shown.
const maxValue = 200

// Fields returns the fields that differ between two states of an object, ordered by path, at most
// as many as the limit, and counts the rest. Fields that the server maintains do not count: the
// status and, of the metadata, managedFields, resourceVersion, generation, uid and timestamps.
// Elements of lists that all have different names are compared by name. A missing value and an
// empty map or list are the same. Neither state may be changed meanwhile; one may be nil.
//
// The result has no value of a Secret that is data or an annotation, and of no object the
// annotation that kubectl apply copies the object to.
func Fields(before, after map[string]any, limit int) (changes []Change, more int) {
	c := &fieldComparison{limit: limit, secret: isSecret(before) || isSecret(after)}
	c.maps(nil, "", without(before, "status"), without(after, "status"))
	return c.changes, c.more
}

func isSecret(object map[string]any) bool {
	return object["kind"] == "Secret" && (object["apiVersion"] == "v1" || object["apiVersion"] == nil)
}

// without returns a map without some keys.
func without(object map[string]any, keys ...string) map[string]any {
	rest := maps.Clone(object)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// maintained are the fields of the metadata that the server maintains.
var maintained = []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// lastApplied is the annotation that holds a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

type fieldComparison struct {
	limit   int
	secret  bool
	changes []Change
	more    int
}

// masks reports whether the value at a place must not be shown.
func (c *fieldComparison) masks(at []string) bool {
	annotation := len(at) > 2 && at[0] == "metadata" && at[1] == "annotations"
	if annotation && at[2] == lastApplied {
		return true
	}
	return c.secret && len(at) > 0 && (at[0] == "data" || at[0] == "stringData" || annotation)
}

func (c *fieldComparison) add(at []string, path string, before, after any) {
	if len(c.changes) >= c.limit {
		c.more++
		return
	}
	change := Change{Path: path, Old: textOf(before), New: textOf(after)}
	if c.masks(at) {
		change = change.Mask()
	}
	c.changes = append(c.changes, change)
}

func textOf(value any) string {
	text, isText := value.(string)
	if !isText {
		if value == nil {
			return ""
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return "?"
		}
		text = string(encoded)
	}
	if len(text) > maxValue {
		text = text[:maxValue-len("...")] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// compare notes where two values differ. The place at is the path as keys, below which
// maps and lists of names are followed.
func (c *fieldComparison) compare(at []string, path string, before, after any) {
	if isEmpty(before) && isEmpty(after) {
		return
	}
	x, inBefore := before.(map[string]any)
	y, inAfter := after.(map[string]any)
	if (inBefore || before == nil) && (inAfter || after == nil) {
		c.maps(at, path, x, y)
		return
	}
	a, inBefore := before.([]any)
	b, inAfter := after.([]any)
	if (inBefore || before == nil) && (inAfter || after == nil) && c.lists(at, path, a, b) {
		return
	}
	if !reflect.DeepEqual(before, after) && !sameNumber(before, after) {
		c.add(at, path, before, after)
	}
}

// isEmpty reports whether a value is none, or a map or list with nothing in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// sameNumber compares numbers, which decoders return in several types.
func sameNumber(a, b any) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x == y
}

func number(value any) (string, bool) {
	switch v := value.(type) {
	case int:
		return strconv.Itoa(v), true
	case int32:
		return strconv.FormatInt(int64(v), 10), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// unquoted are keys that need no brackets in a path.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (c *fieldComparison) maps(at []string, path string, before, after map[string]any) {
	if path == "metadata" {
		before, after = without(before, maintained...), without(after, maintained...)
	}
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := path + "[" + key + "]"
		switch {
		case !unquoted.MatchString(key):
		case path == "":
			inner = key
		default:
			inner = path + "." + key
		}
		c.compare(append(at[:len(at):len(at)], key), inner, before[key], after[key])
	}
}

// lists compares elements by their names, or by their places if the lists are equally long. It
// returns false if neither is possible.
func (c *fieldComparison) lists(at []string, path string, before, after []any) bool {
	x, named := byName(before)
	y, alsoNamed := byName(after)
	switch {
	case named && alsoNamed:
		for _, name := range namesIn(before, after) {
			c.compare(append(at[:len(at):len(at)], name), path+"[name="+name+"]", x[name], y[name])
		}
	case len(before) == len(after):
		for i := range before {
			place := strconv.Itoa(i)
			c.compare(append(at[:len(at):len(at)], place), path+"["+place+"]", before[i], after[i])
		}
	default:
		return false
	}
	return true
}

// byName returns the elements by their names; false if one has none, or two have the same.
func byName(elements []any) (map[string]any, bool) {
	named := make(map[string]any, len(elements))
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		name, _ := fields["name"].(string)
		if _, twice := named[name]; name == "" || twice {
			return nil, false
		}
		named[name] = element
	}
	return named, true
}

// namesIn returns the names of the elements of both lists, in their order.
func namesIn(lists ...[]any) (names []string) {
	for _, element := range slices.Concat(lists...) {
		fields, _ := element.(map[string]any)
		if name, _ := fields["name"].(string); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
