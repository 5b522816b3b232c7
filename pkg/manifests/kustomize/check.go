// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Deprecated fields are built, so they are checked.

package kustomize

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

// maxMistakes limits how many mistakes are reported.
const maxMistakes = 50

// checker looks at everything that a build would load. It refuses references to other machines, to code, out of the
// tree and to missing files, and input that is too large. The library reports all other mistakes.
type checker struct {
	tree   *tree
	limits Limits
	errs   []error
	// visits counts the kustomizations, open are those being looked at.
	visits int
	open   []string
	// approved are the kustomizations that were looked at, as the library gets them.
	approved map[string][]byte
	// setsSchema means that a kustomization sets an OpenAPI schema.
	setsSchema bool
}

// check checks the kustomization in the folder and all that it refers to, and returns the input of
// the build.
func check(t *tree, folder string, limits Limits) (*checkedBuild, error) {
	c := &checker{tree: t, limits: limits, approved: map[string][]byte{}}
	c.kustomization(folder, false)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &checkedBuild{files: checkedFiles{tree: t, kustomizations: c.approved}, folder: folder, setsSchema: c.setsSchema}, nil
}

// checkedBuild is the input of a build.
type checkedBuild struct {
	files  checkedFiles
	folder string
	// setsSchema means that the build changes the schema of the library.
	setsSchema bool
}

// fieldRef is a field of a kustomization, or a file as a whole.
type fieldRef struct {
	file, folder, field string
}

func (p fieldRef) in(format string, args ...any) fieldRef {
	p.field += fmt.Sprintf(format, args...)
	return p
}

// fail notes a mistake. The value of the field is empty where it may be long or secret.
func (c *checker) fail(at fieldRef, value string, err error) {
	place := at.file
	if at.field != "" {
		place += ": " + at.field
		if value != "" {
			place += fmt.Sprintf(": %q", shorten(value))
		}
	}
	switch {
	case len(c.errs) < maxMistakes:
		c.errs = append(c.errs, fmt.Errorf("%s: %w", place, err))
	case len(c.errs) == maxMistakes:
		c.errs = append(c.errs, errors.New("there are more mistakes"))
	}
}

// kustomizationFiles returns the names of the kustomizations in a folder. The library refuses more than one.
func (t *tree) kustomizationFiles(folder string) []string {
	var names []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		name = path.Join(folder, name)
		if _, ok := t.files[name]; ok || t.irregular[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// kustomization looks at the kustomization of a folder. The library refuses a circle. A
// kustomization that configures plugins may only list files: any other field could make paths that
// are not looked at.
func (c *checker) kustomization(folder string, ofPlugins bool) {
	if slices.Contains(c.open, folder) {
		return
	}
	in := fieldRef{file: "folder " + folder}
	switch c.visits++; {
	case c.visits == c.limits.Kustomizations+1:
		c.fail(in, "", &excess.Error{Message: fmt.Sprintf("kustomizations are referred to more than %d times", c.limits.Kustomizations)})
		return
	case c.visits > c.limits.Kustomizations:
		return
	case len(c.open) == maxNesting:
		c.fail(in, "", &excess.Error{Message: fmt.Sprintf("kustomizations refer to each other more than %d levels deep", maxNesting)})
		return
	}
	c.open = append(c.open, folder)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	for _, name := range c.tree.kustomizationFiles(folder) {
		if err := c.tree.irregular[name]; err != nil {
			c.fail(in, "", err)
			continue
		}
		at, k := fieldRef{file: name, folder: folder}, &types.Kustomization{}
		if err := c.load(name, k); err != nil {
			c.fail(at, "", err)
			continue
		}
		rest := *k
		rest.TypeMeta, rest.MetaData, rest.Resources = types.TypeMeta{}, nil, nil
		if ofPlugins && rest.CheckEmpty() == nil {
			c.fail(in, "", errors.New("it configures generators, transformers or validators, so its kustomization may do nothing but list resources"))
			continue
		}
		c.setsSchema = c.setsSchema || len(k.OpenAPI) > 0
		if len(k.HelmCharts) > 0 {
			c.fail(at.in("helmCharts"), "", errCharts)
		}
		if len(k.HelmChartInflationGenerator) > 0 {
			c.fail(at.in("helmChartInflationGenerator"), "", errCharts)
		}
		eachField(k, func(field string, kind fieldKind, value *string) {
			if ofPlugins && kind == resourceField {
				kind = pluginField
			}
			c.field(at.in("%s", field), kind, *value)
		})
		c.approve(at, k)
	}
}

// load reads a kustomization.
func (c *checker) load(name string, k *types.Kustomization) error {
	if err := c.tree.checkBounds(c.tree.files[name], c.limits); err != nil {
		return err
	}
	return k.Unmarshal(c.tree.files[name])
}

// field looks at a field that makes the library load something.
func (c *checker) field(at fieldRef, kind fieldKind, value string) {
	switch {
	case kind == literalField:
		// The library would put the values into its error.
		if strings.Index(value, "=") < 1 {
			c.fail(at, "", errors.New("want key=value"))
		}
	case value == "":
	case (kind == resourceField || kind == pluginField) && isRepository(value), kind == keyedField && isURL(value):
		c.fail(at, value, errRemote)
	case kind.holdsText(value):
		c.text(at, kind, []byte(value))
	default:
		if _, after, keyed := strings.Cut(value, "="); keyed && kind == keyedField {
			value = after
		}
		c.path(at, kind, value)
	}
}

// path looks at a field that holds a path.
func (c *checker) path(at fieldRef, kind fieldKind, value string) {
	name, ok := c.find(at, value)
	switch {
	case !ok, kind == dataField, kind == keyedField:
	case c.tree.folders[name]:
		if kind == resourceField || kind == pluginField {
			c.kustomization(name, kind == pluginField)
		}
	default:
		c.text(fieldRef{file: name, folder: at.folder}, kind, c.tree.files[name])
	}
}

// text looks at YAML.
func (c *checker) text(at fieldRef, kind fieldKind, data []byte) {
	if err := c.tree.checkBounds(data, c.limits); err != nil {
		c.fail(at, "", err)
	} else if kind == pluginField {
		c.configuration(at, data)
	}
}

// find resolves a path. It fails if the path leads to another machine, out of
// the root, or nowhere.
func (c *checker) find(at fieldRef, p string) (name string, ok bool) {
	name, err := resolve(at.folder, p)
	if _, isFile := c.tree.files[name]; err == nil && !isFile && !c.tree.folders[name] {
		err = c.tree.missing(name)
	}
	if err != nil {
		c.fail(at, p, err)
		return "", false
	}
	return name, true
}

func resolve(folder, p string) (string, error) {
	switch {
	case strings.Contains(p, rawSuffix):
		return "", errors.New("a path must not contain a zero byte")
	case isURL(p):
		return "", errRemote
	case path.IsAbs(p):
		return "", errOutside
	}
	name := path.Join(folder, p)
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", errOutside
	}
	return name, nil
}

// schemes are the schemes that the library fetches, and git, which people try.
var schemes = []string{"http://", "https://", "ssh://", "file://", "git://"}

// isURL reports whether the library might fetch a file. Like isRepository, it
// holds for more than the library really fetches, never for less.
func isURL(p string) bool {
	if parsed, err := url.Parse(p); err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") {
		return true
	}
	lower := normalized(p)
	return slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(lower, scheme) })
}

// userPattern is how the library recognises a host that is reached with ssh.
var userPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*@`)

// isRepository reports whether the library might clone something.
func isRepository(p string) bool {
	lower := normalized(p)
	return isURL(p) || userPattern.MatchString(lower) ||
		strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:")
}

func normalized(p string) string {
	lower := strings.ToLower(strings.TrimSpace(p))
	for strings.HasPrefix(lower, "git::") {
		lower = strings.TrimPrefix(lower, "git::")
	}
	return lower
}

// isInline reports whether a field holds YAML, and not a path. Nothing that is a
// URL counts as inline.
func isInline(value string) bool {
	var node yaml.Node
	if isURL(value) || yaml.Unmarshal([]byte(value), &node) != nil || len(node.Content) == 0 {
		return strings.Contains(value, "\n")
	}
	return node.Content[0].Kind == yaml.MappingNode || strings.Contains(value, "\n")
}
