// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the Go types of testdata")

const license = "// SPDX-FileCopyrightText: The Corbel Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

// charts are the folders of testdata and the names of their types.
var charts = map[string]string{"bitnami": "Cache", "helmdocs": "Shop", "schema": "Store"}

// learnChart learns the values of a folder of testdata.
func learnChart(t *testing.T, folder string) (*Field, []string) {
	t.Helper()
	values, err := os.ReadFile(filepath.Join("testdata", folder, "values.yaml"))
	check(t, err)
	schema, err := os.ReadFile(filepath.Join("testdata", folder, "values.schema.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	root, notes, err := Learn(Source{Values: values, Schema: schema})
	check(t, err)
	return root, notes
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file returns the source file of a package with the types.
func file(name string, code Code) string {
	return fmt.Sprintf("package %s\n\nimport (\n\t%s\n)\n\n%s", name, strings.Join(code.Imports, "\n\t"), code.Source)
}

func TestGoTypesOfCharts(t *testing.T) {
	for folder, name := range charts {
		t.Run(folder, func(t *testing.T) {
			root, notes := learnChart(t, folder)
			code, err := GoTypes(root, name)
			check(t, err)
			compare(t, filepath.Join("testdata", folder, "types.go"), license+strings.TrimSpace(file(folder, code))+"\n")
			compare(t, filepath.Join("testdata", folder, "notes.txt"), strings.Join(notes, "\n")+"\n")
		})
	}
}

// compare compares a text with a golden file.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		check(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if the new text is right, run the test with -rewrite:\n%s", path, diff)
	}
}
