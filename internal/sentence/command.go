// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import "strings"

// Command returns words as a POSIX shell reads them: each word that the shell would read in another
// way is quoted. In a word such as "jsonpath={.spec}" only the part after the equals sign is.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		name, value, assigned := strings.Cut(word, "=")
		if assigned && name != "" && value != "" && isPlain(name) {
			quoted[i] = name + "=" + quote(value)
		} else {
			quoted[i] = quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// quote returns a word in quotes if it needs them.
func quote(word string) string {
	if word != "" && isPlain(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// isPlain reports whether no character of the word means something to a shell.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_@%+=:,./-", c)
	})
}
