// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the user's reference into docs/reference. The constants and
// fields of the sources, and their doc comments, are its only input: a page has a row for each of them.
//
// A doc comment is sentences, and below them lines that begin with a keyword and a colon, such
// as "Default: 10." The file keywords.go lists the keywords. A keyword also decides on the
// page: a constant with "Event type:" is the reason of an event, and one with "Limit:" is a limit.
package main
