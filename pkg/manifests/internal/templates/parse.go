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

	"github.com/corbel-run/corbel/pkg/manifests"
)

const (
	// maxText limits the text of one template, and maxActions how many actions and how
	// many parentheses it has: the parser's use of the stack grows with them.
	maxText    = 16 << 20
	maxActions = 100_000
	// maxNesting limits how deep the structure of one template may be nested. What a
	// template needs of the stack is in proportion to it.
	maxNesting = 120
)

// Names of the functions that the parser puts into templates.
const (
	printName    = "_print"
	templateName = "_template"
	stepName     = "_step"
	argumentName = "_argument"
)

// builtins are the functions of text/template that have no guard: none of them walks
// through a value or prints one.
var builtins = []string{"and", "or", "not", "len", "index", "slice", "call", "ge", "gt", "le", "lt"}

// Parser adds texts to a set of templates.
type Parser struct {
	left, right string
	// functions are the names that templates may call.
	functions map[string]any
}

// NewParser returns a parser for texts with the delimiters, by default "{{" and
// "}}", that may call the functions and those that a Rendering brings.
func NewParser(left, right string, functions template.FuncMap) Parser {
	names := map[string]any{}
	for _, name := range slices.Concat(builtins, []string{printName, templateName, stepName, argumentName, "include", "tpl", "lookup"}) {
		names[name] = true
	}
	for name := range functions {
		names[name] = true
	}
	return Parser{left: cmp.Or(left, "{{"), right: cmp.Or(right, "}}"), functions: names}
}

// Parse adds the templates of a text: the text itself under its name, and what
// it defines. The names that are taken lead to where they were defined; if taken
// is nil, what comes later wins, as in text/template.
func (p Parser) Parse(set *template.Template, name, text string, taken map[string]string) error {
	_, err := p.parse(set, name, text, taken)
	return err
}

// parse is Parse, and returns how many nodes the trees have, roughly.
func (p Parser) parse(set *template.Template, name, text string, taken map[string]string) (nodes int64, err error) {
	if len(text) > maxText || strings.Count(text, p.left) > maxActions || strings.Count(text, "(") > maxActions {
		return 0, fmt.Errorf("%s: %w", name, exceeded("the template has more than %d bytes, or more than %d actions or parentheses", maxText, maxActions))
	}
	trees, err := parse.Parse(name, text, p.left, p.right, p.functions)
	if err != nil {
		return 0, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, defined := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[defined]
		if defined != name && parse.IsEmptyTree(tree.Root) && taken[defined] != "" {
			continue
		}
		if where, twice := taken[defined]; twice {
			return 0, fmt.Errorf("%s: template %q is already defined in %s", name, defined, where)
		}
		if taken != nil {
			taken[defined] = name
		}
		r := rewriter{tree: tree, nodes: 1}
		if r.list(tree.Root, 0); r.tooDeep {
			return 0, &manifests.LimitError{Message: fmt.Sprintf("%s: the template is nested deeper than %d levels", defined, maxNesting)}
		}
		if _, err := set.AddParseTree(defined, tree); err != nil {
			return 0, fmt.Errorf("%s: template %q: %w", name, defined, err)
		}
		nodes += r.nodes
	}
	return nodes, nil
}

// rewriter changes a template so that everything it does passes through functions of
// this package: what an action prints, calls of templates, and every round of a loop.
type rewriter struct {
	tree    *parse.Tree
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

// call makes {{template "name" data}} a call of a function, because what text/template
// does for it can neither be counted nor interrupted.
func (r *rewriter) call(node *parse.TemplateNode, depth int) parse.Node {
	name := &parse.StringNode{NodeType: parse.NodeString, Pos: node.Pos, Quoted: strconv.Quote(node.Name), Text: node.Name}
	var data parse.Node = &parse.NilNode{NodeType: parse.NodeNil, Pos: node.Pos}
	if node.Pipe != nil {
		r.pipe(node.Pipe, depth)
		data = node.Pipe
	}
	return r.action(node.Pos, node.Line, r.command(node.Pos, templateName, name, data), r.command(node.Pos, printName))
}

// pipe puts a check in front of the arguments of methods, which have no guard.
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
		switch command.Args[0].(type) {
		case *parse.FieldNode, *parse.VariableNode, *parse.ChainNode:
			for j, argument := range command.Args[1:] {
				command.Args[j+1] = r.checked(argument)
			}
			if i > 0 {
				commands = append(commands, r.command(command.Pos, argumentName))
			}
		}
		commands = append(commands, command)
	}
	node.Cmds = commands
}

func (r *rewriter) operand(node parse.Node, depth int) {
	switch node := node.(type) {
	case *parse.PipeNode:
		r.pipe(node, depth+1)
	case *parse.ChainNode:
		if r.tooDeep = r.tooDeep || depth > maxNesting; !r.tooDeep {
			r.operand(node.Node, depth+1)
		}
	}
}

// checked returns the argument behind a check, in parentheses.
func (r *rewriter) checked(argument parse.Node) parse.Node {
	switch argument.(type) {
	case *parse.NilNode, *parse.BoolNode, *parse.NumberNode:
		return argument
	}
	pos := argument.Position()
	return r.pipeline(pos, 0, r.command(pos, argumentName, argument))
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
