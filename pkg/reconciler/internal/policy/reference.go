// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readDependsOn reads references, separated by commas or line ends.
func readDependsOn(set *Set, text string) error {
	var references []Reference
	var errs []error
	items := split(text)
	if len(items) == 0 {
		errs = append(errs, errors.New("names no object"))
	}
	for _, item := range items {
		reference, err := ParseReference(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		references = append(references, reference)
	}
	set.DependsOn = references
	return errors.Join(errs...)
}

// ParseReference reads a reference to another object. The whole form is
// group/Kind/namespace/name, where the group is empty for the core types. The
// namespace may be left out if it is the same or if there is none:
// group/Kind/name. A reference that starts with a capital letter has no group:
// Kind/namespace/name or Kind/name.
func ParseReference(text string) (Reference, error) {
	parts := strings.Split(text, "/")
	if first, _ := utf8.DecodeRuneInString(parts[0]); unicode.IsUpper(first) {
		parts = append([]string{""}, parts...)
	}
	var reference Reference
	switch len(parts) {
	case 3:
		reference = Reference{Group: parts[0], Kind: parts[1], Name: parts[2]}
	case 4:
		reference = Reference{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}
	}
	if reference.Kind == "" || reference.Name == "" || strings.ContainsAny(text, " \t") {
		return Reference{}, fmt.Errorf("%s is not a reference, such as apps/Deployment/shop/api (group/Kind/namespace/name), apps/Deployment/api or Secret/credentials", quote(text))
	}
	return reference, nil
}

// String returns the shortest form that ParseReference reads.
func (r Reference) String() string {
	parts := make([]string, 0, 4)
	if first, _ := utf8.DecodeRuneInString(r.Kind); r.Group != "" || !unicode.IsUpper(first) {
		parts = append(parts, r.Group)
	}
	parts = append(parts, r.Kind)
	if r.Namespace != "" {
		parts = append(parts, r.Namespace)
	}
	return strings.Join(append(parts, r.Name), "/")
}
