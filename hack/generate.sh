#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Writes what controller-gen generates: DeepCopy methods next to the types, and
# the custom resource definitions of each example into its folder config/crd.
# Which types get methods is said by markers in the sources. Then it writes the
# user's reference from the comments of the sources.
set -euo pipefail
cd "$(dirname "$0")/.."

generator=bin/tools/controller-gen

paths=()
for folder in api pkg/component pkg/types examples; do
	if [ -d "$folder" ]; then
		paths+=("paths=./$folder/...")
	fi
done
"$generator" object:headerFile=hack/boilerplate.go.txt "${paths[@]}"

for example in examples/*/; do
	if [ -d "$example" ]; then
		"$generator" crd "paths=./$example..." "output:crd:dir=${example}config/crd"
	fi
done

# A component type of the tests; its definition must follow the status.
"$generator" object:headerFile=hack/boilerplate.go.txt crd paths=./pkg/component/testdata/widget \
	output:crd:dir=pkg/component/testdata/crds

"${GO:-go}" run ./cmd/corbel/hack/reference
