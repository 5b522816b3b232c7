// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
)

// Floors checks that every package of ours has a room, that imports between rooms and between the folders at the root point
// down, or along an edge that the room lists, and that the root module imports no other module of ours.
func Floors(t *Tree, rooms []Room) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, ok := roomOf(rooms, p.Path)
		if !ok {
			found = append(found, violation(p.Path,
				"the package has no room: add it to rooms in test/architecture/rooms.go, and run go test ./test/architecture -rewrite"))
			continue
		}
		for _, file := range p.Files {
			for _, imported := range t.localImports(file) {
				what := forbiddenEdge(rooms, room, imported, file.Test)
				if module := t.moduleOf(imported); p.Module == "." && module != "." {
					what = "imports " + imported + " of the module " + module + ": the root module imports no other module of the repository"
				}
				if what != "" {
					found = append(found, violation(file.Path, "%s", what))
				}
			}
		}
	}
	return found
}

// forbiddenEdge says why a room must not import a package, or nothing.
func forbiddenEdge(rooms []Room, from Room, imported string, test bool) string {
	to, ok := roomOf(rooms, imported)
	switch {
	case !ok:
		return "" // reported where it is
	case to.Path == from.Path || slices.Contains(from.Beside, to.Path):
		return ""
	case !test && folderOrder(from.Path) < folderOrder(to.Path):
		return "imports " + imported + ", which is in a folder above it: see folders in test/architecture/rooms.go"
	case to.Kind == Support && !test && from.Kind != Support:
		return "imports " + imported + ", which is for tests"
	case test || to.Floor < from.Floor || from.Kind == Support:
		// Tests may look up: what they import is not part of the package.
		return ""
	case to.Floor == from.Floor:
		return "imports " + imported + ", which is on the same floor: move what both need down, or list the edge in Beside of " + from.Path + " in test/architecture/rooms.go"
	default:
		return "imports " + imported + ", which is above it: imports point down; declare an interface here, or move the code up"
	}
}

// folderOrder returns the place of the folder at the root that a package is in.
func folderOrder(name string) int {
	top, _, _ := strings.Cut(name, "/")
	return slices.IndexFunc(folders, func(line []string) bool { return slices.Contains(line, top) })
}

// moduleOf returns the folder of the module of a package.
func (t *Tree) moduleOf(name string) string {
	if at := slices.IndexFunc(t.Packages, func(p *Package) bool { return p.Path == name }); at >= 0 {
		return t.Packages[at].Module
	}
	return "."
}

// localImports are the packages of ours that a file imports, as folders.
func (t *Tree) localImports(f *File) []string {
	var local []string
	for _, i := range f.Imports {
		if folder, ok := t.folderOf(i.Path); ok {
			local = append(local, folder)
		}
	}
	return local
}

// folderOf is the folder of an import path of the module.
func (t *Tree) folderOf(imported string) (string, bool) {
	if imported == t.Module {
		return ".", true
	}
	return strings.CutPrefix(imported, t.Module+"/")
}
