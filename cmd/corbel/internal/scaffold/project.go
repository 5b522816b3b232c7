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
	// Several are the kinds of a project with more than one; those fields that are about a kind are empty then.
	Several       []contents
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
	// OfVersion is the version that the files of a version are for.
	OfVersion FormerVersion
	// Fixed are the objects that the components have in common, so that there can be one only.
	Fixed []string
	// Outputs are those that the options have.
	Outputs []output
}

// Deployer is the name of the service accounts that write the objects of components with the option
// Impersonate.
const Deployer = "deployer"

// Deployer returns the name of the service accounts.
func (contents) Deployer() string { return Deployer }

// All returns the kinds of the project.
func (c contents) All() []contents {
	if c.Several == nil {
		return []contents{c}
	}
	return c.Several
}

// Title returns the kinds of the project.
func (c contents) Title() string {
	var kinds []string
	for _, kind := range c.All() {
		kinds = append(kinds, kind.Kind)
	}
	return strings.Join(kinds, ", ")
}

// APIFolders returns the folders that have the Go types.
func (c contents) APIFolders() (folders []string) {
	for _, kind := range c.All() {
		folders = append(folders, path.Join(kind.Package, "api"))
	}
	return folders
}

// FromOperator reports whether the kinds are those of a Helm operator.
func (c contents) FromOperator() bool { return c.All()[0].Former != nil }

// InKind returns the place of a file of the kind.
func (c contents) InKind(name string) string { return path.Join(c.Package, name) }

// In returns the place of a folder of the project for a file of the kind.
func (c contents) In(folder string) string {
	if c.Package != "" {
		return "../" + folder
	}
	return folder
}

// OverrideCode returns the values that take precedence over the spec as Go code.
func (c contents) OverrideCode() string { return fmt.Sprintf("%#v", c.Former.Overrides) }

// perKind are the files of a kind that are made of a template, below the folder of its package.
var perKind = map[string]string{
	"common/main.go.tmpl":          "[[ if .Package ]]operator[[ else ]]main[[ end ]].go",
	"common/operator_test.go.tmpl": "operator_test.go",

	"ops/alerts.yaml.tmpl":             "ops/alerts.yaml",
	"ops/dashboard.json.tmpl":          "ops/dashboard.json",
	"ops/argocd-health.lua.tmpl":       "ops/argocd-health.lua",
	"ops/kube-state-metrics.yaml.tmpl": "ops/kube-state-metrics.yaml",
}

// perVersion are those of a version of a kind.
var perVersion = map[string]string{
	"common/groupversion.go.tmpl": "api/[[ .Version ]]/groupversion.go",
	"common/types.go.tmpl":        "api/[[ .Version ]]/[[ .Variable ]].go",
}

// targets are the other files of a project that are made of a template, by their templates. The names
// are templates, too.
var targets = map[string]string{
	"common/go.mod.tmpl":     "go.mod",
	"common/Makefile.tmpl":   "Makefile",
	"common/Dockerfile.tmpl": "Dockerfile",
	"common/gitignore.tmpl":  ".gitignore",
	"common/ci.yaml.tmpl":    ".github/workflows/ci.yaml",
	"common/README.md.tmpl":  "README.md",

	"deploy/Chart.yaml.tmpl":               "deploy/Chart.yaml",
	"deploy/values.yaml.tmpl":              "deploy/values.yaml",
	"deploy/templates/crd.yaml.tmpl":       "deploy/templates/crd.yaml",
	"deploy/templates/deletion.yaml.tmpl":  "deploy/templates/deletion.yaml",
	"deploy/templates/operator.yaml.tmpl":  "deploy/templates/operator.yaml",
	"deploy/templates/uninstall.yaml.tmpl": "deploy/templates/uninstall.yaml",
}

// files returns the files of the project that are made of templates.
func (c contents) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	wanted := maps.Clone(targets)
	if c.Several != nil {
		wanted["common/program.go.tmpl"] = "main.go"
	}
	if !c.Namespaced {
		wanted["deploy/templates/flowschema.yaml.tmpl"] = "deploy/templates/flowschema.yaml"
	}
	if err := c.add(files, wanted); err != nil {
		return nil, err
	}
	for _, kind := range c.All() {
		wanted := maps.Clone(perKind)
		if kind.Form == FormGo {
			wanted["common/generate.go.tmpl"], wanted["common/sample.golden.tmpl"] = "generate.go", goldenFile
		}
		if kind.Values.Source != "" {
			wanted["common/values.go.tmpl"] = "api/[[ .Version ]]/values.go"
		}
		if err := kind.add(files, wanted); err != nil {
			return nil, err
		}
		versions := []FormerVersion{{Name: kind.Version, Served: true}}
		if kind.Former != nil {
			versions = kind.Former.Versions
		}
		for _, version := range versions {
			kind.Version, kind.OfVersion = version.Name, version
			if err := kind.add(files, perVersion); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// add adds files that are made of templates, by the names of their templates.
func (c contents) add(files map[string][]byte, wanted map[string]string) error {
	for _, source := range slices.Sorted(maps.Keys(wanted)) {
		name, err := c.execute(source, wanted[source])
		if err != nil {
			return err
		}
		text, err := fs.ReadFile(templates, path.Join("templates", source))
		if err != nil {
			return err
		}
		content, err := c.execute(source, string(text))
		if err != nil {
			return err
		}
		if path.Ext(string(name)) == ".go" {
			if content, err = format.Source(content); err != nil {
				return fmt.Errorf("%s is no Go code: %w", name, err)
			}
		}
		files[path.Join(c.Package, string(name))] = content
	}
	return nil
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
