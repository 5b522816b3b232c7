// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConflict means that the object on the server is no longer the one that the
// decisions of this pass rest on. It is no failure: end the pass quietly and come again.
var ErrConflict = errors.New("the object was changed by another client")

// PrunedError means that the API server did not keep status fields as they were
// sent. Usually the CustomResourceDefinition is older than the operator.
type PrunedError struct {
	// Object names the object.
	Object string
	// Fields are the JSON paths of the fields, sorted.
	Fields []string
}

// Error names the fields. Commit and Patch wrap it with the object.
func (e *PrunedError) Error() string {
	return fmt.Sprintf("the API server does not keep %s as sent: update the CustomResourceDefinition", strings.Join(e.Fields, ", "))
}

// NoStatusSubresourceError means that the CustomResourceDefinition does not
// enable the status subresource.
type NoStatusSubresourceError struct {
	// Object names the object.
	Object string
}

// Error says what to do. Commit and Patch wrap it with the object.
func (e *NoStatusSubresourceError) Error() string {
	return "its type has no status subresource: enable it in the CustomResourceDefinition"
}
