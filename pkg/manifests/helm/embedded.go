// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"path"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// embedding is the advice for a chart without the files that //go:embed leaves out.
const embedding = `the chart has no file with a name that starts with "_" or ".", which //go:embed leaves out of a folder: embed it with the prefix "all:", such as //go:embed all:chart`

// isBare reports whether a chart has none of the files that //go:embed leaves out. Files of packed
// sub-charts do not count.
func isBare(files []*archive.BufferedFile) bool {
	for _, file := range files {
		if name := path.Base(file.Name); strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			return false
		}
	}
	return true
}

// checkEmbedded refuses a chart that can never be rendered, because it always calls a
// template of a missing file. A call that depends on a condition does not count.
func checkEmbedded(c *chart.Chart) error {
	files := map[string]*common.File{}
	templatesOf(c, files)
	defined := map[string]*parse.Tree{}
	own := map[string]*parse.Tree{}
	for name, file := range files {
		// Mistakes in a template are found when it is rendered.
		if templates.CheckText(string(file.Data)) != nil {
			return nil
		}
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(string(file.Data), "", "", defined); err != nil {
			return nil
		}
		if path.Join(c.ChartFullPath(), file.Name) == name {
			own[name] = tree
		}
	}
	for _, name := range inOrder(files) {
		tree := own[name]
		if tree == nil || tree.Root == nil {
			continue
		}
		for _, call := range callsIn(tree.Root) {
			if defined[call.name] == nil && defined[path.Clean(call.name)] == nil && files[path.Clean(call.name)] == nil {
				location, _ := tree.ErrorContext(call.node)
				return fmt.Errorf("%s: there is no template %q, and %s", location, call.name, embedding)
			}
		}
	}
	return nil
}

// call is a call of a template by its name.
type call struct {
	name string
	node parse.Node
}

// callsIn returns the calls that each rendering makes.
func callsIn(list *parse.ListNode) []call {
	var calls []call
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.TemplateNode:
			calls = append(calls, call{node.Name, node})
			calls = append(calls, callsOf(node.Pipe)...)
		case *parse.ActionNode:
			calls = append(calls, callsOf(node.Pipe)...)
		case *parse.IfNode:
			calls = append(calls, callsOf(node.Pipe)...)
		case *parse.WithNode:
			calls = append(calls, callsOf(node.Pipe)...)
		case *parse.RangeNode:
			calls = append(calls, callsOf(node.Pipe)...)
		}
	}
	return calls
}

// callsOf returns the calls that a pipeline always makes. The functions "and" and "or" do
// not evaluate all of their arguments.
func callsOf(pipe *parse.PipeNode) []call {
	if pipe == nil {
		return nil
	}
	var calls []call
	for _, command := range pipe.Cmds {
		function, _ := command.Args[0].(*parse.IdentifierNode)
		if function != nil && (function.Ident == "and" || function.Ident == "or") {
			continue
		}
		if function != nil && function.Ident == "include" && len(command.Args) > 1 {
			if name, ok := command.Args[1].(*parse.StringNode); ok {
				calls = append(calls, call{name.Text, command})
			}
		}
		for _, argument := range command.Args {
			if inner, ok := argument.(*parse.PipeNode); ok {
				calls = append(calls, callsOf(inner)...)
			}
		}
	}
	return calls
}
