#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints -race if the race detector works here: it needs a C compiler.
# Usage: race.sh [go]
set -euo pipefail

go=${1:-go}
if command -v "$("$go" env CC)" >/dev/null; then
	echo -race
else
	echo "no C compiler: tests run without the race detector" >&2
fi
