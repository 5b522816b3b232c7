// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// hookLine is the line of an annotation that makes an object a hook.
	hookLine = regexp.MustCompile(`(?m)^[^#\n]*?(helm\.sh/hook)["']? *:(.*)$`)
	// hookEvent is an event that Helm knows, or that Helm 2 knew.
	hookEvent = regexp.MustCompile(`^((pre|post)-(install|upgrade|delete|rollback)|test|test-success|test-failure|crd-install)$`)
	// printed is an action that prints a value of the chart.
	printed = regexp.MustCompile(`toYaml \$?\.Values\.([A-Za-z0-9_.]+)`)
	// objectField is a field of an object.
	objectField = regexp.MustCompile(`(?m)^(apiVersion|kind|metadata|spec|data|stringData|binaryData):`)
)

// formerEvents are those of Helm 2: later versions leave out the objects that have one of them.
var formerEvents = []string{"test-failure", "crd-install"}

// isNeverApplied reports whether an object is a hook for tests only, or a hook of Helm 2: such an object is rendered,
// and not applied.
func (s *scanner) isNeverApplied(template, object string) bool {
	events := s.eventsIn(template, object, map[string]bool{})
	if slices.ContainsFunc(events, func(event string) bool { return slices.Contains(formerEvents, event) }) {
		return true
	}
	return len(events) > 0 && !slices.ContainsFunc(events, func(event string) bool { return !strings.HasPrefix(event, "test") })
}

// eventsIn returns the events of the hook annotations in a text, in the definitions that it includes, and in the defaults
// that it prints. It leaves out annotations that a branch of the text may leave out, unless a default decides about them, and
// those of other objects, such as a manifest in a ConfigMap.
func (s *scanner) eventsIn(template, text string, seen map[string]bool) (events []string) {
	for _, at := range hookLine.FindAllStringSubmatchIndex(text, -1) {
		if before := text[:at[2]]; isBeforeContent(before) && !endsInBranch(before) {
			events = append(events, s.eventsOf(template, text[at[4]:at[5]])...)
		}
	}
	for _, at := range printed.FindAllStringSubmatchIndex(text, -1) {
		if annotations, _ := s.defaultOf(template, text[at[2]:at[3]]).(map[string]any); isBeforeContent(text[:at[0]]) {
			hook, _ := annotations["helm.sh/hook"].(string)
			events = append(events, s.eventsOf(template, hook)...)
		}
	}
	for _, at := range included.FindAllStringSubmatchIndex(text, -1) {
		if name, before := text[at[2]:at[3]], text[:at[0]]; !seen[name] && isBeforeContent(before) && !endsInBranch(before) {
			seen[name] = true
			events = append(events, s.eventsIn(template, s.defines[name], seen)...)
		}
	}
	return events
}

// eventsOf returns the events in the value of a hook annotation, also those in its actions and in their defaults.
func (s *scanner) eventsOf(template, value string) (events []string) {
	value, _, _ = strings.Cut(value, " #")
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r < ' ' || strings.ContainsRune(` "',{}()|`, r) }) {
		if match := ofValues.FindStringSubmatch(word); match != nil {
			word, _ = s.defaultOf(template, match[1]).(string)
		}
		for event := range strings.SplitSeq(word, ",") {
			if event = strings.ToLower(strings.TrimSpace(event)); hookEvent.MatchString(event) {
				events = append(events, event)
			}
		}
	}
	return events
}

// isBeforeContent reports whether the text of an object ends before its spec or its data.
func isBeforeContent(text string) bool {
	fields := objectField.FindAllStringSubmatch(text, -1)
	return len(fields) == 0 || slices.Contains([]string{"apiVersion", "kind", "metadata"}, fields[len(fields)-1][1])
}

// endsInBranch reports whether a branch that begins in a flattened text does not end in it.
func endsInBranch(text string) bool {
	open := 0
	for _, r := range text {
		switch string(r) {
		case openBranch, openAlternatives:
			open++
		case closeBranch, closeAlternatives:
			open = max(0, open-1)
		}
	}
	return open > 0
}
