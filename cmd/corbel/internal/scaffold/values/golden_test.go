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

	"github.com/corbel-run/corbel/test/check"
)

var rewrite = flag.Bool("rewrite", false, "write the Go types of testdata")

const license = "// SPDX-FileCopyrightText: The Corbel Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

// charts are the folders of testdata and the names of their types.
var charts = map[string]string{"bitnami": "Cache", "helmdocs": "Shop", "schema": "Store"}

// learnChart learns the values of a folder of testdata.
func learnChart(t *testing.T, folder string) (*Field, []string) {
	t.Helper()
	values := check.Must(os.ReadFile(filepath.Join("testdata", folder, "values.yaml")))(t)
	schema, err := os.ReadFile(filepath.Join("testdata", folder, "values.schema.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	root, notes, err := Learn(Source{Values: values, Schema: schema})
	check.NoError(t, err)
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
			Refer(root, Secrets(root))
			code := check.Must(GoTypes(root, name))(t)
			check.Golden(t, filepath.Join("testdata", folder, "types.go"), license+strings.TrimSpace(file(folder, code))+"\n", *rewrite)
			check.Golden(t, filepath.Join("testdata", folder, "notes.txt"), strings.Join(notes, "\n")+"\n", *rewrite)
		})
	}
}
