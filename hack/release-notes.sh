#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the section of a version in CHANGELOG.md, without its heading. It fails if there is no such
# section, or nothing is in it.
# Usage: release-notes.sh v1.2.3
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release-notes.sh v1.2.3}
notes=$(awk -v heading="## [${version#v}]" '
	index($0, heading) == 1 { found = 1; next }
	/^## / || /^\[[^]]*\]: / { found = 0 }
	found' CHANGELOG.md)
if [ -z "${notes//[[:space:]]/}" ]; then
	echo "CHANGELOG.md has no section, or an empty one, with the heading ## [${version#v}]: rename Unreleased to it, with the date" >&2
	exit 1
fi
# Without empty lines at the start; the shell has removed those at the end.
sed '/./,$!d' <<<"$notes"
