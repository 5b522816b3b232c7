// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/corbel-run/corbel/test/check"
)

func TestASubchartIsTakenOfTheHistoryOfAGitRepository(t *testing.T) {
	folder := t.TempDir()
	repository := filepath.Join(folder, "charts.example.com")
	run := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", err, output)
		}
	}
	check.NoError(t, os.MkdirAll(filepath.Join(repository, "stable", "site"), 0o755))
	run("init", "-q")
	for _, version := range []string{"1.0.0", "1.2.0", `"1.1.0"`, "2.0.0 # the latest"} {
		text := "apiVersion: v2\nname: web\nversion: " + version + "\ndependencies:\n- {name: a, version: 1.3.0}\n"
		check.NoError(t, os.WriteFile(filepath.Join(repository, "stable", "site", "Chart.yaml"), []byte(text), 0o644))
		run("add", ".")
		run("commit", "-q", "-m", "version")
	}
	subcharts := &trees{folder: folder, charts: map[string][]tree{}}
	for wanted, version := range map[string]string{"1.x": "1.2.0", "~1.1.0": "1.1.0", "1.0.0": "1.0.0", ">=1": "2.0.0"} {
		data, err := subcharts.FetchVersion(t.Context(), "https://charts.example.com/stable", "web", wanted)
		check.NoError(t, err)
		chart, err := loader.LoadArchive(bytes.NewReader(data))
		check.NoError(t, err)
		check.Same(t, version, chart.Metadata.Version)
	}
	for _, missing := range [][2]string{{"https://charts.example.com", "3.x"}, {"https://other.example.com", "1.x"}} {
		_, err := subcharts.FetchVersion(t.Context(), missing[0], "web", missing[1])
		check.Fails(t, err, "no git repository for "+missing[0]+" has web "+missing[1])
	}
}
