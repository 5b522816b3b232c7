// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// reader walks the tree and collects problems.
type reader struct {
	problems []Problem
}

// fields say how each allowed field of a mapping is read.
type fields map[string]func(path string, value *yaml.Node)

func (r *reader) report(reason, path, format string, arguments ...any) {
	r.problems = append(r.problems, Problem{Reason: reason, Path: path, Text: fmt.Sprintf(format, arguments...)})
}

func (r *reader) invalid(path, format string, arguments ...any) {
	r.report(v1alpha1.ReasonKubeconfigInvalid, path, format, arguments...)
}

// mapping reads a mapping whose fields are all known. What is null is not there.
func (r *reader) mapping(path string, node *yaml.Node, known fields) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.invalid(path, "must be a mapping of fields")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := join(path, key)
		if seen[key.Value] {
			r.invalid(field, "is defined more than once (duplicate)")
			continue
		}
		seen[key.Value] = true
		read, ok := known[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			r.invalid(field, "is no field of a kubeconfig")
		case !isNull(value):
			read(field, value)
		}
	}
}

var ordinaryName = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,39}$`)

// join appends a field to a path. A key that is no ordinary name may be a value
// that went astray, and so a secret.
func join(path string, key *yaml.Node) string {
	name := key.Value
	if !ordinaryName.MatchString(name) {
		name = fmt.Sprintf("(line %d)", key.Line)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// list reads a list.
func (r *reader) list(path string, node *yaml.Node, item func(path string, value *yaml.Node)) {
	if node.Kind != yaml.SequenceNode {
		r.invalid(path, "must be a list")
		return
	}
	for i, value := range node.Content {
		item(fmt.Sprintf("%s[%d]", path, i), value)
	}
}

// text reads a string.
func (r *reader) text(into *string) func(string, *yaml.Node) {
	return func(path string, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
			r.invalid(path, "must be a string; if it looks like a number or a date, put it in quotes")
			return
		}
		*into = value.Value
	}
}

// data reads bytes in base64.
func (r *reader) data(into *[]byte) func(string, *yaml.Node) {
	return func(path string, value *yaml.Node) {
		var text string
		before := len(r.problems)
		r.text(&text)(path, value)
		if len(r.problems) > before {
			return
		}
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			r.invalid(path, "must be data in base64")
			return
		}
		*into = decoded
	}
}

// flag reads a truth value.
func (r *reader) flag(into *bool) func(string, *yaml.Node) {
	return func(path string, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!bool" || value.Decode(into) != nil {
			r.invalid(path, "must be true or false")
		}
	}
}

// forbidden refuses a field that says anything at all.
func (r *reader) forbidden(why string) func(string, *yaml.Node) {
	return func(path string, value *yaml.Node) {
		if value.Kind == yaml.ScalarNode && value.Value == "" {
			return
		}
		r.report(v1alpha1.ReasonKubeconfigForbiddenField, path, "is not allowed, because %s", why)
	}
}

// ignored is for fields that mean nothing to us.
func ignored(string, *yaml.Node) {}

// noAliases refuses anchors and aliases, by which a short text becomes a long one,
// and tags, by which it becomes something else.
func (r *reader) noAliases(node *yaml.Node) {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		r.invalid("", "line %d: anchors and aliases are not allowed", node.Line)
		return
	case node.Style&yaml.TaggedStyle != 0:
		r.invalid("", "line %d: tags are not allowed", node.Line)
		return
	}
	for _, child := range node.Content {
		r.noAliases(child)
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }
