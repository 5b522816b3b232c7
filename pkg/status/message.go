// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds messages, in bytes.
const maxMessage = 200

// explain joins a short word and its explanation, either of which may be missing.
func explain(reason, message string) string {
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	default:
		return reason + ": " + message
	}
}

// sentence makes any text one line of bounded length.
func sentence(message string) string {
	// Whatever an object says may be very long; only the start is looked at.
	if len(message) > 4*maxMessage {
		message = message[:4*maxMessage]
	}
	message = strings.ToValidUTF8(message, "")
	message = strings.Join(strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(message) <= maxMessage {
		return message
	}
	const ellipsis = "..."
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
