// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "slices"

// scenarios are all that TestCrash and TestTwoLeaders go through.
var scenarios = slices.Concat(
	lifeScenarios,
	typeScenarios,
	policyScenarios,
	namespaceScenarios,
	homeScenarios,
	remoteScenarios,
)
