// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// orphanScenarios drop or delete objects of every delete policy.
func orphanScenarios() []*scenario {
	var all []*scenario
	for _, policy := range []string{"orphan", "orphan-on-apply", "orphan-on-delete"} {
		kept := configMap("left", "1", "delete-policy", policy)
		rest := configMap("rest", "1")
		upgrade := &scenario{
			name:      "drop an object under " + policy,
			installed: map[string][]string{"main": {kept, rest}},
			desired:   map[string][]string{"main": {configMap("rest", "2")}},
			owned:     []string{"ConfigMap $NS/rest"},
			after:     configMapsAre("left", "rest"),
		}
		deletion := &scenario{
			name:      "delete an object under " + policy,
			installed: map[string][]string{"main": {kept, rest}},
			after:     configMapsAre("left"),
		}
		switch policy {
		case "orphan-on-apply":
			deletion.after = configMapsAre()
		case "orphan-on-delete":
			upgrade.after = configMapsAre("rest")
		}
		all = append(all, upgrade, deletion)
	}
	return all
}

// adoptionScenarios are the policies over objects of three owners.
func adoptionScenarios() []*scenario {
	owners := []struct{ owner, name, there string }{
		{"", "what has no owner", configMap("there", "theirs")},
		{"Helm", "what belongs to Helm", configMap("there", "theirs", "meta.helm.sh/release-name", "web")},
		{"another operator", "what belongs to another operator", labelled(configMap("there", "theirs"), "other.example.com/owner-id", "abc")},
	}
	var all []*scenario
	for _, policy := range []string{"if-unowned", "never", "always"} {
		for _, o := range owners {
			s := &scenario{
				name:    "adopt " + o.name + " under " + policy,
				desired: map[string][]string{"main": {configMap("there", "ours", "adoption-policy", policy), configMap("rest", "1")}},
				owned:   []string{"ConfigMap $NS/rest"},
			}
			if policy == "always" || policy == "if-unowned" && o.owner == "" {
				s.existing = []string{o.there}
				s.owned = append(s.owned, "ConfigMap $NS/there")
			} else {
				s.others = []string{o.there}
				s.ends = map[string]string{"main": vocabulary.ReasonOwnerConflict}
			}
			all = append(all, s)
		}
	}
	return append(all, &scenario{
		name: "ignore what has no owner",
		desired: map[string][]string{"main": {
			configMap("there", "ours", "adoption-policy", "ignore"), configMap("rest", "1", "adoption-policy", "ignore"),
		}},
		others: []string{configMap("there", "theirs")},
		owned:  []string{"ConfigMap $NS/rest"},
	})
}

// purgeScenarios have Jobs that do their work once and are deleted then, like
// the hooks of a package manager.
func purgeScenarios() []*scenario {
	content := func(version string) []string {
		return []string{
			configMap("settings", version, "apply-order", "-2"),
			job("before", version, "apply-order", "-1", "purge-order", "-1", "update-policy", "recreate"),
			configMap("server", version),
			job("after", version, "apply-order", "1", "purge-order", "1", "update-policy", "recreate"),
			job("kept", version, "apply-order", "2", "update-policy", "recreate"),
		}
	}
	owned := []string{"ConfigMap $NS/server", "ConfigMap $NS/settings", "Job $NS/kept"}
	return []*scenario{
		{
			name:    "install with Jobs that are purged",
			desired: map[string][]string{"main": content("1")},
			owned:   owned,
		},
		{
			name:      "upgrade with Jobs that are purged",
			installed: map[string][]string{"main": content("1")},
			desired:   map[string][]string{"main": content("2")},
			owned:     owned,
			recreated: []string{"Job $NS/kept"},
		},
		{
			name:      "delete with Jobs that were purged",
			installed: map[string][]string{"main": content("1")},
		},
	}
}

// handoverScenarios move an object from one component to another.
func handoverScenarios() []*scenario {
	var all []*scenario
	for _, policy := range []string{"always"} {
		all = append(all, &scenario{
			name:      "hand over to a component with the policy " + policy,
			installed: map[string][]string{"a": {configMap("moved", "a"), configMap("a", "1")}, "b": {configMap("b", "1")}},
			desired: map[string][]string{
				"a": {configMap("a", "2")},
				"b": {configMap("b", "2"), configMap("moved", "b", "adoption-policy", policy)},
			},
			owned:     []string{"ConfigMap $NS/a", "ConfigMap $NS/b", "ConfigMap $NS/moved"},
			recreated: []string{"ConfigMap $NS/moved"}, // dropped before it is asked for
		})
	}
	return all
}

// labelled adds a label to a manifest.
func labelled(text, key, value string) string {
	return strings.Replace(text, "metadata:\n", "metadata:\n  labels: {"+key+": "+quoted(value)+"}\n", 1)
}

var policyScenarios = slices.Concat(orphanScenarios(), adoptionScenarios(), purgeScenarios(), handoverScenarios())

// The approval of the second revision of a chart.
var (
	unapproved = change{
		content: chartTwo, requireApproval: true, reason: vocabulary.ReasonApprovalRequired, history: []string{"1 Ready"},
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
