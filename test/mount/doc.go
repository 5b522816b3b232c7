// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package mount mounts the page of cmd/corbel/ui in a manager, behind the filter of controller-runtime that authenticates and
// authorises requests, as docs/howto-ui.md shows it. It is a module of its own, because the filter depends on much that
// nothing else needs.
package mount
