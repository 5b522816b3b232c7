// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

// Type is the type of a value.
type Type string

// The types of values.
const (
	Bool        Type = "Bool"
	Integer     Type = "Integer"
	Number      Type = "Number"
	String      Type = "String"
	IntOrString Type = "IntOrString"
	// List has uniform elements.
	List Type = "List"
	// Map has keys that the user chooses, and uniform elements.
	Map Type = "Map"
	// Object has the fields of the tree. If Core is set, it has the fields of that type, too.
	Object Type = "Object"
	// Core is a type of the Kubernetes API.
	Core Type = "Core"
	// Any accepts every value.
	Any Type = "Any"
	// SecretKey is a text in a Secret, and SecretName the name of a Secret. Only Refer makes them.
	SecretKey  Type = "SecretKey"
	SecretName Type = "SecretName"
)

// Origin says what a type was derived from.
type Origin string

// The origins of types.
const (
	FromSchema  Origin = "Schema"
	FromComment Origin = "Comment"
	FromName    Origin = "Name"
	FromValue   Origin = "Value"
	FromNothing Origin = "None"
)

// Field is one value of a chart.
type Field struct {
	// Key is its name in values.yaml. The root and elements have none.
	Key  string
	Type Type
	// Core is a Go type like "corev1.ResourceRequirements", for the type Core, and for an
	// Object that has the fields of that type beside its own.
	Core string
	// Doc is the first sentences of its description, in one line.
	Doc string
	// Default is what values.yaml says: a JSON value with int64 and float64 for numbers. It is
	// nil for objects, which have the defaults of their fields, and for what is below a list.
	Default any

	// What follows restricts scalars.

	Enum                 []any
	Minimum, Maximum     *float64
	MinLength, MaxLength *int64
	Pattern              string

	// Required reports whether the schema requires the value and the chart has no default for it.
	Required bool

	// Fields are the fields of an Object: those of values.yaml in its order, then others by name.
	Fields []*Field
	// Elem is the element of a List or a Map.
	Elem   *Field
	Origin Origin
}

// Leaves counts the fields that have no fields of their own, and those of them that have a type.
// A list or a map of something untyped is untyped. An object counts by its fields.
func Leaves(root *Field) (total, typed int) {
	if root == nil {
		return 0, 0
	}
	switch root.Type {
	case Object:
		if root.Core != "" {
			total, typed = 1, 1
		}
		for _, field := range root.Fields {
			fields, known := Leaves(field)
			total, typed = total+fields, typed+known
		}
		return total, typed
	case List, Map:
		return Leaves(root.Elem)
	case Any:
		return 1, 0
	default:
		return 1, 1
	}
}

// filter returns a copy of an object with the fields for which keep returns true. It asks for the
// fields of an object, too: one that is kept is kept whole, another one only if a field is left.
func filter(object *Field, path string, keep func(path string) bool) *Field {
	kept := *object
	kept.Fields = nil
	for _, field := range object.Fields {
		below := join(path, field.Key)
		switch {
		case keep(below):
			kept.Fields = append(kept.Fields, clone(field))
		case field.Type == Object:
			if inner := filter(field, below, keep); len(inner.Fields) > 0 {
				// The fields of a Kubernetes type were not asked for.
				inner.Core = ""
				kept.Fields = append(kept.Fields, inner)
			}
		}
	}
	return &kept
}

// clone copies a field and what is below it. JSON values are shared: nothing changes them.
func clone(field *Field) *Field {
	if field == nil {
		return nil
	}
	copied := *field
	copied.Elem = clone(field.Elem)
	copied.Fields = nil
	for _, inner := range field.Fields {
		copied.Fields = append(copied.Fields, clone(inner))
	}
	return &copied
}

// join returns the path of a key below a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
