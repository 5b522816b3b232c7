#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints all Go sources of the repository, those of the nested modules included.
set -euo pipefail

find . \( -name .git -o -path ./bin -o -name testdata \) -prune -o -name '*.go' -print
