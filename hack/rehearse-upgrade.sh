#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Rehearses the upgrade of an operator. An earlier commit serves as v0.1.0, and the tracked files of the working tree as
# the version after it. The command of v0.1.0 makes a project, whose operator brings components into many states. The
# command of the working tree updates the project, and the operator of the updated project takes the components over:
# test/upgrade says what it must not change.
# Usage: rehearse-upgrade.sh
#
#   GO                 the go command
#   KUBEBUILDER_ASSETS the programs of the control plane; by default those in bin/k8s
set -euo pipefail
cd "$(dirname "$0")/.."

# When there is a release, its tag takes the place of the commit, and its version that of v0.1.0.
baseline=a9a574b566aee41abae6fe0ab79d99fab04ac692
before=v0.1.0 after=v0.2.0-rehearsal

go=${GO:-go}
if ! git cat-file -e "$baseline^{commit}" 2>/dev/null; then
	echo "rehearse-upgrade: the clone lacks the commit of $before: run git fetch --depth=1 origin $baseline" >&2
	exit 1
fi
work=$(mktemp -d)
source hack/proxy.sh
cleanup() {
	forget "$before"
	forget "$after"
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
forget "$before"
forget "$after"

step() { echo "• $*"; }

# pack VERSION packs the modules of a tree, an archive on the standard input. As in a release, the command requires the
# library at its own version.
pack() {
	mkdir "$work/tree-$1"
	cd "$work/tree-$1"
	tar -xf -
	git init -q
	git add --all --force
	"$go" mod edit -require="$module@$1" cmd/corbel/go.mod
	"$work/pack" "$1" "$work/proxy" "${released[@]}"
}

step "pack ${baseline:0:8} as $before and the working tree as $after"
"$go" build -o "$work/" ./cmd/corbel/hack/pack ./test/upgrade
git archive "$baseline" | pack "$before"
git ls-files -z | tar -cf - --null -T - | pack "$after"

take_from "$work/proxy"
export GOWORK=off XDG_CACHE_HOME=$work/cache
mkdir "$work/before" "$work/after" "$work/project"
cp -R test/upgrade/chart "$work/chart"
site=$work/project/site

# build VERSION FOLDER puts the operator of the project, and its chart, into a folder.
build() {
	(cd "$site" && "$go" build -o "$2/operator" .)
	"$go" version -m "$2/operator" | grep -q "dep	$module	$1	" ||
		{ echo "rehearse-upgrade: the operator is not built with $module $1" >&2; exit 1; }
	cp -R "$site/deploy" "$2/deploy"
}

step "make a project with corbel $before"
GOBIN=$work/before "$go" install "$module/cmd/corbel@$before"
(cd "$work/project" && "$work/before/corbel" init site --from-chart "$work/chart" --kind Site --group upgrade.example.com --spec values)
# The author adds a reference to the spec.
types=$site/api/v1alpha1/site.go
awk '{ print } /component.RollbackSpec/ { print "\n\t// Settings is a ConfigMap.\n\t// +optional\n\tSettings *component.ConfigMapReference `json:\"settings,omitempty\"`" }' "$types" >"$work/types.go"
mv "$work/types.go" "$types"
make -C "$site" generate GO="$go"
build "$before" "$work/before"

step "update the project with corbel $after"
GOBIN=$work/after "$go" install "$module/cmd/corbel@$after"
(cd "$site" && "$work/after/corbel" init --update)
build "$after" "$work/after"

step "upgrade the operator"
"$work/upgrade" "$work/before" "$work/after"
