// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

// maxRules limits the rules of an ignore file.
const maxRules = 1000

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	segments []string
	// negated includes files again, folders means that only folders are meant.
	negated, folders bool
}

type ignoreRules []ignoreRule

// parseIgnore reads an ignore file, which follows the rules of .gitignore.
func parseIgnore(name string, data []byte) (ignoreRules, error) {
	var rules ignoreRules
	var errs []error
	for i, line := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var rule ignoreRule
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			rule.negated, line = true, rest
		}
		line, rule.folders = strings.CutSuffix(line, "/")
		// A slash at the start or in the middle ties the rule to the root.
		if !strings.Contains(line, "/") {
			line = "**/" + line
		}
		rule.segments = slices.CompactFunc(strings.Split(strings.TrimPrefix(line, "/"), "/"), func(a, b string) bool {
			return a == "**" && b == "**"
		})
		for _, segment := range rule.segments {
			if _, err := path.Match(segment, ""); err != nil {
				errs = append(errs, fmt.Errorf("%s: line %d: pattern %q: %w", name, i+1, shorten(segment), err))
			}
		}
		rules = append(rules, rule)
	}
	if len(rules) > maxRules {
		errs = append(errs, &excess.Error{Message: fmt.Sprintf("%s: it holds more than %d rules", name, maxRules)})
	}
	return rules, errors.Join(errs...)
}

// ignores reports whether a file is ignored, be it by itself or by a folder above it. A file in an
// ignored folder cannot be included again.
func (r ignoreRules) ignores(name string) bool {
	if len(r) == 0 {
		return false
	}
	segments := strings.Split(name, "/")
	for end := 1; end <= len(segments); end++ {
		ignored := false
		for _, rule := range r {
			if rule.folders && end == len(segments) {
				continue
			}
			if rule.negated == ignored && matches(rule.segments, segments[:end]) {
				ignored = !rule.negated
			}
		}
		if ignored {
			return true
		}
	}
	return false
}

// matches compares segment by segment. It keeps, for each part of the pattern,
// which parts of the path can be reached, so that no pattern takes long.
func matches(pattern, segments []string) bool {
	reached := make([]bool, len(segments)+1)
	reached[0] = true
	for _, part := range pattern {
		next := make([]bool, len(segments)+1)
		for at, ok := range reached {
			switch {
			case part == "**":
				next[at] = ok || at > 0 && next[at-1]
			case ok && at < len(segments):
				same, _ := path.Match(part, segments[at])
				next[at+1] = same
			}
		}
		reached = next
	}
	return reached[len(segments)]
}
