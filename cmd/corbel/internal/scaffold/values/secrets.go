// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"regexp"
	"slices"
	"strings"
)

// Secrets returns the paths of the values of a tree that do not belong into a spec as texts: passwords and tokens, and
// the names of Secrets that a user provides. Values in lists have no path.
func Secrets(root *Field) []string {
	var paths []string
	eachText(root, "", func(path string, field, object *Field) {
		if isSecretName(field.Key) || isSecret(field, object) {
			paths = append(paths, path)
		}
	})
	return paths
}

// Refer turns the values with the given paths into references to Secrets: those with the name of a Secret into
// references to all of it, and other ones into references to a key.
func Refer(root *Field, paths []string) {
	eachText(root, "", func(path string, field, _ *Field) {
		if !slices.Contains(paths, path) {
			return
		}
		kind := SecretKey
		if isSecretName(field.Key) {
			kind = SecretName
		}
		*field = Field{Key: field.Key, Type: kind, Doc: field.Doc, Default: field.Default, Origin: field.Origin}
	})
}

// eachText calls a function for the texts below an object, with their paths and the objects that they are in.
func eachText(object *Field, path string, do func(path string, field, object *Field)) {
	for _, field := range object.Fields {
		switch below := join(path, field.Key); field.Type {
		case Object:
			eachText(field, below, do)
		case String:
			do(below, field, object)
		}
	}
}

// isSecretName reports whether a text with the key is the name of a Secret that exists.
func isSecretName(key string) bool {
	plain := strings.ToLower(strings.Join(wordsOf(key), ""))
	return strings.Contains(plain, "existingsecret") && !strings.HasSuffix(plain, "key") && !strings.HasSuffix(plain, "keys")
}

var (
	// secretKeys end the keys, in lower case and without what separates words, of texts that are secret.
	secretKeys = regexp.MustCompile(`(password|passwd|passphrase|token|tokenvalue|secretkey|secretaccesskey|apikey|appkey|privatekey|encryptionkey|signingkey|masterkey|licensekey|clientsecret|jwtsecret)$`)
	// nameOfKey is a comment about the name of a key in a Secret.
	nameOfKey = regexp.MustCompile(`(?i)\b(name|key)s? (of|in|within|from|for|inside)\b.*\b(secret|key)`)
)

// isSecret reports whether a text is secret, and not the name of a key beside the name of a Secret.
func isSecret(field, object *Field) bool {
	plain := strings.ToLower(strings.Join(wordsOf(field.Key), ""))
	if !secretKeys.MatchString(plain) || len(field.Enum) > 0 || nameOfKey.MatchString(field.Doc) {
		return false
	}
	return !strings.HasSuffix(plain, "key") || !slices.ContainsFunc(object.Fields, func(f *Field) bool {
		return slices.Contains([]string{"existingsecret", "existingsecretname", "secretname", "secret"}, strings.ToLower(f.Key))
	})
}
