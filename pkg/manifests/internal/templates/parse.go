// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"
	"unicode/utf8"

	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

const (
	// maxText limits the text of one template, and maxActions how many actions and how
	// many parentheses it has: the tree that the parser makes of them takes memory.
	//
	// Limit: the text of one template.
	maxText = 16 << 20
	// Unit: actions
	// Limit: the actions of one template, and its parentheses.
	maxActions = 100_000
	// maxParsed limits how deep blocks, chains of "else if" and parentheses are nested in
	// a text that is parsed: the parser calls itself for each level.
	maxParsed = 2000
	// maxNesting limits how deep the structure of one template may be nested. The stack of a
	// template grows in proportion to it.
	//
	// Unit: levels
	// Limit: the nesting of the structure of one template.
	maxNesting = 120
)

// Names of the functions that the parser puts into templates.
const (
	printName    = "_print"
	templateName = "_template"
	stepName     = "_step"
	argumentName = "_argument"
	patternName  = "_pattern"
	resultName   = "_result"
)

// fields are names that start with a capital letter and belong to fields of the data of a template.
// Any other such name may belong to a method; then its result counts.
var fields = set("Values Chart Release Capabilities Template Files Subcharts Component Name Namespace Version AppVersion " +
	"Service Revision IsInstall IsUpgrade BasePath KubeVersion APIVersions Major Minor Digest Labels Annotations")

// builtins are the functions of text/template that have no guard: none of them walks
// through a value or prints one.
var builtins = []string{"and", "or", "not", "len", "index", "slice", "call", "ge", "gt", "le", "lt"}

// Set is a set of templates that may call each other.
type Set struct {
	*template.Template
	// called are the functions that the templates call. A rendering makes guards for these only: it
	// would take longer to make guards for all functions than to render a small chart.
	called map[string]bool
}

// NewSet returns an empty set with options of text/template.
func NewSet(options ...string) *Set {
	return &Set{Template: template.New("").Option(options...), called: map[string]bool{}}
}

// Clone returns a copy for one rendering, to which nothing is added by a Parser.
func (s *Set) Clone() (*Set, error) {
	clone, err := s.Template.Clone()
	return &Set{Template: clone, called: s.called}, err
}

// Parser adds texts to a set of templates.
type Parser struct {
	left, right string
	// functions are the names that templates may call.
	functions map[string]any
}

// NewParser returns a parser for texts with the delimiters, by default "{{" and "}}", that may call
// the functions and the functions of a Rendering.
func NewParser(left, right string, functions template.FuncMap) Parser {
	names := map[string]any{}
	for _, name := range slices.Concat(builtins, []string{printName, templateName, stepName, argumentName, patternName, resultName, "include", "tpl", "lookup"}) {
		names[name] = true
	}
	for name := range functions {
		names[name] = true
	}
	return Parser{left: cmp.Or(left, "{{"), right: cmp.Or(right, "}}"), functions: names}
}

// Parse adds the templates of a text: the text itself under its name, and its definitions. The
// names that are in use lead to where they were defined; if used is nil, the later definition wins,
// as in text/template.
func (p Parser) Parse(set *Set, name, text string, used map[string]string) error {
	_, err := p.parse(set, name, text, used)
	return err
}

// parse is Parse, and returns how many nodes the trees have, roughly.
func (p Parser) parse(set *Set, name, text string, used map[string]string) (nodes int64, err error) {
	if err := checkText(text, p.left, p.right); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	trees, err := parse.Parse(name, text, p.left, p.right, p.functions)
	if err != nil {
		return 0, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, defined := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[defined]
		if defined != name && parse.IsEmptyTree(tree.Root) && used[defined] != "" {
			continue
		}
		if where, twice := used[defined]; twice {
			return 0, fmt.Errorf("%s: template %q is already defined in %s", name, defined, where)
		}
		if used != nil {
			used[defined] = name
		}
		r := rewriter{tree: tree, nodes: 1, called: set.called}
		if r.list(tree.Root, 0); r.tooDeep {
			return 0, &excess.Error{Message: fmt.Sprintf("%s: the template is nested deeper than %d levels", defined, maxNesting)}
		}
		if _, err := set.AddParseTree(defined, tree); err != nil {
			return 0, fmt.Errorf("%s: template %q: %w", name, defined, err)
		}
		nodes += r.nodes
	}
	return nodes, nil
}

