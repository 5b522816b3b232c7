#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the packages with tests, by what the tests need.
# Usage: packages.sh pure|closed|open|mixed|live|bench...
#
#   pure   no control plane
#   closed of these, the rooms that are closed: nothing in them runs side by side
#   open   of these, all others
#   mixed  a control plane for some; those are skipped with -short
#   live   a control plane for most
#   bench  packages with benchmarks, whatever they need
#
# A package that depends on test/env needs a control plane, however indirectly
# it does: nobody has to keep a list.
set -euo pipefail

module=$(go list -m)

# Each line: the package and whether the binary of its tests contains test/env.
tested() {
	go list -test -f '{{.ImportPath}}{{range .Deps}} {{.}}{{end}}' ./... |
		awk -v env="$module/test/env" '
			$1 ~ /\.test$/ && NF > 1 {
				needs = 0
				for (i = 2; i <= NF; i++) if ($i == env) needs = 1
				print substr($1, 1, length($1) - 5), needs
			}'
}

# The pure packages whose room is closed (1), or is not (0).
pure() {
	rooms=$(sed -n 's/.*Path: "\([^"]*\)".*Kind: Closed.*/\1/p' test/architecture/rooms.go | tr '\n' ' ')
	tested | awk -v m="$module/" -v rooms="$rooms" -v wanted="$1" '
		BEGIN { n = split(rooms, list, " "); for (i = 1; i <= n; i++) closed[m list[i]] = 1 }
		$2 == 0 && ($1 in closed) == wanted { print $1 }'
}

# The packages with benchmarks, as folders.
benchmarked() {
	folders=$(go list -f '{{.Dir}}' ./...)
	for folder in $folders; do
		if grep -qs '^func Benchmark' "$folder"/*_test.go; then echo "./${folder#"$PWD"/}"; fi
	done
}

for set in "$@"; do
	case $set in
	pure) tested | awk '$2 == 0 { print $1 }' ;;
	closed) pure 1 ;;
	open) pure 0 ;;
	mixed) tested | awk -v m="$module" '$2 == 1 && index($1, m "/test/") != 1 { print $1 }' ;;
	# Benchmarks have their own target; their package may hold tests all the same.
	live) tested | awk -v m="$module" '$2 == 1 && index($1, m "/test/") == 1 { print $1 }' ;;
	bench) benchmarked ;;
	*) echo "packages.sh: no set of packages is called $set" >&2; exit 2 ;;
	esac
done
