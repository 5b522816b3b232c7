// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"unicode/utf8"
)

// MaxMessage is the greatest length of a message in bytes. Longer ones are cut
// and end with an ellipsis: a status is read by people, and it is written often.
const MaxMessage = 1024

const ellipsis = "…"

// unspecified stands for a reason that holds nothing acceptable.
const unspecified = "Unspecified"

// maxReason is the limit of the API server.
const maxReason = 1024

// boundedMessage cuts the message at a character, never inside one.
func boundedMessage(message string) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= MaxMessage {
		return message
	}
	cut := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}

// validReason returns the reason as CamelCase that the API server accepts:
// letters, digits and inner underscores, commas and colons, a letter first.
// Words apart are joined: "not found" becomes "NotFound".
func validReason(reason string) string {
	var b strings.Builder
	capital := true
	for _, r := range reason {
		switch {
		case isLetter(r) && capital:
			b.WriteString(strings.ToUpper(string(r)))
			capital = false
		case isLetter(r), b.Len() > 0 && (isDigit(r) || strings.ContainsRune("_,:", r)):
			b.WriteRune(r)
			capital = false
		default:
			capital = true
		}
		if b.Len() == maxReason {
			break
		}
	}
	if valid := strings.TrimRight(b.String(), ",:"); valid != "" {
		return valid
	}
	return unspecified
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
