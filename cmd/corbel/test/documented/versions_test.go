// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheSupportedVersionsAreThoseOfTheModules compares the table of RELEASING.md with the files that
// it names.
func TestTheSupportedVersionsAreThoseOfTheModules(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	document := read("RELEASING.md")
	for _, row := range []struct{ file, version, want string }{
		{"go.mod", `(?m)^go ([0-9]+\.[0-9]+)`, "| Go | %s |"},
		{"go.mod", `sigs\.k8s\.io/controller-runtime (v[0-9]+\.[0-9]+)`, "| controller-runtime | %s |"},
		{"go.mod", `k8s\.io/client-go v0\.([0-9]+)`, "| v0.%[1]s, those of Kubernetes 1.%[1]s |"},
		{"hack/controlplane.mk", `CONTROLPLANE_VERSION := (v[0-9]+\.[0-9]+)`, "| API server that the tests run against | %s |"},
	} {
		match := regexp.MustCompile(row.version).FindStringSubmatch(read(row.file))
		if match == nil {
			t.Errorf("%s has no version like %s", row.file, row.version)
			continue
		}
		want := strings.NewReplacer("%s", match[1], "%[1]s", match[1]).Replace(row.want)
		if !strings.Contains(document, want) {
			t.Errorf("RELEASING.md has no row with %q, as %s says", want, row.file)
		}
	}
}

// TestTheChangelogHasAnUnreleasedSection expects the form that make release reads.
func TestTheChangelogHasAnUnreleasedSection(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(content), -1)
	if len(headings) == 0 || headings[0][1] != "[Unreleased]" {
		t.Errorf("the first section is not [Unreleased]: %q", headings)
	}
	release := regexp.MustCompile(`^\[[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	for _, heading := range headings[min(1, len(headings)):] {
		if !release.MatchString(heading[1]) {
			t.Errorf("section %q has not the form [1.2.3] - YEAR-MONTH-DAY", heading[1])
		}
	}
}
