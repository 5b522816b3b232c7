// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"fmt"
	"strconv"
	"text/template/parse"
)

// Names of the functions that rewrite puts into templates.
const (
	printName    = "_print"
	templateName = "_template"
	tickName     = "_tick"
)

// maxNesting limits how deep the structure of one template may be nested. What
// a template needs of the stack is in proportion to it.
const maxNesting = 120

// rewrite changes a template so that everything it does passes through our
// functions: what an action prints goes through one that knows the limits,
// template calls are counted like includes, and every round of a loop asks
// whether the time is over. A template can then be stopped nearly everywhere.
func rewrite(tree *parse.Tree) error {
	r := rewriter{tree: tree}
	return r.list(tree.Root, 0)
}

type rewriter struct {
	tree *parse.Tree
}

func (r rewriter) list(list *parse.ListNode, depth int) error {
	if list == nil {
		return nil
	}
	if depth > maxNesting {
		return fmt.Errorf("%s: the template is nested deeper than %d levels", r.tree.Name, maxNesting)
	}
	for i, node := range list.Nodes {
		var err error
		switch node := node.(type) {
		case *parse.ActionNode:
			err = r.pipe(node.Pipe, depth)
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, r.command(node.Pos, printName))
			}
		case *parse.TemplateNode:
			err = r.pipe(node.Pipe, depth)
			list.Nodes[i] = r.call(node)
		case *parse.IfNode:
			err = r.branch(&node.BranchNode, depth)
		case *parse.WithNode:
			err = r.branch(&node.BranchNode, depth)
		case *parse.RangeNode:
			err = r.branch(&node.BranchNode, depth)
			node.List.Nodes = append([]parse.Node{r.action(node.Pos, node.Line, r.command(node.Pos, tickName))}, node.List.Nodes...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r rewriter) branch(node *parse.BranchNode, depth int) error {
	if err := r.pipe(node.Pipe, depth); err != nil {
		return err
	}
	if err := r.list(node.List, depth+1); err != nil {
		return err
	}
	return r.list(node.ElseList, depth+1)
}

// pipe only checks how deep a pipeline is nested.
func (r rewriter) pipe(node parse.Node, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%s: the template is nested deeper than %d levels", r.tree.Name, maxNesting)
	}
	var inner []parse.Node
	switch node := node.(type) {
	case *parse.PipeNode:
		if node == nil {
			return nil
		}
		for _, command := range node.Cmds {
			inner = append(inner, command.Args...)
		}
	case *parse.ChainNode:
		inner = append(inner, node.Node)
	}
	for _, node := range inner {
		if err := r.pipe(node, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// call makes {{template "name" data}} a call of a function, because what
// text/template does for it can neither be counted nor interrupted.
func (r rewriter) call(node *parse.TemplateNode) parse.Node {
	name := &parse.StringNode{NodeType: parse.NodeString, Pos: node.Pos, Quoted: strconv.Quote(node.Name), Text: node.Name}
	var data parse.Node = &parse.NilNode{NodeType: parse.NodeNil, Pos: node.Pos}
	if node.Pipe != nil {
		data = node.Pipe
	}
	return r.action(node.Pos, node.Line, r.command(node.Pos, templateName, name, data), r.command(node.Pos, printName))
}

func (r rewriter) action(pos parse.Pos, line int, commands ...*parse.CommandNode) parse.Node {
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Line: line, Cmds: commands}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: pipe}
}

func (r rewriter) command(pos parse.Pos, function string, arguments ...parse.Node) *parse.CommandNode {
	identifier := parse.NewIdentifier(function).SetPos(pos).SetTree(r.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{identifier}, arguments...)}
}
