// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"strings"
	"testing"
)

func TestWorkflows(t *testing.T) {
	const file = workflowsFolder + "/ci.yaml"
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	workflow := func(steps string) string {
		return "permissions:\n  contents: read\njobs:\n  test:\n    steps:\n" + steps
	}
	runRules(t, Workflows, []rule{
		{name: "an action by its commit, a local action, and a target that exists", files: map[string]string{
			"Makefile": "test:\n",
			file:       workflow("    - uses: a/b@" + commit + " # v1.2.3\n    - uses: ./.github/actions/setup\n    - run: make test\n"),
		}},
		{name: "an action by a tag", files: map[string]string{file: workflow("    - uses: a/b@v1\n")},
			want: []string{file + ":6: uses a/b@v1: write the full hash of the commit"}},
		{name: "a commit without its version", files: map[string]string{file: workflow("    - uses: a/b/c@" + commit + "\n")},
			want: []string{file + ":6: uses a/b/c@" + commit + ": write the full hash"}},
		{name: "what corbel init writes has another commit", files: map[string]string{
			file:            workflow("    - uses: a/b@" + commit + " # v1.2.3\n"),
			writtenWorkflow: workflow("    - uses: a/b@" + other + " # v1.2.2\n"),
		}, want: []string{writtenWorkflow + ":6: uses a/b@" + other + " # v1.2.2, and another file uses " + commit + " # v1.2.3"}},
		{name: "an action of ours uses another by a tag", files: map[string]string{".github/actions/setup/action.yaml": "runs:\n  steps:\n  - uses: a/b@v1\n"},
			want: []string{".github/actions/setup/action.yaml:3: uses a/b@v1"}},
		{name: "a workflow without permissions", files: map[string]string{file: "jobs: {}\n"},
			want: []string{file + ": must begin with the permissions"}},
		{name: "a workflow that can write", files: map[string]string{file: "permissions:\n  contents: write\njobs: {}\n"},
			want: []string{file + ": must begin with the permissions"}},
		{name: "permissions by one word", files: map[string]string{file: "permissions: write-all\njobs: {}\n"},
			want: []string{file + ": is no workflow with permissions as a map"}},
		{name: "permissions of a job, and none of the workflow", files: map[string]string{
			file: "permissions: {}\njobs:\n  publish:\n    permissions:\n      contents: write\n",
		}},
		{name: "a target that does not exist", files: map[string]string{"Makefile": "test:\n", file: workflow("    - run: make tests\n")},
			want: []string{file + ":6: calls make tests, and no Makefile has this target"}},
		{name: "a module that Dependabot does not look at", files: map[string]string{
			updatesFile: "updates:\n- directories:\n  - /\n", "test/x/go.mod": "module example.com/x\n",
		}, want: []string{updatesFile + ": does not list the module /test/x"}},
	})
}
