// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wordsOf splits a key into words: at what is no letter or digit, and at capitals.
func wordsOf(key string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), nil
		}
	}
	runes := []rune(key)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			afterCapital := unicode.IsUpper(runes[i-1])
			beforeSmall := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !afterCapital || beforeSmall {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return words
}

// initialisms are the words that Go identifiers have in capitals, by the conventions of Go and of the API of Kubernetes.
var initialisms = strings.Fields("ACL API ASCII CA CIDR CPU CRD CSS DB DNS EOF GID GUID HTML HTTP HTTPS ID IP JSON JWT OIDC PVC QPS RAM RBAC RPC SLA SMTP SQL " +
	"SSH SSL TCP TLS TTL UDP UI UID URI URL UTF8 UUID VM XML XMPP XSRF XSS YAML")

// goName returns an exported Go identifier for a key.
func goName(key string) string {
	var name strings.Builder
	for _, word := range wordsOf(key) {
		runes := []rune(word)
		runes[0] = unicode.ToUpper(runes[0])
		upper := strings.ToUpper(word)
		singular, isPlural := strings.CutSuffix(upper, "S")
		switch {
		case slices.Contains(initialisms, upper):
			name.WriteString(upper)
		case isPlural && slices.Contains(initialisms, singular):
			name.WriteString(singular + "s")
		default:
			name.WriteString(string(runes))
		}
	}
	// A name that begins with a digit, or in a script without capitals, is not exported.
	if first := []rune(name.String()); len(first) == 0 || !unicode.IsUpper(first[0]) {
		return "X" + name.String()
	}
	return name.String()
}

// names hands out unique names.
type names map[string]bool

func (n names) unique(name string) string {
	result := name
	for i := 2; n[result]; i++ {
		result = name + strconv.Itoa(i)
	}
	n[result] = true
	return result
}

// isCarried reports whether a JSON tag can carry a key: encoding/json ignores others.
func isCarried(key string) bool {
	// A tag with "-" alone leaves the field out; not all readers of tags know how to escape it.
	if key == "" || key == "-" {
		return false
	}
	for _, r := range key {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}
