#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the packages with tests, of both modules of go.work, by what the tests need.
# Usage: packages.sh pure|quiet|racy|mixed|live|bench...
#
#   pure   no control plane
#   quiet  of these, the packages without locks, atomics and goroutines; not test/architecture, which make lint runs
#   racy   the packages with them, of pure and mixed
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

# Each line: the package, whether the binary of its tests contains test/env, and whether the package is racy.
tested() {
	go list -test -f '{{.ImportPath}} {{len .TestGoFiles}} {{len .XTestGoFiles}} {{join .Imports ","}}{{range .Deps}} {{.}}{{end}}' $both |
		awk -v env="$module/test/env" -v m="$module/" -v slow="$slow" '
			BEGIN { n = split(slow, list, " "); for (i = 1; i <= n; i++) more[m list[i]] = 50 }
			$2 !~ /^\[/ {
				files[$1] = $2 + $3 + more[$1]
				racy[$1] = ("," $4 ",") ~ ("(,sync,|,sync/atomic,|," m "internal/guard,)")
			}
			$1 ~ /\.test$/ && NF > 4 {
				needs = 0
				for (i = 5; i <= NF; i++) if ($i == env) needs = 1
				package = substr($1, 1, length($1) - 5)
				print files[package], package, needs, racy[package] + 0
			}' | sort -rn | cut -d' ' -f2-
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
	quiet) tested | awk -v m="$module/" '$2 == 0 && $3 == 0 && $1 != m "test/architecture" { print $1 }' ;;
	racy) tested | awk -v m="$module/" '$3 == 1 && ($2 == 0 || index($1, m "test/") != 1) { print $1 }' ;;
	mixed) tested | awk -v m="$module" '$2 == 1 && index($1, m "/test/") != 1 { print $1 }' ;;
	# Benchmarks have their own target; their package may hold tests all the same. make conformance runs the stories for any cluster.
	live) tested | awk -v m="$module" '$2 == 1 && index($1, m "/test/") == 1 && $1 != m "/test/conformance" { print $1 }' ;;
	bench) benchmarked ;;
	*) echo "packages.sh: unknown set of packages: $set" >&2; exit 2 ;;
	esac
done
