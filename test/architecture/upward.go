// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"errors"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// Upward counts the pairs of files of a package in which the first file refers to a declaration of the second file, and the pairs
// that point upward: against the order of the files in which the fewest pairs do. Tests and generated files do not count.
func Upward(t *Tree, folder string) (upward, pairs int) {
	var syntax []*ast.File
	var order []int
	for _, p := range t.ours() {
		for _, file := range p.Files {
			if p.Path == folder && !file.Test && !strings.HasPrefix(path.Base(file.Path), "zz_generated") {
				syntax, order = append(syntax, file.Syntax), append(order, len(order))
			}
		}
	}
	uses := references(syntax)
	against := func(order []int) (n int) {
		for i, lower := range order {
			for _, upper := range order[i+1:] {
				if uses[[2]int{lower, upper}] {
					n++
				}
			}
		}
		return n
	}
	// Each file moves to the best place, until no move helps.
	upward = against(order)
	for better := true; better; {
		better = false
		for file := range syntax {
			rest := slices.DeleteFunc(slices.Clone(order), func(other int) bool { return other == file })
			for at := range order {
				if moved := slices.Insert(slices.Clone(rest), at, file); against(moved) < upward {
					order, upward, better = moved, against(moved), true
				}
			}
		}
	}
	return upward, len(uses)
}

// references returns which files of a package refer to which, by their indexes. What is imported is not known, and not needed.
func references(files []*ast.File) map[[2]int]bool {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImporter{}, Error: func(error) {}}
	_, _ = config.Check("", positions, files, info) // the imports are missing
	each := func(do func(file int, identifier *ast.Ident)) {
		for i, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if identifier, ok := node.(*ast.Ident); ok {
					do(i, identifier)
				}
				return true
			})
		}
	}
	declared := map[types.Object]int{}
	each(func(file int, identifier *ast.Ident) {
		if object := info.Defs[identifier]; object != nil {
			declared[object] = file
		}
	})
	uses := map[[2]int]bool{}
	each(func(file int, identifier *ast.Ident) {
		if other, ok := declared[info.Uses[identifier]]; ok && other != file {
			uses[[2]int{file, other}] = true
		}
	})
	return uses
}

// noImporter finds no package.
type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }
