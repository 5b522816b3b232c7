// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

// In the test of an operator, this is the body of a test function, and the file is
// testdata/app.golden.
func Example() {
	test := func(t testing.TB, golden string) {
		templates := fstest.MapFS{"config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  size: {{ .Values.size | quote }}\n")}}
		g, err := gotemplate.New(templates, ".", gotemplate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := manifeststest.Case{Generator: g, Namespace: "prod", Name: "app", Parameters: types.UnstructurableMap{"size": 3}}
		c.Golden(t, golden)
		c.Deterministic(t)
	}

	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	golden := filepath.Join(folder, "app.golden")
	if err := os.WriteFile(golden, []byte("apiVersion: v1\ndata:\n  size: \"3\"\nkind: ConfigMap\nmetadata:\n  name: app\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	passed := testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{
		{Name: "TestApp", F: func(t *testing.T) { test(t, golden) }},
	})
	fmt.Println("passed:", passed)
	// Output: passed: true
}
