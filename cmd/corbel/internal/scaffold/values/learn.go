// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth bounds the nesting of fields.
	maxDepth = 12
	// maxFields bounds the size of a tree: references can make a small schema a huge tree.
	maxFields = 20_000
)

// Source is what is known about the values of a chart.
type Source struct {
	// Values is the content of values.yaml.
	Values []byte
	// Schema is the content of values.schema.json, or nil.
	Schema []byte
}

// Learn returns the tree of the values of a chart. Notes are sentences about what has no type and
// why, and about what is left out. It fails if a source cannot be parsed.
func Learn(s Source) (root *Field, notes []string, err error) {
	document, err := parseValues(s.Values)
	schema, problem := parseSchema(s.Schema)
	if err := errors.Join(err, problem); err != nil {
		return nil, nil, err
	}
	l := &learner{schema: schema, comments: parseComments(string(s.Values), document.node)}
	root = l.root(document)
	return root, l.notes, nil
}

// learner builds the tree.
type learner struct {
	schema   fragment
	comments *comments
	notes    []string
	// fields and steps count the work; full reports that maxFields is reached.
	fields, steps int
	full          bool
}

// place is a value and what is known about it.
type place struct {
	path string
	key  string
	// parents are the keys above it, outermost first.
	parents []string
	depth   int
	// nodes are where the value is written: one place in values.yaml, none, or, below a list, several.
	nodes []*yaml.Node
	// keyNode is where its key is written, or nil.
	keyNode *yaml.Node
	value   any
	// element reports whether the value is below a list or a map.
	element  bool
	siblings map[string]any
	// schema is what values.schema.json says, and comment is what the comments say.
	schema, comment fragment
	// refs are the references that were followed to get here.
	refs []string
	// required reports whether the schema of the parent requires the value.
	required bool
}

func (l *learner) note(p place, format string, args ...any) {
	l.notes = append(l.notes, p.path+" "+fmt.Sprintf(format, args...))
}

// root types the whole. It is an object even if neither source has fields.
func (l *learner) root(document document) *Field {
	p := place{path: "The root of the values", value: document.value, schema: l.schema}
	if document.node != nil {
		p.nodes = []*yaml.Node{document.node}
	}
	schema := l.read(&p, &p.schema, FromSchema)
	p.path = ""
	root := &Field{Type: Object, Doc: schema.doc, Origin: FromValue}
	if schema.kind == Object {
		root.Origin = FromSchema
	}
	root.Fields = l.children(p, schema, reading{})
	return root
}

// learn types the value at a place.
func (l *learner) learn(p place) *Field {
	l.fields++
	field := &Field{Key: p.key, Type: Any, Origin: FromNothing}
	if p.depth > maxDepth {
		l.note(p, "is nested deeper than %d levels, so that it accepts any value.", maxDepth)
		return field
	}
	if l.fields > maxFields {
		if !l.full {
			l.note(p, "and what follows accept any value, because the chart has more than %d values.", maxFields)
		}
		l.full = true
		return field
	}
	plain := l.annotate(&p)
	schema := l.read(&p, &p.schema, FromSchema)
	comment := l.read(&p, &p.comment, FromComment)
	l.settle(field, p, schema, comment)
	field.Doc = firstOf(schema.doc, comment.doc, sentences(plain))
	if field.Type == Any {
		field.Elem, field.Fields = nil, nil
	}
	l.restrict(field, p, schema.source, comment.source)
	field.Required = (p.required || schema.required || comment.required) && p.value == nil
	if !p.element {
		setDefault(field, p.value)
	}
	return field
}

// annotate adds what the comments of a value say, and returns the text of a comment without form.
func (l *learner) annotate(p *place) string {
	if p.element || p.keyNode == nil {
		return ""
	}
	found := l.comments.at(p.path, p.keyNode, p.nodes)
	for _, problem := range found.problems {
		l.note(*p, "%s", problem)
	}
	p.comment = overlay(found.schema, p.comment)
	return found.text
}

// settle decides the type by the first source that knows one.
func (l *learner) settle(field *Field, p place, schema, comment reading) {
	switch {
	case schema.kind != "" && !schema.weak:
		l.build(field, p, schema, schema, comment)
		return
	case comment.kind != "" && l.believable(p, schema, comment):
		if !comment.weak {
			l.build(field, p, comment, schema, comment)
			return
		}
	default:
		comment.kind = ""
	}
	frame := schema
	if frame.kind == "" {
		frame = comment
	}
	// A comment that calls it an object is no help where the name says that it is a scalar.
	if shape, ok := byName(p); ok && (frame.allows(shape.kind) || frame.origin == FromComment && shape.kind == IntOrString) {
		l.shape(field, p, shape)
		return
	}
	if l.byValue(field, p, frame, schema, comment) {
		return
	}
	if frame.kind == "" {
		l.note(p, "accepts any value: %s", unknown(p.value))
		return
	}
	// "An object" or "a list" is all that is known.
	field.Type, field.Origin = frame.kind, frame.origin
	if frame.kind == Object {
		field.Type = Map
	}
	if len(frame.elem) > 0 {
		field.Elem = l.element(p, nil, frame.elem, nil)
		return
	}
	field.Elem = &Field{Type: Any, Origin: FromNothing}
	l.note(p, "has elements of any type: its %s does not describe them.", frame.origin.words())
}

