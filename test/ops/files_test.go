// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"text/template"

	"github.com/corbel-run/corbel/test/check"
)

// root is the root of the repository.
const root = "../.."

// project has what the templates of the folder ops read from the options of a project.
type project struct{ Name, Package, Kind, Group, Version, Variable, Plural string }

var shop = project{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Version: "v1alpha1", Variable: "shop", Plural: "shops"}

// controller is the value of the label of metrics.
const controller = "shop.shop.example.com"

// rendered returns a file as corbel init writes it for the project.
func rendered(t *testing.T, name string) []byte {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join(root, "cmd/corbel/internal/scaffold/templates/ops", name+".tmpl")))(t)
	parsed := check.Must(template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text)))(t)
	var out bytes.Buffer
	check.NoError(t, parsed.Execute(&out, shop))
	return out.Bytes()
}
