#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints -race if the race detector works here: it needs cgo and a C compiler.
# Usage: race.sh [go]
set -euo pipefail

go=${1:-go}
if [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v "$("$go" env CC)" >/dev/null; then
	echo -race
else
	echo "no C compiler: tests run without the race detector" >&2
fi
