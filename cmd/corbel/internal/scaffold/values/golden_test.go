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

// charts are the folders of testdata and the names of their types.
var charts = map[string]string{"bitnami": "Cache", "helmdocs": "Shop", "schema": "Store"}

// learnChart learns the values of a folder of testdata.
func learnChart(t *testing.T, folder string) (*Field, []string) {
	t.Helper()
	values, err := os.ReadFile(filepath.Join("testdata", folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join("testdata", folder, "values.schema.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	root, notes, err := Learn(Source{Values: values, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return root, notes
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
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", folder, "types.txt"), file(folder, code))
			compare(t, filepath.Join("testdata", folder, "notes.txt"), strings.Join(notes, "\n")+"\n")
		})
	}
}

// compare compares a text with a golden file.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if the new text is right, run the test with -rewrite:\n%s", path, diff)
	}
}
