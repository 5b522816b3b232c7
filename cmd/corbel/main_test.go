// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

// corbel runs the command, and returns what it prints.
func corbel(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command, out := newCommand(), &bytes.Buffer{}
	command.SetArgs(args)
	command.SetOut(out)
	command.SetErr(out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// shopChart is the chart of the example.
func shopChart(t *testing.T) string {
	t.Helper()
	chart, err := filepath.Abs("../../examples/shop/chart")
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

func TestBadInputIsExplainedAndNothingIsWritten(t *testing.T) {
	chart := shopChart(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no arguments":       {[]string{"init"}, []string{"FOLDER is missing", "name one source"}},
		"two sources":        {[]string{"init", "a", "--go", "--from-chart", chart}, []string{"name one source"}},
		"no chart":           {[]string{"init", "a", "--from-chart", "none", "--kind", "Shop", "--group", "shop.example.com"}, []string{"there is no file or folder none"}},
		"several mistakes":   {[]string{"init", "a", "--from-chart", chart, "--kind", "shop", "--group", "shop"}, []string{"--kind", "--group"}},
		"an unknown value":   {[]string{"init", "a", "--from-chart", chart, "--kind", "Shop", "--group", "shop.example.com", "--field", "image,replica"}, []string{"replica", "replicas"}},
		"a cluster kind":     {[]string{"init", "a", "--from-chart", chart, "--kind", "Shop", "--group", "shop.example.com", "--namespaced"}, []string{"--namespaced", "CustomResourceDefinition"}},
		"a remote chart":     {[]string{"init", "a", "--from-chart", "oci://example.com/shop", "--kind", "Shop", "--group", "shop.example.com"}, []string{"helm pull"}},
		"no project":         {[]string{"init", "--update"}, []string{"is not a project of corbel init"}},
		"nothing to run":     {[]string{"dev"}, []string{"is not the project of an operator"}},
		"a bad checkout":     {[]string{"init", "a", "--go", "--corbel", "."}, []string{"is no checkout"}},
		"an unknown command": {[]string{"initialise"}, []string{"unknown command"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Chdir(folder)
			_, err := corbel(t, test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("lacks %q: %v", want, err)
				}
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}

// A project is made, runs as its service account with no other rights, and takes over a newer chart.
func TestAnOperatorFromAChart(t *testing.T) {
	kubeconfig := env.Shared(t).Kubeconfig()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	goCache(t)
	folder := filepath.Join(t.TempDir(), "shop-operator")
	chart := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(chart, os.DirFS(shopChart(t))); err != nil {
		t.Fatal(err)
	}
	printed, err := corbel(t, "init", folder, "--from-chart", chart, "--kind", "Store", "--group", "store.example.com", "--spec", "full")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(printed, "make run") {
		t.Errorf("it does not say what is next: %s", printed)
	}
	t.Chdir(folder)
	replaceIn(t, "samples/store.yaml", "spec: {}", "spec: {replicas: 1, values: {databaseSecret: database}}")
	printed, err = corbel(t, "dev", "--once", "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, want := range []string{"Deployment default/sample-web", "Store default/sample Ready", "Store default/sample is gone"} {
		if !strings.Contains(printed, want) {
			t.Errorf("lacks %q:\n%s", want, printed)
		}
	}

	replaceIn(t, "main.go", "// options describe", "// The author was here.\n\n// options describe")
	replaceIn(t, filepath.Join(chart, "values.yaml"), "greeting: Welcome", "greeting: Hello")
	if printed, err = corbel(t, "init", "--update", "--from-chart", chart); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for name, want := range map[string]string{
		"main.go": "The author was here.", "api/v1alpha1/values.go": `default="Hello"`, "chart/values.yaml": "greeting: Hello",
		"deploy/files/store.example.com_stores.yaml": "default: Hello", "samples/store.yaml": "databaseSecret: database",
	} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
	if printed, err = corbel(t, "init", "--update"); err != nil || !strings.Contains(printed, "nothing has changed") {
		t.Errorf("again: %v\n%s", err, printed)
	}
}

// goCache keeps the build cache, which is below the folder that the test replaces.
func goCache(t *testing.T) {
	t.Helper()
	if os.Getenv("GOCACHE") == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOCACHE", filepath.Join(home, ".cache", "go-build"))
	}
}

func replaceIn(t *testing.T, name, before, after string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), before) {
		t.Fatalf("%s lacks %q: %v", name, before, err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), before, after, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
