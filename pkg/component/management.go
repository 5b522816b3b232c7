// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/corbel-run/corbel/pkg/lifecycle"
)

// isSuspended tells whether the component asks for rest. That its management policy may
// say the same is the business of the loop.
func isSuspended(c Component) bool {
	own, ok := configurationOf[SuspensionConfiguration](c)
	return ok && own.IsSuspended()
}

// skipOf says why the dependents were left alone in a pass that did so.
func skipOf(pass lifecycle.Pass) skip {
	if pass.Policy == lifecycle.Skip {
		return skippedByPolicy
	}
	return skippedBySpec
}
