// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"
)

// A flattened template is its text with all branches one after the other, each between lines that mark it. Where
// branches stand in the middle of a line, they are alternatives; an action is kept as its expression.
const (
	openAlternatives  = "\x01"
	nextAlternative   = "\x02"
	closeAlternatives = "\x03"
	openAction        = "\x04"
	closeAction       = "\x05"
	openBranch        = "\x06"
	closeBranch       = "\x07"
)

// parseTemplate parses a template and the definitions in it. All functions are known.
func parseTemplate(name, text string) (map[string]*parse.Tree, error) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	parsed, err := tree.Parse(text, "{{", "}}", trees)
	if err != nil {
		return nil, err
	}
	trees[name] = parsed // an empty template is not among them
	return trees, nil
}

// flatten flattens a node of a template with the given source.
func flatten(source string, node parse.Node) string {
	var out strings.Builder
	var write func(node parse.Node)
	branches := func(lists ...*parse.ListNode) string {
		texts := make([]string, 0, len(lists))
		inline := true
		for _, list := range lists {
			text := ""
			if list != nil {
				text = flatten(source, list)
			}
			texts = append(texts, text)
			inline = inline && !strings.Contains(text, "\n")
		}
		if inline {
			return openAlternatives + strings.Join(texts, nextAlternative) + closeAlternatives
		}
		return "\n" + openBranch + "\n" + strings.Join(texts, "\n"+closeBranch+"\n"+openBranch+"\n") + "\n" + closeBranch + "\n"
	}
	write = func(node parse.Node) {
		switch node := node.(type) {
		case nil:
		case *parse.ListNode:
			if node != nil {
				for _, child := range node.Nodes {
					write(child)
				}
			}
		case *parse.TextNode:
			// The trimmed text may have been the end of a line.
			if before := strings.TrimRight(source[:node.Pos], " \t"); strings.HasSuffix(before, "\n") {
				out.WriteString("\n")
			}
			out.Write(node.Text)
		case *parse.ActionNode:
			if len(node.Pipe.Decl) > 0 {
				break
			}
			expression := node.Pipe.String()
			if beginsLine.MatchString(expression) {
				out.WriteString("\n")
			}
			out.WriteString(openAction + expression + closeAction)
		case *parse.TemplateNode:
			out.WriteString(openAction + node.String() + closeAction)
		case *parse.IfNode:
			out.WriteString(branches(node.List, node.ElseList))
		case *parse.RangeNode:
			out.WriteString(branches(node.List, node.ElseList))
		case *parse.WithNode:
			text := branches(node.List, node.ElseList)
			if of := node.Pipe.String(); ofValues.MatchString(of) {
				text = printedDot.ReplaceAllString(text, openAction+"toYaml "+of+"$1")
			}
			out.WriteString(text)
		}
	}
	write(node)
	return out.String()
}

var (
	kindName     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	groupVersion = regexp.MustCompile(`^([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?$`)

	stringLiteral = regexp.MustCompile(`"([^"\\]*)"`)
	included      = regexp.MustCompile(`(?:include|template) "([^"]+)"`)
	ofValues      = regexp.MustCompile(`^\$?\.Values\.([A-Za-z0-9_.]+)`)
	choosing      = regexp.MustCompile(`(^|[ (|])(ternary|coalesce) `)

	// beginsLine is an expression that begins with the end of a line, and printedDot is an expression that prints the value of its branch.
	beginsLine = regexp.MustCompile(`\| nindent `)
	printedDot = regexp.MustCompile(openAction + `toYaml \.([ ` + closeAction + `])`)
)

// valuesOf returns the values of a field that fit a pattern: literals, alternatives, texts that an
// action chooses from or includes, and the default of a value. It is complete if there can be no
// other values. The origin is the template that the field is in.
func (s *scanner) valuesOf(origin, text string, pattern *regexp.Regexp) (values []string, complete bool) {
	text, _, _ = strings.Cut(text, " #")
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	before, rest, chosen := strings.Cut(text, openAlternatives)
	if inner, after, closed := strings.Cut(rest, closeAlternatives); chosen && closed {
		complete = true
		for _, alternative := range strings.Split(inner, nextAlternative) {
			found, all := s.valuesOf(origin, before+alternative+after, pattern)
			values, complete = append(values, found...), complete && all
		}
		return values, complete
	}
	if pattern.MatchString(text) {
		return []string{text}, true
	}
	if !strings.HasPrefix(text, openAction) || !strings.HasSuffix(text, closeAction) {
		return nil, text == ""
	}
	expression := strings.Trim(text, openAction+closeAction)
	for _, match := range included.FindAllStringSubmatch(expression, -1) {
		for _, word := range strings.FieldsFunc(s.defines[match[1]], func(r rune) bool { return strings.ContainsRune(" \t\n\"'()\x01\x02\x03\x04\x05", r) }) {
			if pattern.MatchString(word) && !slices.Contains(values, word) {
				values = append(values, word)
			}
		}
	}
	for _, match := range stringLiteral.FindAllStringSubmatch(expression, -1) {
		if pattern.MatchString(match[1]) {
			values = append(values, match[1])
		}
	}
	if match := ofValues.FindStringSubmatch(expression); match != nil {
		value, _ := s.defaultOf(origin, match[1]).(string)
		if pattern.MatchString(value) && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values, choosing.MatchString(expression) && len(values) > 1 && !strings.Contains(expression, "default")
}

// readable returns a flattened value as it stood in the template.
func readable(text string) string {
	return strings.NewReplacer(openAction, "{{ ", closeAction, " }}", openAlternatives, "", nextAlternative, " or ", closeAlternatives, "").Replace(text)
}
