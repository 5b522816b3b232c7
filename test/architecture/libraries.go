// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
)

// Libraries checks that heavy or unwanted foreign packages are imported only
// where they belong.
func Libraries(t *Tree, house []Room, limits []Library) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, _ := roomOf(house, p.Path)
		for _, file := range p.Files {
			for _, i := range file.Imports {
				at := slices.IndexFunc(limits, func(l Library) bool { return covers(l.Path, i.Path) })
				if at < 0 || slices.Contains(limits[at].Rooms, room.Path) {
					continue
				}
				if test := file.Test || room.Kind == Support; test && limits[at].TestsToo {
					continue
				}
				found = append(found, violation(file.Path, "imports %s, which belongs %s, because %s",
					i.Path, belongs(limits[at]), limits[at].Why))
			}
		}
	}
	return found
}

func belongs(l Library) string {
	places := slices.Clone(l.Rooms)
	if l.TestsToo {
		places = append(places, "tests")
	}
	if len(places) == 0 {
		return "nowhere"
	}
	return "to " + strings.Join(places, " and ") + " only"
}
