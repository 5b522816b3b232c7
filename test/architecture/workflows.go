// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	workflowsFolder = ".github/workflows"
	// writtenWorkflow is what corbel init writes.
	writtenWorkflow = "cmd/corbel/internal/scaffold/templates/common/ci.yaml.tmpl"
	updatesFile     = ".github/dependabot.yml"
)

var (
	// usedAction is a step with an action; after it may be a comment.
	usedAction = regexp.MustCompile(`^\s*(?:- )?uses: (\S+)(.*)$`)
	// pinnedAction is an action, the commit of a version, and that version.
	pinnedAction = regexp.MustCompile(`^([\w-]+/[\w-]+)(?:/[\w/-]+)?@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$`)
	// calledTarget is a target of make that a workflow calls.
	calledTarget = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
)

// Workflows checks the workflows of the repository, and the one that corbel init writes: they name each action by a commit,
// all the same one; they can write nothing unless a job says so; and they call targets that exist. Dependabot changes
// the workflows of the repository only, so this check names the places that have to follow.
func Workflows(t *Tree) []Violation {
	var found []Violation
	makefiles := ""
	for _, name := range []string{"Makefile", "hack/controlplane.mk"} {
		if text, ok := t.text(name); ok {
			makefiles += "\n" + text.Content
		}
	}
	pins := map[string]string{}
	for _, text := range t.Texts {
		isOurs := path.Dir(text.Path) == workflowsFolder
		if !isOurs && text.Path != writtenWorkflow && !strings.HasPrefix(text.Path, ".github/actions/") {
			continue
		}
		for number, line := range strings.Split(text.Content, "\n") {
			where := lineOf(text, number+1)
			found = append(found, unpinned(where, line, pins)...)
			for _, match := range calledTarget.FindAllStringSubmatch(line, -1) {
				if isOurs && !strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.Contains(makefiles, "\n"+match[1]+":") {
					found = append(found, violation(where, "calls make %s, and no Makefile has this target", match[1]))
				}
			}
		}
		if isOurs || text.Path == writtenWorkflow {
			found = append(found, writable(text)...)
		}
	}
	return append(found, notUpdated(t)...)
}

// unpinned finds an action in a line that is not named by a commit, or by another one than elsewhere.
func unpinned(where, line string, pins map[string]string) []Violation {
	match := usedAction.FindStringSubmatch(line)
	if match == nil || strings.HasPrefix(match[1], "./") {
		return nil
	}
	pin := pinnedAction.FindStringSubmatch(match[1] + match[2])
	if pin == nil {
		return []Violation{violation(where, "uses %s: write the full hash of the commit, and the version after it: owner/action@HASH # v1.2.3", match[1])}
	}
	want := pin[2] + " # " + pin[3]
	if other, known := pins[pin[1]]; known && other != want {
		return []Violation{violation(where, "uses %s@%s, and another file uses %s: write the newer one in both", pin[1], want, other)}
	}
	pins[pin[1]] = want
	return nil
}

// writable returns a violation for a workflow whose default permissions allow writes.
func writable(text *Text) []Violation {
	var workflow struct {
		Permissions map[string]string `json:"permissions"`
	}
	if err := yaml.Unmarshal([]byte(text.Content), &workflow); err != nil {
		return []Violation{violation(text.Path, "is no workflow with permissions as a map: %v", err)}
	}
	if got := fmt.Sprint(workflow.Permissions); workflow.Permissions == nil || got != "map[]" && got != "map[contents:read]" {
		return []Violation{violation(text.Path, "must begin with the permissions {} or contents: read; a job that needs more has permissions of its own")}
	}
	return nil
}

// notUpdated finds modules that Dependabot does not look at.
func notUpdated(t *Tree) []Violation {
	updates, ok := t.text(updatesFile)
	if !ok {
		return nil
	}
	lines := strings.Split(updates.Content, "\n")
	var found []Violation
	for _, text := range t.Texts {
		if folder, base := path.Split(text.Path); base == "go.mod" && !slices.Contains(lines, "  - /"+strings.TrimSuffix(folder, "/")) {
			found = append(found, violation(updatesFile, "does not list the module /%s", strings.TrimSuffix(folder, "/")))
		}
	}
	return found
}