// CheckText refuses a text with the usual delimiters that the parser of text/template must
// not get, because it would take too much of the memory or of the stack.
func CheckText(text string) error { return checkText(text, "{{", "}}") }

func checkText(text, left, right string) error {
	if len(text) > maxText || strings.Count(text, left) > maxActions || strings.Count(text, "(") > maxActions {
		return exceeded("the template has more than %d bytes, or more than %d actions or parentheses", maxText, maxActions)
	}
	if depthOf(text, left, right) > maxParsed {
		return exceeded("the template is nested deeper than %d levels", maxParsed)
	}
	return nil
}

// depthOf returns how deep the parser would call itself for a text. It finds actions as the
// lexer of text/template does, and stops where that one fails.
func depthOf(text, left, right string) (deepest int) {
	depth := 0
	var open []int // the levels of each open block, one more for each "else if"
	for {
		_, action, found := strings.Cut(text, left)
		if !found {
			return deepest
		}
		if len(action) > 1 && action[0] == '-' && strings.ContainsRune(blanks, rune(action[1])) {
			action = action[2:]
		}
		if comment, isComment := strings.CutPrefix(action, "/*"); isComment {
			if _, text, found = strings.Cut(comment, "*/"); !found {
				return deepest
			}
			continue
		}
		word, rest := firstWord(action)
		switch word {
		case "if", "with", "range", "block", "define":
			open = append(open, 1)
			depth++
		case "else":
			if next, _ := firstWord(rest); (next == "if" || next == "with") && len(open) > 0 {
				open[len(open)-1]++
				depth++
			}
		case "end":
			if len(open) > 0 {
				depth -= open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
		var parentheses int
		parentheses, text, found = skipAction(action, right)
		if deepest = max(deepest, depth+parentheses); !found {
			return deepest
		}
	}
}

const blanks = " \t\r\n"

// firstWord returns the first word of an action and the rest.
func firstWord(action string) (word, rest string) {
	action = strings.TrimLeft(action, blanks)
	end := strings.IndexFunc(action, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(action)
	}
	return action[:end], action[end:]
}

// skipAction returns how deep the parentheses of an action are nested, and the text after
// its right delimiter. It is false if the action does not end.
func skipAction(action, right string) (deepest int, rest string, ended bool) {
	depth := 0
	for i := 0; i < len(action); {
		if strings.HasPrefix(action[i:], right) {
			return deepest, action[i+len(right):], true
		}
		switch c := action[i]; c {
		case '(':
			depth++
			deepest = max(deepest, depth)
		case ')':
			depth--
		case '"', '\'', '`':
			end := quoteEnd(action[i+1:], c)
			if end < 0 {
				return deepest, "", false
			}
			i += 1 + end
		}
		i++
	}
	return deepest, "", false
}

// quoteEnd returns where a quoted text ends, or -1. Only raw texts have no escapes.
func quoteEnd(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && quote != '`':
			i++
		}
	}
	return -1
}

// rewriter changes a template so that everything it does passes through functions of this package:
// the output of an action, calls of templates, and every round of a loop.
type rewriter struct {
	tree    *parse.Tree
	called  map[string]bool // gets the names of the functions
	nodes   int64
	tooDeep bool
}

func (r *rewriter) list(list *parse.ListNode, depth int) {
	if r.tooDeep = r.tooDeep || depth > maxNesting; list == nil || r.tooDeep {
		return
	}
	r.nodes += int64(len(list.Nodes))
	for i, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			r.pipe(node.Pipe, depth)
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, r.command(node.Pos, printName))
			}
		case *parse.TemplateNode:
			list.Nodes[i] = r.call(node, depth)
		case *parse.IfNode:
			r.branch(&node.BranchNode, depth)
		case *parse.WithNode:
			r.branch(&node.BranchNode, depth)
		case *parse.RangeNode:
			r.branch(&node.BranchNode, depth)
			node.List.Nodes = append([]parse.Node{r.action(node.Pos, node.Line, r.command(node.Pos, stepName))}, node.List.Nodes...)
		}
	}
}

