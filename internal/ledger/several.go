// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxNamed is how many errors of many are named.
const maxNamed = 3

// severalErrors are as many errors as there are Secrets, with a text of bounded length.
type severalErrors []error

// several joins errors; nil if there are none.
func several(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return severalErrors(errs)
}

// Error names the first of them.
func (e severalErrors) Error() string {
	var texts []string
	for _, err := range e[:min(len(e), maxNamed)] {
		texts = append(texts, err.Error())
	}
	if more := len(e) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all of them.
func (e severalErrors) Unwrap() []error { return e }

// isDenied tells whether nothing is wrong but that we have not the rights: of joined
// errors, each has to say so.
func isDenied(err error) bool {
	joined, ok := errors.AsType[severalErrors](err)
	if !ok {
		return apierrors.IsForbidden(err)
	}
	return !slices.ContainsFunc(joined, func(err error) bool { return !isDenied(err) })
}
