// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "regexp"

// passing is what differs between two reports of the same failure: source ports,
// identifiers of requests, points in time and durations.
var passing = regexp.MustCompile(`(?i)` +
	`\b(?:read|write|dial) (?:tcp|udp)[46]? \S+->` + // the port on our side
	`|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b` +
	`|\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:?\d\d)?` +
	`|\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:s|ms|µs|ns)\b` +
	`|\b[0-9a-f]*[0-9][0-9a-f]{7,}\b`)

// steady returns the earlier message if the new one tells the same failure. A
// component that fails again and again, for the same reason, must not write its
// status every time.
func steady(before, message string) string {
	if before != message && before != "" && passing.ReplaceAllString(before, "*") == passing.ReplaceAllString(message, "*") {
		return before
	}
	return message
}
