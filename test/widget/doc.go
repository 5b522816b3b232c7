// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget is a small custom resource for the tests of packages that work
// on any object: it has a spec with a value that is not serialised, and a status
// with conditions and a record.
package widget
