// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "github.com/corbel-run/corbel/api/v1alpha1"

// The approval of the second revision of a chart.
var (
	unapproved = change{
		content: chartTwo, requireApproval: true, reason: v1alpha1.ReasonApprovalRequired, history: []string{"1 Ready"},
	}
	approved = change{content: chartTwo, requireApproval: true, approve: true, history: upgraded.history}

	inRevisionOne = []string{"ConfigMap $NS/changed", "ConfigMap $NS/one", "ConfigMap $NS/same"}
)

// approvalScenarios have a revision that must be approved.
var approvalScenarios = []*scenario{
	{
		name:      "wait for the approval of a revision",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		last:      &unapproved,
		ends:      map[string]string{"main": unapproved.reason},
		history:   unapproved.history,
		applied:   ownOne,
		owned:     inRevisionOne,
		jobs:      []string{},
	},
	{
		name:      "approve a revision",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		changes:   []change{unapproved},
		last:      &approved,
		history:   approved.history,
		applied:   ownTwo,
		owned:     inRevisionTwo,
		jobs:      []string{"before of version 2 for revision 2"},
		after:     everyRevisionCanBeAppliedAgain,
	},
	{
		name:      "take back a change that waits for its approval",
		chart:     true,
		installed: map[string][]string{"main": chartOne},
		changes:   []change{unapproved},
		last:      &change{content: chartOne},
		history:   unapproved.history,
		applied:   ownOne,
		owned:     inRevisionOne,
		jobs:      []string{},
	},
}
