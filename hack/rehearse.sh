#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Rehearses a release: the tracked files of the modules that are released serve as the version that cmd/corbel/go.mod
# requires. With this version alone, the command is installed, and makes a project whose tests and operator run. Then
# go.mod and go.sum of the command are checked.
# Usage: rehearse.sh
#
#   GO                 the go command
#   KUBEBUILDER_ASSETS the programs of the control plane; by default the project builds its own, as it does for users
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD go=${GO:-go}
source hack/proxy.sh
version=$(awk -v module="$module" '$1 == module { print $2 }' cmd/corbel/go.mod)
work=$(mktemp -d)
cleanup() {
	forget "$version"
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
forget "$version"

step() { echo "• $*"; }

step "pack the modules as $version"
"$go" run ./cmd/corbel/hack/pack "$version" "$work/proxy" "${released[@]}"

take_from "$work/proxy"
export GOBIN=$work/bin PATH=$work/bin:$PATH XDG_CACHE_HOME=$work/cache
mkdir "$work/project"
cp -R examples/shop/chart "$work/chart"
cd "$work/project"

step "go install $module/cmd/corbel@$version"
"$go" install "$module/cmd/corbel@$version"

step "corbel init shop"
corbel init shop --from-chart "$work/chart" --kind Shop --group shop.example.com
cd shop
if grep -n '^replace' go.mod; then
	echo "rehearse: go.mod of the project has a replace directive" >&2
	exit 1
fi

step "make test"
make test GO="$go"

step "make run ARGS=--once"
make run GO="$go" ARGS=--once

# The command needs the sources of the control plane only where KUBEBUILDER_ASSETS is not set.
step "download $module/hack/controlplane@$version"
"$go" mod download "$module/hack/controlplane@$version"

# go.sum has no line about the root module: its sum is not known before the release. Outside of the workspace it is needed.
step "go mod tidy -diff and go mod verify in cmd/corbel"
mkdir "$work/command"
(cd "$root/cmd/corbel" && git ls-files -z | tar -cf - --null -T -) | tar -xf - -C "$work/command"
cd "$work/command"
"$go" mod download "$module@$version"
"$go" mod tidy -diff
"$go" mod verify
