// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corbel-run/corbel/internal/sentence"
)

// Text is the chain for people. Each message is one line, so that no text from the cluster looks like a line of its own.
// Times are relative to now.
func (c Chain) Text(now time.Time) string {
	var b strings.Builder
	b.WriteString(c.headline(now) + "\n")
	indent := ""
	for _, link := range c.Links {
		line := sentence.OneLine(link.Object.String() + ": " + link.Message)
		if link.Since != nil && !link.Since.IsZero() {
			line += fmt.Sprintf(" (since %s)", age(now, link.Since.Time))
		}
		fmt.Fprintf(&b, "%s└─ %s\n", indent, line)
		indent += "   "
		if link.Field != "" {
			fmt.Fprintf(&b, "%sfield: %s\n", indent, sentence.OneLine(link.Field))
		}
	}
	if len(c.HeldBack) > 0 {
		fmt.Fprintf(&b, "Held back by it: %s\n", sentence.OneLine(strings.Join(c.HeldBack, ", ")))
	}
	for _, notice := range c.Notices {
		fmt.Fprintf(&b, "Note: %s\n", sentence.OneLine(notice))
	}
	for _, unknown := range c.Unknown {
		fmt.Fprintf(&b, "Not known: %s\n", sentence.OneLine(unknown))
	}
	if c.Command != "" {
		fmt.Fprintf(&b, "Try: %s\n", c.Command)
	}
	return sentence.Printable(b.String())
}

func (c Chain) headline(now time.Time) string {
	line := c.Component.String() + " is Ready"
	if !c.Ready {
		line = c.Component.String() + " is not Ready"
	}
	if c.Since != nil && !c.Since.IsZero() {
		line += " since " + age(now, c.Since.Time)
	}
	var facts []string
	for _, fact := range []string{string(c.State), c.Reason, c.Progress} {
		if fact != "" && fact != "Ready" && !slices.Contains(facts, fact) {
			facts = append(facts, fact)
		}
	}
	if len(facts) > 0 {
		line += " (" + sentence.OneLine(strings.Join(facts, ", ")) + ")"
	}
	return line
}

func age(now, since time.Time) string { return duration.HumanDuration(max(now.Sub(since), 0)) }
