// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
)

// Floors checks that every package of ours has a room and that imports between
// rooms point down, or along an edge that the room lists.
func Floors(t *Tree, rooms []Room) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, ok := roomOf(rooms, p.Path)
		if !ok {
			found = append(found, violation(p.Path,
				"the package has no room: add it to rooms in test/architecture/rooms.go, and to ARCHITECTURE.md"))
			continue
		}
		for _, file := range p.Files {
			for _, imported := range t.localImports(file) {
				if what := forbiddenEdge(rooms, room, imported, file.Test); what != "" {
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
