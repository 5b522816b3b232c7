// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import "strings"

// withoutRandom removes from two renderings the lines that Helm renders differently
// each time, of which it has rendered again. It removes nothing if the renderings
// do not have the same objects with the same numbers of lines.
func withoutRandom(want, again, got []string) (expected, actual []string, random bool) {
	if len(want) != len(again) || len(want) != len(got) {
		return want, got, false
	}
	for i := range want {
		lines, other, ours := strings.Split(want[i], "\n"), strings.Split(again[i], "\n"), strings.Split(got[i], "\n")
		if len(lines) == len(other) && len(lines) == len(ours) {
			for n := range lines {
				if lines[n] != other[n] {
					lines[n], ours[n], random = "", "", true
				}
			}
		}
		expected, actual = append(expected, strings.Join(lines, "\n")), append(actual, strings.Join(ours, "\n"))
	}
	return expected, actual, random
}
