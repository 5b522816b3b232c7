// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"go/format"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Code is Go source.
type Code struct {
	// Source has declarations, formatted, without package clause and imports.
	Source string
	// Imports are the import specs that it needs, like `corev1 "k8s.io/api/core/v1"`, sorted by path.
	Imports []string
	// HasSecrets reports whether there are references to Secrets, so that the struct has the method SetSecrets.
	HasSecrets bool
}

// GoTypes writes the struct declarations for the values, with kubebuilder markers. The struct for
// the root is named name+"Values", and those below it name+"Values" with the path of the value. It
// fails if the name is no exported Go identifier, or if a field of the tree is not valid.
//
// JSON that fits the schema is the same after it was decoded into the types and encoded again:
// scalars and objects are pointers, and lists and maps have "omitzero", so that a value that is
// zero or empty is not mistaken for one that is not set.
//
// Comments say what the chart sets by default. No field has a default of its own: the API server stores defaults, and
// a stored one would hide a newer default of the chart.
//
// No field is required: a user can set its value in another place.
func GoTypes(root *Field, name string) (Code, error) {
	if !token.IsIdentifier(name) || !token.IsExported(name) {
		return Code{}, fmt.Errorf("%q is no exported Go identifier: use a name like %q", name, "Redis")
	}
	if root == nil || root.Type != Object {
		return Code{}, fmt.Errorf("the root of the values of %s is no object", name)
	}
	g := &generator{imports: map[string]bool{}, types: names{}}
	g.declare(nestedType{object: root, name: g.types.unique(name + "Values"), goPath: "v", jsonPath: "values"})
	g.setSecrets(name + "Values")
	if len(g.problems) > 0 {
		return Code{}, fmt.Errorf("the values of %s have no Go type: %s", name, strings.Join(g.problems, "; "))
	}
	source, err := format.Source([]byte(g.source.String()))
	if err != nil {
		return Code{}, fmt.Errorf("the Go types of the values of %s are not valid: %w", name, err)
	}
	imports := slices.SortedFunc(maps.Keys(g.imports), func(a, b string) int {
		return strings.Compare(a[strings.Index(a, `"`):], b[strings.Index(b, `"`):])
	})
	return Code{Source: string(source), Imports: imports, HasSecrets: len(g.secrets) > 0}, nil
}

// generator writes structs.
type generator struct {
	source   strings.Builder
	imports  map[string]bool
	types    names
	problems []string
	// secrets are statements that put loaded values in place of references.
	secrets []string
}

// declare writes the struct of an object, and then those below it.
func (g *generator) declare(as nestedType) {
	var below []nestedType
	var members []string
	// A field cannot have the name of a method.
	object, fields, keys := as.object, names{"DeepCopy": true, "DeepCopyInto": true, "SetSecrets": true}, map[string]bool{}
	if object.Core != "" {
		_, embedded, _ := strings.Cut(object.Core, ".")
		fields.unique(embedded)
		members = append(members, fmt.Sprintf("\t%s `json:\",inline\"`\n", g.core(object.Core)))
	}
	for _, field := range object.Fields {
		if !isCarried(field.Key) || keys[field.Key] {
			g.problems = append(g.problems, fmt.Sprintf("%q is no JSON key for a field, or is defined more than once", field.Key))
			continue
		}
		keys[field.Key] = true
		goField := fields.unique(goName(field.Key))
		goType, nested := g.goType(field, as.name+goField)
		if nested != nil {
			nested.path = join(as.path, line(field.Key))
			if field.Type == Object && as.goPath != "" {
				nested.goPath = as.goPath + "." + goField
				nested.jsonPath = fmt.Sprintf("%s[%q].(map[string]any)", as.jsonPath, field.Key)
				nested.guard = as.guard + nested.goPath + " != nil && "
			}
			below = append(below, *nested)
		}
		g.refer(field, as, goField)
		members = append(members, fmt.Sprintf("%s\t%s %s `json:\"%s,%s\"%s`\n", comment(field), goField, pointer(field)+goType, field.Key, omit(field), fallbackKeys(field)))
	}
	doc := "has the values of the chart that are typed."
	if as.path != "" {
		doc = "has the values below " + as.path + "."
	}
	fmt.Fprintf(&g.source, "// %s %s\ntype %s struct {\n%s}\n\n", as.name, doc, as.name, strings.Join(members, "\n"))
	for _, nested := range below {
		g.declare(nested)
	}
}