func (r *rewriter) branch(node *parse.BranchNode, depth int) {
	r.pipe(node.Pipe, depth)
	r.list(node.List, depth+1)
	r.list(node.ElseList, depth+1)
}

// call makes {{template "name" data}} a call of a function, because text/template's own call can
// neither be counted nor interrupted.
func (r *rewriter) call(node *parse.TemplateNode, depth int) parse.Node {
	name := &parse.StringNode{NodeType: parse.NodeString, Pos: node.Pos, Quoted: strconv.Quote(node.Name), Text: node.Name}
	var data parse.Node = &parse.NilNode{NodeType: parse.NodeNil, Pos: node.Pos}
	if node.Pipe != nil {
		r.pipe(node.Pipe, depth)
		data = node.Pipe
	}
	return r.action(node.Pos, node.Line, r.command(node.Pos, templateName, name, data), r.command(node.Pos, printName))
}

// pipe puts a check in front of the arguments of methods, which have no guard, and another check
// behind a possible call of a method.
func (r *rewriter) pipe(node *parse.PipeNode, depth int) {
	if r.tooDeep = r.tooDeep || depth > maxNesting; node == nil || r.tooDeep {
		return
	}
	var commands []*parse.CommandNode
	for i, command := range node.Cmds {
		r.nodes += 1 + int64(len(command.Args))
		for _, argument := range command.Args {
			r.operand(argument, depth)
		}
		called, hasPath := lastName(command.Args[0])
		for j, argument := range command.Args[1:] {
			if hasPath {
				command.Args[j+1] = r.checked(checkOf(called), argument)
			} else if name, _ := lastName(argument); isMethod(name) {
				command.Args[j+1] = r.checked(resultName, argument)
			}
		}
		if hasPath && i > 0 {
			commands = append(commands, r.command(command.Pos, checkOf(called)))
		}
		commands = append(commands, command)
		if isMethod(called) {
			commands = append(commands, r.command(command.Pos, resultName))
		}
	}
	node.Cmds = commands
}

// lastName returns the last name of the path that an operand is, such as the name of a field, a
// method or a variable. It reports whether the operand is a path.
func lastName(operand parse.Node) (name string, isPath bool) {
	var path []string
	switch operand := operand.(type) {
	case *parse.FieldNode:
		path = operand.Ident
	case *parse.VariableNode:
		path = operand.Ident
	case *parse.ChainNode:
		path = operand.Field
	default:
		return "", false
	}
	return path[len(path)-1], true
}

// isMethod reports whether a name may belong to a method: names of variables start with "$", and
// most keys of values with a small letter.
func isMethod(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(first) && !fields[name]
}

// checkOf returns the check of the arguments of a method.
func checkOf(method string) string {
	if method == "Glob" {
		return patternName
	}
	return argumentName
}

func (r *rewriter) operand(node parse.Node, depth int) {
	switch node := node.(type) {
	case *parse.IdentifierNode:
		r.called[node.Ident] = true
	case *parse.PipeNode:
		r.pipe(node, depth+1)
	case *parse.ChainNode:
		if r.tooDeep = r.tooDeep || depth > maxNesting; !r.tooDeep {
			r.operand(node.Node, depth+1)
		}
	}
}

// checked returns an argument behind a check, in parentheses.
func (r *rewriter) checked(check string, argument parse.Node) parse.Node {
	switch argument.(type) {
	case *parse.NilNode, *parse.BoolNode, *parse.NumberNode:
		return argument
	}
	pos := argument.Position()
	return r.pipeline(pos, 0, r.command(pos, check, argument))
}

func (r *rewriter) action(pos parse.Pos, line int, commands ...*parse.CommandNode) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: r.pipeline(pos, line, commands...)}
}

func (r *rewriter) pipeline(pos parse.Pos, line int, commands ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Line: line, Cmds: commands}
}

func (r *rewriter) command(pos parse.Pos, function string, arguments ...parse.Node) *parse.CommandNode {
	identifier := parse.NewIdentifier(function).SetPos(pos).SetTree(r.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{identifier}, arguments...)}
}
