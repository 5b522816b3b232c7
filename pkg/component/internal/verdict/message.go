// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
)

// MaxNamed is how many objects a message names.
//
// Unit: objects
// Limit: the objects that a message or an event names; the others are counted.
const MaxNamed = 3

// waitRanks order waits by how much they explain; a reason that is not listed comes first, and an
// object that only waits for other objects last.
var waitRanks = map[report.WaitReason]int{
	report.WaitReady:         1,
	report.WaitNamespaceGone: 2,
	report.WaitGone:          3,
	report.WaitOrder:         4,
}

// byImportance returns the objects in the order in which they are named.
func byImportance(waits []report.Wait) []report.Wait {
	ordered := slices.Clone(waits)
	slices.SortStableFunc(ordered, func(a, b report.Wait) int {
		return waitRanks[a.Reason] - waitRanks[b.Reason]
	})
	return ordered
}

// MaxSentence is how much of the message one object gets, in bytes; so that a long message of one
// object leaves room for the rest.
const MaxSentence = 320

// WaitingMessage names the first few objects that are waited for, in the order of byImportance, and
// why; reasons holds, by waitID, further facts about some.
func WaitingMessage(waits []report.Wait, reasons map[string]string) string {
	return FirstSentences(byImportance(waits), 0, func(wait report.Wait) string {
		text := wait.Key.String()
		if wait.Message != "" {
			text += ": " + sentence.OneLine(wait.Message)
		}
		if reason := reasons[waitID(wait)]; reason != "" {
			text += "; " + reason
		}
		return text
	})
}

// BlockersMessage names the first few objects that block a deletion.
func BlockersMessage(blockers []report.Blocker) string {
	return FirstSentences(blockers, 0, func(blocker report.Blocker) string {
		return blocker.Dependent + ": " + sentence.OneLine(blocker.Message)
	})
}

// FirstSentences joins the sentences about the first few items, and counts the rest; more is the
// number of objects that are not among the items.
func FirstSentences[E any](items []E, more int, about func(E) string) string {
	var sentences []string
	for _, item := range items[:min(len(items), MaxNamed)] {
		sentences = append(sentences, sentence.Shorten(about(item), MaxSentence))
	}
	message := strings.Join(sentences, "; ")
	if more += len(items) - len(sentences); more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return message
}

// Count is "1 object" or "57 objects".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// varying matches the differences between two reports of the same failure: source ports,
// identifiers of requests, points in time and durations.
var varying = regexp.MustCompile(`(?i)` +
	`\b(?:read|write|dial) (?:tcp|udp)[46]? \S+->` + // the port on our side
	`|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b` +
	`|\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:?\d\d)?` +
	`|\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:s|ms|µs|ns)\b` +
	`|\b[0-9a-f]*[0-9][0-9a-f]{7,}\b`)

// Steady returns the earlier message if the new one differs from it only where the expression
// matches: a report that is repeated must not write the status every time.
func Steady(before, message string, varying *regexp.Regexp) string {
	if before != "" && varying.ReplaceAllString(before, "*") == varying.ReplaceAllString(message, "*") {
		return before
	}
	return message
}
