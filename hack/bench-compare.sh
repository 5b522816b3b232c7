#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Compares the benchmarks of single functions with those of another revision:
# builds both, runs them alternately, so that a busy machine is busy for both, and
# prints the table of benchstat.
# Usage: bench-compare.sh REVISION
#
#   COUNT  how often each benchmark runs; default 6, with fewer benchstat sees little
#   BENCH  regular expression of benchmarks; default all
#   GO     the go command
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-}
if [ -z "$base" ]; then
	echo "say with which revision to compare: make bench-compare BASE=main" >&2
	exit 2
fi
count=${COUNT:-6} bench=${BENCH:-.} go=${GO:-go}
here=$PWD
revision=$(git rev-parse --verify --quiet "$base^{commit}") || { echo "BASE=$base: no such revision" >&2; exit 2; }

work=$(mktemp -d)
cleanup() {
	git -C "$here" worktree remove --force "$work/tree" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/tree" "$revision"

# build TREE OUT: one test binary for each package with benchmarks.
build() {
	mkdir -p "$2"
	(cd "$1" && "$here/hack/packages.sh" bench | while read -r package; do
		"$go" test -vet=off -c -o "$2/$(echo "${package#./}" | tr / _).test" "$package"
	done)
}
echo "building $base and the working tree" >&2
build "$work/tree" "$work/old"
build "$here" "$work/new"

# run TREE WHICH: a benchmark may read files of its package, so it runs there.
run() {
	(cd "$1" && "$here/hack/packages.sh" bench | while read -r package; do
		binary="$work/$2/$(echo "${package#./}" | tr / _).test"
		echo "pkg: $package"
		(cd "$package" && "$binary" -test.short -test.run=NoTests -test.bench="$bench" -test.benchmem -test.count=1)
	done) >>"$work/$2.txt"
}
for ((i = 1; i <= count; i++)); do
	echo "run $i of $count" >&2
	run "$work/tree" old
	run "$here" new
done
bin/tools/benchstat "$base=$work/old.txt" "here=$work/new.txt"
