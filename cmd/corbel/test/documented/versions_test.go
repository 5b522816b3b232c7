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
