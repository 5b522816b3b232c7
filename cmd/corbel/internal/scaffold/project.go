// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values"
)

//go:embed all:templates
var templates embed.FS

// recordFile records the options, and what was written.
const recordFile = "corbel.yaml"

// Corbel is the version of the library that a project requires.
type Corbel struct {
	// Version is that of the module; with a folder, it is v0.0.0.
	Version string
	// Folder is a checkout of the library that takes the place of the module; empty for none.
	Folder string
}

const (
	// ControllerGen is the version of controller-gen that projects use.
	ControllerGen = "v0.23.0"
	// kubeVersion is the version of Kubernetes that samples are rendered for, without a cluster.
	kubeVersion = "1.37.2"
)

// contents is what templates see.
type contents struct {
	Options
	Corbel        Corbel
	ControllerGen string
	KubeVersion   string
	// Folder is where the source is; empty for a generator in Go.
	Folder string
	// Values are the types of the values.
	Values values.Code
	// HasPatches is set if the spec has the field patches, Escalates if roles or bindings are rendered,
	// and CreatesNamespaces if objects are in other namespaces than the component.
	HasPatches, Escalates, CreatesNamespaces bool
	// Fixed are the objects that the components have in common, so that there can be one only.
	Fixed []string
}

// Deployer is the name of the service accounts that write the objects of components with the option
// Impersonate.
const Deployer = "deployer"

// Deployer returns the name of the service accounts.
func (contents) Deployer() string { return Deployer }

// targets are the files of a project that are made of a template, by their templates. The names
// are templates, too.
var targets = map[string]string{
	"common/go.mod.tmpl":           "go.mod",
	"common/main.go.tmpl":          "main.go",
	"common/groupversion.go.tmpl":  "api/[[ .Version ]]/groupversion.go",
	"common/types.go.tmpl":         "api/[[ .Version ]]/[[ .Variable ]].go",
	"common/operator_test.go.tmpl": "operator_test.go",
	"common/Makefile.tmpl":         "Makefile",
	"common/Dockerfile.tmpl":       "Dockerfile",
	"common/gitignore.tmpl":        ".gitignore",
	"common/ci.yaml.tmpl":          ".github/workflows/ci.yaml",
	"common/README.md.tmpl":        "README.md",

	"deploy/Chart.yaml.tmpl":               "deploy/Chart.yaml",
	"deploy/values.yaml.tmpl":              "deploy/values.yaml",
	"deploy/templates/crd.yaml.tmpl":       "deploy/templates/crd.yaml",
	"deploy/templates/deletion.yaml.tmpl":  "deploy/templates/deletion.yaml",
	"deploy/templates/operator.yaml.tmpl":  "deploy/templates/operator.yaml",
	"deploy/templates/uninstall.yaml.tmpl": "deploy/templates/uninstall.yaml",

	"ops/alerts.yaml.tmpl":             "ops/alerts.yaml",
	"ops/dashboard.json.tmpl":          "ops/dashboard.json",
	"ops/argocd-health.lua.tmpl":       "ops/argocd-health.lua",
	"ops/kube-state-metrics.yaml.tmpl": "ops/kube-state-metrics.yaml",
}

// files returns the files of the project that are made of templates.
func (c contents) files() (map[string][]byte, error) {
	wanted := maps.Clone(targets)
	if c.Form == FormGo {
		wanted["common/generate.go.tmpl"], wanted["common/sample.golden.tmpl"] = "generate.go", goldenFile
	}
	if c.Values.Source != "" {
		wanted["common/values.go.tmpl"] = "api/[[ .Version ]]/values.go"
	}
	if !c.Namespaced {
		wanted["deploy/templates/flowschema.yaml.tmpl"] = "deploy/templates/flowschema.yaml"
	}
	files := map[string][]byte{}
	for _, source := range slices.Sorted(maps.Keys(wanted)) {
		name, err := c.execute(source, wanted[source])
		if err != nil {
			return nil, err
		}
		text, err := fs.ReadFile(templates, path.Join("templates", source))
		if err != nil {
			return nil, err
		}
		content, err := c.execute(source, string(text))
		if err != nil {
			return nil, err
		}
		if path.Ext(string(name)) == ".go" {
			if content, err = format.Source(content); err != nil {
				return nil, fmt.Errorf("%s is no Go code: %w", name, err)
			}
		}
		files[string(name)] = content
	}
	return files, nil
}

// execute executes a template of the project.
func (c contents) execute(name, text string) ([]byte, error) {
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{"quoted": modfile.AutoQuote, "join": strings.Join}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, c)
	return out.Bytes(), err
}

// oneLine returns a text in one line, cut after a number of characters.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return text
}
