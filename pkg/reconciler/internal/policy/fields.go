// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// identity are the fields that tell which object it is. A write without them is not possible.
var identity = []string{"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"}

// readIgnoreFields reads JSON pointers (RFC 6901), separated by commas or line
// ends; so a pointer cannot hold a comma. A pointer stands for the field and
// everything below it; a number stands for the element of a list by its
// position in the manifest. They are added to those that are known already.
func readIgnoreFields(set *Set, text string) error {
	pointers := split(text)
	err := CheckPointers(pointers)
	pointers = append(pointers, set.IgnoreFields...)
	slices.Sort(pointers)
	set.IgnoreFields = slices.Compact(pointers)
	return err
}

// CheckPointers reports everything that is wrong with the fields to ignore.
func CheckPointers(pointers []string) error {
	var errs []error
	if len(pointers) == 0 {
		errs = append(errs, errors.New("names no field"))
	}
	for _, pointer := range pointers {
		if err := checkPointer(pointer); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") || pointer == "/" || strings.Contains(pointer, "//") || strings.HasSuffix(pointer, "/") {
		return fmt.Errorf("%s is not a JSON pointer, such as /spec/replicas", quote(pointer))
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && !strings.HasPrefix(pointer[i+1:], "0") && !strings.HasPrefix(pointer[i+1:], "1") {
			return fmt.Errorf("%s is not a JSON pointer: after ~ comes 0 (for ~) or 1 (for /)", quote(pointer))
		}
	}
	if slices.Contains(identity, pointer) {
		return fmt.Errorf("%s identifies the object and cannot be ignored", quote(pointer))
	}
	return nil
}
