#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Tags the commit of main that is checked out as a release: the main module, and each nested module that
# is released with it. It changes nothing outside of this clone; what to push is printed at the end.
# Usage: release.sh v1.2.3
set -euo pipefail
cd "$(dirname "$0")/.."

# Nested modules that others build from their tag. The rest are for tests and tools of this repository.
nested=(cmd/corbel hack/controlplane)

version=${1:-}
number='(0|[1-9][0-9]*)'
part='(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)'
problems=()
if [[ ! $version =~ ^v$number\.$number\.$number(-$part(\.$part)*)?$ ]]; then
	echo "release: the version is ${version:-missing}: it must be a semantic version such as v0.1.0 or v0.1.0-rc.1" >&2
	exit 2
fi

# A tag v2.0.0 is no version of a module without /v2 in its path.
major=${version%%.*}
for module in . "${nested[@]}"; do
	path=$(awk '$1 == "module" { print $2 }' "$module/go.mod")
	case $major in
	v0 | v1) ;;
	*) [[ $path == */"$major" ]] || problems+=("the module $path has no version $version: its path must end in /$major") ;;
	esac
done
for file in cmd/corbel/go.mod cmd/corbel/hack/dist/go.mod test/browser/go.mod test/mount/go.mod go.work; do
	grep -q "github.com/corbel-run/corbel $version\( \|\$\)" "$file" || problems+=("$file requires another version of the root module: write $version there")
done
branch=$(git symbolic-ref --quiet --short HEAD || echo "a commit without a branch")
[ "$branch" = main ] || problems+=("$branch is checked out: check out main")
[ -z "$(git status --porcelain)" ] || problems+=("files are changed or not tracked: commit or remove them")
grep -q "^## \[${version#v}\] - [0-9]\{4\}-[0-9]\{2\}-[0-9]\{2\}\$" CHANGELOG.md ||
	problems+=("CHANGELOG.md has no heading ## [${version#v}] - YEAR-MONTH-DAY: rename Unreleased to it")
hack/release-notes.sh "$version" >/dev/null 2>&1 || problems+=("CHANGELOG.md says nothing about ${version#v}")
tags=("$version")
for module in "${nested[@]}"; do tags+=("$module/$version"); done
for tag in "${tags[@]}"; do
	if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then problems+=("the tag $tag exists"); fi
done
if [ ${#problems[@]} -gt 0 ]; then
	printf 'release %s: %s\n' "$version" "${problems[0]}" >&2
	[ ${#problems[@]} -eq 1 ] || printf '  and: %s\n' "${problems[@]:1}" >&2
	exit 1
fi

for tag in "${tags[@]}"; do git tag --annotate --message "$tag" "$tag"; done
echo "tagged $(git rev-parse --short HEAD), in this clone only: ${tags[*]}"
echo "to publish the release, push main and the tags:"
echo "  git push --atomic origin main ${tags[*]}"
echo "to take it back before:"
echo "  git tag --delete ${tags[*]}"
