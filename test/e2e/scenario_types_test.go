// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

// A component that brings a type, instances of it, and what stands for its operator.
var (
	machine = []string{crd(), serviceAccount("operator"), configMap("operator", "1"), gear("ours", "1")}

	typeScenarios = []*scenario{
		{
			name:   "install a type with its operator and an instance",
			wanted: map[string][]string{"main": machine},
			marked: []string{
				"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run", "Gear $NS/ours", "ServiceAccount $NS/operator",
			},
		},
		{
			name:      "delete a type with its operator and an instance",
			installed: map[string][]string{"main": machine},
		},
		{
			name:      "drop a type and its instance",
			installed: map[string][]string{"main": machine},
			wanted:    map[string][]string{"main": {configMap("operator", "2")}},
			marked:    []string{"ConfigMap $NS/operator"},
		},
		{
			name:      "drop a type of which others have an instance",
			installed: map[string][]string{"main": machine},
			visitors:  []string{gear("theirs", "1")},
			wanted:    map[string][]string{"main": {configMap("operator", "2")}},
			ends:      map[string]string{"main": "Processing"},
			marked:    []string{"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run"},
		},
		{
			name:      "delete a component of whose type others have an instance",
			installed: map[string][]string{"main": machine},
			visitors:  []string{gear("theirs", "1")},
			ends:      map[string]string{"main": "DeletionBlocked"},
			marked: []string{
				"ConfigMap $NS/operator", "CustomResourceDefinition gears.$ID.e2e.corbel.run", "Gear $NS/ours", "ServiceAccount $NS/operator",
			},
		},
	}
)
