// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"net/url"
	"regexp"
	"strings"
)

// schemes are those that the library fetches, and one that people try.
var schemes = []string{"http://", "https://", "ssh://", "file://", "git://"}

// isURL tells whether the library might fetch a file. Like isRepository, it
// holds for more than the library really fetches, never for less.
func isURL(p string) bool {
	if parsed, err := url.Parse(p); err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") {
		return true
	}
	lower := normalized(p)
	for _, scheme := range schemes {
		if strings.HasPrefix(lower, scheme) {
			return true
		}
	}
	return false
}

// userPattern is how the library recognises a host that is reached with ssh.
var userPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*@`)

// isRepository tells whether the library might clone something.
func isRepository(p string) bool {
	lower := normalized(p)
	return isURL(p) || userPattern.MatchString(lower) ||
		strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:")
}

func normalized(p string) string {
	lower := strings.ToLower(strings.TrimSpace(p))
	for strings.HasPrefix(lower, "git::") {
		lower = strings.TrimPrefix(lower, "git::")
	}
	return lower
}
