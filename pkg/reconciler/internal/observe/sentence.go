// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"unicode/utf8"
)

// maxSentence bounds what an error tells: webhooks may answer with megabytes.
const maxSentence = 500

// Sentence returns the text in one line of bounded length.
func Sentence(text string) string {
	if len(text) > 4*maxSentence {
		text = text[:4*maxSentence] // the rest is not worth looking at
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= maxSentence {
		return text
	}
	cut := maxSentence - len("...")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
