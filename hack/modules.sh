#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Runs a check in each module of the repository.
# Usage: modules.sh vet|staticcheck|tidy
#
#   GO  the go command
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD go=${GO:-go}
for module in $(find . \( -name .git -o -path ./bin -o -name testdata \) -prune -o -name go.mod -exec dirname {} \; | sort); do
	cd "$root/$module"
	# Only these two are in go.work.
	case $module in
	. | ./cmd/corbel) export GOWORK= ;;
	*) export GOWORK=off ;;
	esac
	case "$1 $module" in
	tidy\ ./cmd/corbel) ;; # It requires a version of the root module that may not be published yet: make rehearse checks it.
	tidy\ ./hack/controlplane) for file in go.mod versions/*.mod; do "$go" mod tidy -diff -modfile="$file"; done ;;
	tidy\ *) "$go" mod tidy -diff ;;
	vet\ ./hack/* | staticcheck\ ./hack/* | *\ ./test/bench/helm) ;; # No packages, or lists of programs: a check would read all of Kubernetes.
	vet\ *) "$go" vet ./... ;;
	staticcheck\ *) "$root/bin/tools/staticcheck" ./... ;;
	*) echo "modules.sh: unknown check: $1" >&2; exit 2 ;;
	esac
done
