// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"text/template"
)

// root is the root of the repository.
const root = "../.."

// project has what the templates of the folder ops read from the options of a project.
type project struct{ Name, Kind, Group, Version, Variable, Plural string }

var shop = project{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Version: "v1alpha1", Variable: "shop", Plural: "shops"}

// controller is the value of the label of metrics.
const controller = "shop.shop.example.com"

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rendered returns a file as corbel init writes it for the project.
func rendered(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "cmd/corbel/internal/scaffold/templates/ops", name+".tmpl"))
	check(t, err)
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
	check(t, err)
	var out bytes.Buffer
	check(t, parsed.Execute(&out, shop))
	return out.Bytes()
}
