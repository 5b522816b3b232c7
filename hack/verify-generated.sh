#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Corbel Authors
# SPDX-License-Identifier: Apache-2.0

# Fails if generating changes a file. It compares contents, not commits, so that
# it also works in the middle of a change.
set -euo pipefail
cd "$(dirname "$0")/.."

fingerprint() {
	find api pkg examples docs/reference cmd/corbel/internal/cli \( -name 'zz_generated.*.go' -o -path '*/config/crd/*.yaml' -o -path 'docs/reference/*.md' -o -name reasons.txt \) -exec sha256sum {} + 2>/dev/null | sort -k2
}

before=$(fingerprint)
make --no-print-directory generate
after=$(fingerprint)
if [ "$before" != "$after" ]; then
	echo "generated files were out of date; they are written now, commit them:" >&2
	diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
	exit 1
fi