// believable reports whether the type that a comment names agrees with the schema and the value.
// A value that is unset (null, "" or empty) agrees with every type.
func (l *learner) believable(p place, schema, comment reading) bool {
	if !schema.allows(comment.kind) {
		l.note(p, "has another type in its comment than in the schema; the schema counts.")
		return false
	}
	if isEmpty(p.value) || comment.kind == Any || comment.kind == Core || agrees(comment.kind, p.value) {
		return true
	}
	l.note(p, "has a comment that calls it %s, but its value is %s; the value counts.", comment.kind.words(), describe(p.value))
	return false
}

// build fills a field with the type that a schema or a comment says.
func (l *learner) build(field *Field, p place, said, schema, comment reading) {
	field.Type, field.Core, field.Origin = said.kind, said.core, said.origin
	switch said.kind {
	case Number:
		// Schemas that were written by a program call whole numbers "number".
		if _, ok := p.value.(int64); ok && isWhole(p) && integral(said.source) {
			field.Type = Integer
		}
	case Object:
		field.Fields = l.children(p, schema, comment)
		l.demand(field, p)
	case List, Map:
		elements := members(p.value)
		field.Elem = l.element(p, elements, schema.elem, comment.elem)
	}
}

// byValue fills a field with the type of its value, and reports whether it has one.
func (l *learner) byValue(field *Field, p place, frame, schema, comment reading) bool {
	kind := kindOf(p)
	if kind == "" || !frame.allows(kind) {
		return false
	}
	field.Type, field.Origin = kind, FromValue
	switch kind {
	case Object:
		field.Fields = l.children(p, schema, comment)
		l.demand(field, p)
	case List:
		field.Elem = l.element(p, members(p.value), schema.elem, comment.elem)
	case Any:
		l.note(p, "accepts any value: its elements have different types.")
	}
	return true
}

// demand makes an object that has no field one that accepts any value.
func (l *learner) demand(field *Field, p place) {
	if len(field.Fields) == 0 && field.Core == "" {
		field.Type = Any
		l.note(p, "accepts any value: none of its keys can be a field.")
	}
}

// children types the keys of an object: those of values.yaml first, then those that only the
// schema or the comments have.
func (l *learner) children(p place, schema, comment reading) []*Field {
	value, _ := p.value.(map[string]any)
	keys := orderedKeys(p.nodes, value)
	others := slices.Collect(maps.Keys(schema.properties))
	others = slices.AppendSeq(others, maps.Keys(comment.properties))
	slices.Sort(others)
	for _, key := range slices.Compact(others) {
		if _, ok := value[key]; !ok {
			keys = append(keys, writtenKey{name: key})
		}
	}
	var fields []*Field
	for _, key := range keys {
		child := place{
			path: join(p.path, key.name), key: key.name, depth: p.depth + 1, parents: append(slices.Clip(p.parents), p.key),
			nodes: key.values, keyNode: key.node, value: value[key.name], element: p.element, siblings: value,
			schema: schema.properties[key.name], comment: comment.properties[key.name],
			refs: p.refs, required: schema.requires(key.name) || comment.requires(key.name),
		}
		if !isCarried(key.name) {
			l.notes = append(l.notes, fmt.Sprintf("%q is left out: no Go field can have the key %q; set it in the field values", child.path, key.name))
			continue
		}
		fields = append(fields, l.learn(child))
	}
	return fields
}

// element types what the elements of a list or map have in common.
func (l *learner) element(p place, values []any, schema, comment fragment) *Field {
	return l.learn(place{
		path: p.path + "[]", depth: p.depth + 1, parents: append(slices.Clip(p.parents), p.key),
		nodes: memberNodes(p.nodes), value: common(values), element: true,
		schema: schema, comment: comment, refs: p.refs,
	})
}

// unknown says why a value tells no type.
func unknown(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "its default is an empty object."
	case []any:
		return "its default is an empty list."
	case nil:
		return "it has no default."
	default:
		return fmt.Sprintf("its default is %s, which is not what its schema says.", describe(v))
	}
}

func (t Type) words() string {
	switch t {
	case Bool:
		return "a boolean"
	case Integer:
		return "an integer"
	case Number:
		return "a number"
	case String:
		return "a string"
	case IntOrString:
		return "an integer or a string"
	case List:
		return "a list"
	case Map, Object:
		return "an object"
	default:
		return "any value"
	}
}

func (o Origin) words() string { return strings.ToLower(string(o)) }

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
