// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// comments are the comments of values.yaml.
type comments struct {
	lines []string
	// texts are the lines of block scalars: a "#" in them begins no comment.
	texts map[int]bool
	// named is what comments say about a value that they name by its path.
	named map[string]fragment
}

// found is what the comments say about one value.
type found struct {
	schema fragment
	// text is the comment without form above the value.
	text     string
	problems []string
}

var (
	// "## @param image.tag [string, nullable, default: latest] The tag"
	param = regexp.MustCompile(`^\s*##?\s*@param\s+(\S+)\s*(?:\[([^\]]*)\])?\s*(.*)$`)
	// "# image.tag -- (string) The tag"
	namedDoc = regexp.MustCompile(`^\s*#+\s+([\w.-]+)\s+--\s*(?:\(([^)]*)\))?\s*(.*)$`)
	// "# -- (string) The tag"
	helmDoc = regexp.MustCompile(`^--(?:\s+|$)(?:\(([^)]*)\))?\s*(.*)$`)
	// "# @default -- the version of the chart"
	defaultDoc = regexp.MustCompile(`^@default\s+--\s*(.*)$`)
	// A line of a comment that looks like YAML that is commented out.
	commentedOut = regexp.MustCompile(`^(?:- |[\w."'/-]+:(?:\s|$)|[{}\[\]])`)
	// A comment at the end of a line with a key and no scalar.
	trailing = regexp.MustCompile(`^\s*[^#]*:\s+(#.*)$`)
)

// parseComments finds the comments that name a value.
func parseComments(text string, root *yaml.Node) *comments {
	c := &comments{lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), texts: map[int]bool{}, named: map[string]fragment{}}
	if root != nil {
		c.markTexts(root, 0)
	}
	for i, line := range c.lines {
		if c.texts[i] || !strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if match := param.FindStringSubmatch(line); match != nil {
			c.named[match[1]] = paramSchema(match[2], match[3])
		} else if match := namedDoc.FindStringSubmatch(line); match != nil {
			c.named[match[1]] = docSchema(match[2], match[3])
		}
	}
	return c
}

// markTexts marks the lines of block scalars: those that are indented deeper than the key, or
// the list item, that has the text.
func (c *comments) markTexts(node *yaml.Node, indent int) {
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		// Lines count from one, so that this is the line after the header of the text.
		for i := node.Line; i < len(c.lines); i++ {
			line := c.lines[i]
			if strings.TrimSpace(line) != "" && indentOf(line) <= indent {
				break
			}
			c.texts[i] = true
		}
	}
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			c.markTexts(inner, node.Content[i-1].Column-1)
		} else {
			c.markTexts(inner, node.Column-1)
		}
	}
}

// at returns what the comments say about the value with a path: those that name it, those directly
// above its key, and the one at the end of its line.
func (c *comments) at(path string, key *yaml.Node, values []*yaml.Node) found {
	f := parseBlock(c.above(key))
	for _, comment := range c.beside(key, values) {
		if rest, ok := strings.CutPrefix(comment, "@schema "); ok {
			f.addLine(rest)
		}
	}
	f.schema = overlay(f.schema, c.named[path])
	return f
}

// above returns the comment lines directly above a key, without their marks. A line that is indented deeper than the key belongs
// to the value before it.
func (c *comments) above(key *yaml.Node) []string {
	var block []string
	for i := key.Line - 2; i >= 0 && i < len(c.lines) && !c.texts[i]; i-- {
		comment, ok := uncomment(c.lines[i])
		if !ok || indentOf(c.lines[i]) >= key.Column {
			break
		}
		block = append(block, comment)
	}
	slices.Reverse(block)
	return withoutBoilerplate(block)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// withoutBoilerplate leaves out the comment that helm create writes below the value resources, with the YAML that is commented out in
// it: it documents neither that value nor the next one.
func withoutBoilerplate(block []string) []string {
	start := slices.IndexFunc(block, func(line string) bool {
		return strings.Contains(line, "We usually recommend not to specify default resources")
	})
	if start < 0 {
		return block
	}
	isExample := func(line string) bool { return commentedOut.MatchString(strings.TrimSpace(line)) }
	rest := block[start:]
	for len(rest) > 0 && !isExample(rest[0]) {
		rest = rest[1:]
	}
	for len(rest) > 0 && isExample(rest[0]) {
		rest = rest[1:]
	}
	return append(block[:start:start], rest...)
}

// beside returns the comments at the end of the line of a key.
func (c *comments) beside(key *yaml.Node, values []*yaml.Node) []string {
	lines := []string{key.LineComment}
	for _, value := range values {
		lines = append(lines, value.LineComment)
	}
	if i := key.Line - 1; i >= 0 && i < len(c.lines) {
		if match := trailing.FindStringSubmatch(c.lines[i]); match != nil {
			lines = append(lines, match[1])
		}
	}
	var result []string
	for _, line := range lines {
		if comment, ok := uncomment(line); ok && !slices.Contains(result, strings.TrimSpace(comment)) {
			result = append(result, strings.TrimSpace(comment))
		}
	}
	return result
}

// uncomment returns a comment without its mark and one space after it.
func uncomment(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "#") {
		return "", false
	}
	return strings.TrimPrefix(strings.TrimLeft(line, "#"), " "), true
}

