#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Writes the requirements of the control plane for tests, from a version of Kubernetes alone: etcd and all libraries
# have the versions that this version of Kubernetes requires.
# Usage: controlplane-mod.sh v1.36.3 FILE.mod
#
#   GO        the go command
#   FILE.mod  hack/controlplane/go.mod, or a file for go build -modfile; its .sum is written, too
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?a version of Kubernetes is missing, such as v1.36.3} file=$PWD/${2:?the file to write is missing}
go=${GO:-go}
export GOWORK=off GOFLAGS=-mod=mod

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

upstream=$(cd "$work" && "$go" mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p')
[ -n "$upstream" ] || { echo "controlplane-mod.sh: there is no k8s.io/kubernetes $version" >&2; exit 1; }
cat >"$work/go.mod" <<END
module github.com/corbel-run/corbel/hack/controlplane

$(grep '^go ' go.mod)

// As in go.mod of k8s.io/kubernetes.
$(grep '^godebug ' "$upstream")

require k8s.io/kubernetes $version

// k8s.io/kubernetes asks for its staging modules at v0.0.0 and replaces them by
// folders of its own repository; a dependent has to name the published ones.
replace (
$(awk -v version="v0.${version#v1.}" '$2 == "v0.0.0" { print "\t" $1 " => " $1 " " version }' "$upstream")
)
END
cd hack/controlplane
"$go" mod tidy -modfile="$work/go.mod"
mkdir -p "${file%/*}"
cp "$work/go.mod" "$file"
cp "$work/go.sum" "${file%.mod}.sum"