// nestedType is a struct that a field needs.
type nestedType struct {
	object     *Field
	name, path string
	// goPath and jsonPath are expressions for the struct and for the map of its values, and guard is the condition,
	// with an operator after it, under which they exist. They are empty below lists and maps.
	goPath, jsonPath, guard string
}

// refer adds the statement that puts the content of a Secret, or its name, in place of the reference to it.
func (g *generator) refer(field *Field, in nestedType, goField string) {
	reference := in.goPath + "." + goField
	var loaded string
	switch {
	case in.goPath == "":
		return
	case field.Type == SecretKey:
		loaded = "string(" + reference + ".Value())"
	case field.Type == SecretName:
		loaded = reference + ".Name"
	default:
		return
	}
	g.secrets = append(g.secrets, fmt.Sprintf("\tif %s%s != nil {\n\t\t%s[%q] = %s\n\t}\n", in.guard, reference, in.jsonPath, field.Key, loaded))
}

// setSecrets writes the method that replaces the references to Secrets, if there are any.
func (g *generator) setSecrets(name string) {
	if len(g.secrets) == 0 {
		return
	}
	fmt.Fprintf(&g.source, "// SetSecrets puts the contents and names of Secrets into the values of the chart, in place of the references to them.\n"+
		"func (v *%s) SetSecrets(values map[string]any) {\n%s}\n", name, strings.Join(g.secrets, ""))
}

// fallbackKeys returns the tag that names the keys to look for in a Secret, if the reference names none.
func fallbackKeys(field *Field) string {
	if field.Type != SecretKey {
		return ""
	}
	keys := field.Key
	if last := lastWord(field.Key); last != field.Key {
		keys += "," + last
	}
	return fmt.Sprintf(" fallbackKeys:%q", keys)
}

// goType returns the type of a field without its pointer, and the struct that it needs, if any,
// which gets the given name.
func (g *generator) goType(field *Field, name string) (string, *nestedType) {
	switch field.Type {
	case Bool:
		return "bool", nil
	case Integer:
		return "int64", nil
	case String:
		return "string", nil
	case IntOrString:
		g.imports[`"k8s.io/apimachinery/pkg/util/intstr"`] = true
		return "intstr.IntOrString", nil
	case List, Map:
		if field.Elem == nil {
			g.problems = append(g.problems, fmt.Sprintf("%q has no type for its elements", field.Key))
			return "any", nil
		}
		elem, nested := g.goType(field.Elem, name)
		if field.Type == List {
			return "[]" + elem, nested
		}
		return "map[string]" + elem, nested
	case Object:
		name = g.types.unique(name)
		return name, &nestedType{object: field, name: name}
	case Core:
		return g.core(field.Core), nil
	case SecretKey, SecretName:
		g.imports[`"github.com/corbel-run/corbel/pkg/component"`] = true
		return map[Type]string{SecretKey: "component.SecretKeyReference", SecretName: "component.SecretReference"}[field.Type], nil
	case Number, Any:
		// The schema of a custom resource refuses Go floats.
		g.imports[`apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"`] = true
		return "apiextensionsv1.JSON", nil
	default:
		g.problems = append(g.problems, fmt.Sprintf("%q has the unknown type %q", field.Key, field.Type))
		return "any", nil
	}
}

// core imports a Kubernetes type.
func (g *generator) core(name string) string {
	if !isCore(name) {
		g.problems = append(g.problems, fmt.Sprintf("%q is no Kubernetes type that a field can have", name))
		return "any"
	}
	alias, _, _ := strings.Cut(name, ".")
	g.imports[alias+" "+strconv.Quote(coreImports[alias])] = true
	return name
}

// pointer returns the star of all but lists and maps, which can be nil as they are.
func pointer(field *Field) string {
	if isCollection(field) {
		return ""
	}
	return "*"
}

// omit returns the option that leaves a field out that is not set, but no empty list.
func omit(field *Field) string {
	if isCollection(field) {
		return "omitzero"
	}
	return "omitempty"
}

// isCollection reports whether the Go type is a list or a map.
func isCollection(field *Field) bool {
	return field.Type == List || field.Type == Map || field.Type == Core && field.Core == "corev1.ResourceList"
}