// parseBlock parses the comment above a value.
func parseBlock(block []string) found {
	var f found
	var schema, plain, doc []string
	var docType, docDefault string
	inSchema, inDoc, ended := false, false, false
	for _, line := range block {
		trimmed := strings.TrimSpace(line)
		if trimmed == "@schema" || trimmed == "@schema.root" {
			inSchema = !inSchema
			if !inSchema && trimmed == "@schema" {
				f.addSchema(strings.Join(schema, "\n"))
			}
			schema, inDoc = nil, false
			continue
		}
		if inSchema {
			schema = append(schema, line)
			continue
		}
		if match := helmDoc.FindStringSubmatch(trimmed); match != nil {
			// The last one counts.
			inDoc, ended, docType, doc = true, false, match[1], []string{match[2]}
			continue
		}
		if match := defaultDoc.FindStringSubmatch(trimmed); match != nil {
			docDefault = match[1]
		}
		if rest, ok := strings.CutPrefix(trimmed, "@schema "); ok {
			f.addLine(rest)
		}
		switch {
		case strings.HasPrefix(trimmed, "@"), commentedOut.MatchString(trimmed):
			inDoc = false
			ended = ended || len(plain) > 0
		case trimmed == "":
			inDoc = false
			ended = ended || len(plain) > 0
		case inDoc:
			doc = append(doc, trimmed)
		case !ended:
			plain = append(plain, trimmed)
		}
	}
	if inSchema && len(schema) > 0 {
		f.problems = append(f.problems, "has an @schema comment without an end; it is ignored.")
	}
	f.text = strings.Join(plain, " ")
	f.schema = overlay(f.schema, docSchema(docType, strings.Join(doc, " ")))
	if docDefault != "" && f.schema["description"] != nil {
		f.schema["description"] = strings.TrimSuffix(text(f.schema["description"]), ".") + ". Default: " + strings.Trim(docDefault, "`.") + "."
	}
	return f
}

// addSchema adds the YAML between two lines with "@schema".
func (f *found) addSchema(text string) {
	value, err := parseAnnotation(text)
	schema, ok := value.(map[string]any)
	if err != nil || !ok && value != nil {
		f.problems = append(f.problems, "has an @schema comment that is no YAML object; it is ignored.")
		return
	}
	f.schema = overlay(schema, f.schema)
}

// lists are the annotations whose value is a list.
var lists = []string{"type", "enum", "item", "itemEnum"}

// addLine adds annotations in one line: "type:[string, null]; minimum:1".
func (f *found) addLine(line string) {
	added, items := fragment{}, fragment{}
	for _, annotation := range splitOutside(line, ';') {
		name, value, _ := strings.Cut(annotation, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if slices.Contains(lists, name) && !strings.HasPrefix(value, "[") {
			value = "[" + value + "]"
		}
		parsed, err := parseAnnotation(value)
		switch {
		case name == "":
		case name == "pattern", name == "title", name == "description", name == "$ref":
			added[name] = value
		case err != nil:
			f.problems = append(f.problems, fmt.Sprintf("has an @schema comment whose %s is no YAML; it is ignored.", name))
		case name == "item":
			items["type"] = parsed
		case name == "itemEnum":
			items["enum"] = parsed
		case name == "itemPattern":
			items["pattern"] = value
		case name == "itemRef":
			items["$ref"] = value
		case name == "itemProperties":
			items["properties"] = parsed
		case name == "required" && value == "":
			added[name] = true
		default:
			added[name] = parsed
		}
	}
	if len(items) > 0 {
		added["items"] = map[string]any(items)
	}
	f.schema = overlay(added, f.schema)
}

// parseAnnotation parses YAML of a comment. Unlike in values, "on" and "y" are texts.
func parseAnnotation(text string) (any, error) {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}

// splitOutside splits a text at a separator that is in no quotes, brackets or braces.
func splitOutside(text string, separator rune) []string {
	var parts []string
	var quote rune
	depth, start := 0, 0
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case strings.ContainsRune("[{(", r):
			depth++
		case strings.ContainsRune("]})", r):
			depth--
		case r == separator && depth <= 0:
			parts, start = append(parts, text[start:i]), i+1
		}
	}
	return append(parts, text[start:])
}

// paramSchema is what a "@param" line says.
func paramSchema(modifiers, description string) fragment {
	f := fragment{}
	for _, modifier := range strings.Split(modifiers, ",") {
		if name := docTypes[strings.ToLower(strings.TrimSpace(modifier))]; name != "" {
			f["type"] = name
		}
	}
	if description != "" {
		f["description"] = description
	}
	return f
}

// docSchema is what a helm-docs comment says.
func docSchema(kind, description string) fragment {
	f := fragment{}
	if name := docTypes[strings.ToLower(strings.TrimSpace(kind))]; name != "" {
		f["type"] = name
	} else if kind != "" && description != "" {
		// A remark in parentheses, not a type.
		if !isTypeWord.MatchString(kind) {
			description = "(" + kind + ") " + description
		}
	}
	if description != "" {
		f["description"] = description
	}
	return f
}

var isTypeWord = regexp.MustCompile(`^[\w/.\[\]-]+$`)

// docTypes are the JSON types for the names of types in comments.
var docTypes = map[string]string{
	"bool": "boolean", "boolean": "boolean",
	"int": "integer", "integer": "integer",
	"float": "number", "number": "number",
	"string": "string", "str": "string", "tpl/string": "string",
	"list": "array", "array": "array", "tpl/array": "array", "tpl/list": "array",
	"object": "object", "dict": "object", "map": "object", "tpl/object": "object", "tpl/dict": "object",
}
