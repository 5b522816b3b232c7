#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the packages with tests, of both modules of go.work, by what the tests need.
# Usage: packages.sh pure|closed|open|mixed|live|bench...
#
#   pure   no control plane
#   closed of these, the closed rooms: nothing in them runs concurrently
#   open   of these, all others but test/architecture, which make lint runs
#   mixed  a control plane for some; those are skipped with -short
#   live   a control plane for most
#   bench  packages with benchmarks, whatever they need
#
# A package needs a control plane if its tests depend on test/env, directly or not.
# The packages with the most test files are first, and with them the slow ones of few
# files: if several run at a time, the longest must not be the last.
set -euo pipefail

module=$(awk '$1 == "module" { print $2 }' go.mod)
both="./... ./cmd/corbel/..."

# Packages that take a minute or more.
slow="cmd/corbel/internal/command pkg/component/componenttest examples/shop examples/bucket"

# Each line: the package and whether the binary of its tests contains test/env.
tested() {
	go list -test -f '{{.ImportPath}} {{len .TestGoFiles}} {{len .XTestGoFiles}}{{range .Deps}} {{.}}{{end}}' $both |
		awk -v env="$module/test/env" -v m="$module/" -v slow="$slow" '
			BEGIN { n = split(slow, list, " "); for (i = 1; i <= n; i++) more[m list[i]] = 50 }
			$2 !~ /^\[/ { files[$1] = $2 + $3 + more[$1] }
			$1 ~ /\.test$/ && NF > 3 {
				needs = 0
				for (i = 4; i <= NF; i++) if ($i == env) needs = 1
				package = substr($1, 1, length($1) - 5)
				print files[package], package, needs
			}' | sort -rn | cut -d' ' -f2-
}

# The pure packages in closed rooms (1), or in others (0).
pure() {
	rooms=$(sed -n 's/.*Path: "\([^"]*\)".*Kind: Closed.*/\1/p' test/architecture/rooms.go | tr '\n' ' ')
	tested | awk -v m="$module/" -v rooms="$rooms" -v wanted="$1" '
		BEGIN { n = split(rooms, list, " "); for (i = 1; i <= n; i++) closed[m list[i]] = 1 }
		$2 == 0 && ($1 in closed) == wanted && $1 != m "test/architecture" { print $1 }'
}

# The packages with benchmarks, as folders.
benchmarked() {
	folders=$(go list -f '{{.Dir}}' $both)
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
	*) echo "packages.sh: unknown set of packages: $set" >&2; exit 2 ;;
	esac
done
