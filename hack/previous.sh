#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Builds the root module, and runs its tests that need no control plane, with the versions of controller-runtime and of
# the libraries of Kubernetes before those of go.mod. The versions are those of the replace directives that docs/howto-go.md
# offers to users.
# Usage: previous.sh
#
#   GO  the go command
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go} modfile=bin/previous.mod
packages=$(hack/packages.sh pure mixed | grep -v /cmd/corbel/)

mkdir -p bin
{
	cat go.mod
	sed -n '/^replace ($/,/^)$/p' docs/howto-go.md
} >"$modfile"
cp go.sum "${modfile%.mod}.sum"
grep -q '^replace' "$modfile" || { echo "previous: docs/howto-go.md has no replace directives" >&2; exit 1; }

export GOWORK=off
"$go" mod tidy -modfile="$modfile"
"$go" build -modfile="$modfile" ./...
# shellcheck disable=SC2086 # a list of packages
"$go" test -modfile="$modfile" -vet=off -count=1 -short -timeout 30m $packages
