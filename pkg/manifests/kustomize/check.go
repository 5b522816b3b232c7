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
)

// maxMistakes limits how many mistakes are reported.
const maxMistakes = 50

// checker looks at everything that a build would load.
type checker struct {
	tree   *tree
	limits Limits
	errs   []error
	// visits counts the kustomizations, open are those being looked at.
	visits int
	open   []string
	// approved are the kustomizations that were looked at, as the library gets them.
	approved map[string][]byte
	// setsSchema says that a kustomization sets an OpenAPI schema.
	setsSchema bool
	stopped    bool
}

// check looks at the kustomization in the folder and all that it refers to, and
// returns what can be built.
func check(t *tree, folder string, limits Limits) (*plan, error) {
	c := &checker{tree: t, limits: limits, approved: map[string][]byte{}}
	c.folder(folder)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &plan{files: memory{tree: t, kustomizations: c.approved}, folder: folder, setsSchema: c.setsSchema}, nil
}

// plan is what can be built.
type plan struct {
	files  memory
	folder string
	// setsSchema says that the build changes the schema of the library.
	setsSchema bool
}

// place is a field of a kustomization.
type place struct {
	file, folder, field string
}

func (p place) in(format string, args ...any) place {
	p.field += fmt.Sprintf(format, args...)
	return p
}

func (c *checker) add(err error) {
	switch {
	case len(c.errs) < maxMistakes:
		c.errs = append(c.errs, err)
	case len(c.errs) == maxMistakes:
		c.errs = append(c.errs, errors.New("there are more mistakes"))
	}
}

func (c *checker) fail(at place, value string, err error) {
	c.add(&ReferenceError{File: at.file, Field: at.field, Value: value, Err: err})
}

// kustomizationFiles returns the names of the kustomizations in a folder; more
// than one is a mistake.
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

// load reads the kustomization of a folder. There is none if it does not parse.
func (c *checker) load(folder string) (place, *types.Kustomization) {
	names := c.tree.kustomizationFiles(folder)
	if len(names) != 1 {
		if len(names) == 0 {
			c.add(fmt.Errorf("folder %s: it holds no kustomization", folder))
		} else {
			c.add(fmt.Errorf("folder %s: it holds more than one kustomization: %s", folder, strings.Join(names, ", ")))
		}
		return place{}, nil
	}
	at := place{file: names[0], folder: folder}
	if err := c.tree.irregular[at.file]; err != nil {
		c.add(err)
		return place{}, nil
	}
	data := c.tree.files[at.file]
	if err := c.tree.checkBounds(data, c.limits); err != nil {
		c.add(fmt.Errorf("%s: %w", at.file, err))
		return place{}, nil
	}
	k := &types.Kustomization{}
	if err := k.Unmarshal(data); err != nil {
		c.add(fmt.Errorf("%s: %w", at.file, err))
		return place{}, nil
	}
	return at, k
}

// enter counts one more kustomization. It is false if there are too many.
func (c *checker) enter(folder string) bool {
	if c.stopped {
		return false
	}
	if slices.Contains(c.open, folder) {
		c.add(fmt.Errorf("kustomizations refer to each other in a circle: %s", strings.Join(append(c.open, folder), ", ")))
		return false
	}
	if c.visits++; c.visits > c.limits.Kustomizations {
		c.stopped = true
		c.add(&LimitError{Message: fmt.Sprintf("kustomizations are referred to more than %d times", c.limits.Kustomizations)})
		return false
	}
	if len(c.open) == maxNesting {
		c.add(&LimitError{Message: fmt.Sprintf("kustomizations refer to each other more than %d levels deep", maxNesting)})
		return false
	}
	c.open = append(c.open, folder)
	return true
}

func (c *checker) leave() { c.open = c.open[:len(c.open)-1] }

func (c *checker) folder(folder string) {
	if !c.enter(folder) {
		return
	}
	defer c.leave()
	if at, k := c.load(folder); k != nil {
		c.fields(at, k)
		c.approve(at, k)
	}
}

// find resolves a path. It fails if the path leads to another machine, out of
// the root, or nowhere.
func (c *checker) find(at place, p string) (name string, ok bool) {
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
	case p == "":
		return "", errors.New("it is empty")
	case strings.ContainsAny(p, "\x00\n\r"):
		return "", errors.New("a path must not contain line breaks")
	case isURL(p):
		return "", ErrRemote
	case path.IsAbs(p):
		return "", ErrOutside
	}
	name := path.Join(folder, p)
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", ErrOutside
	}
	return name, nil
}

// file looks at a reference to a file that is read as YAML.
func (c *checker) file(at place, p string) {
	if name, ok := c.find(at, p); ok {
		c.yaml(at, name)
	}
}

// plain looks at a reference to a file that may hold anything.
func (c *checker) plain(at place, p string) {
	name, ok := c.find(at, p)
	if ok && c.tree.folders[name] {
		c.fail(at, p, errors.New("it is a folder, want a file"))
	}
}

func (c *checker) yaml(at place, name string) {
	if c.tree.folders[name] {
		c.fail(at, name, errors.New("it is a folder, want a file"))
		return
	}
	if err := c.tree.checkBounds(c.tree.files[name], c.limits); err != nil {
		c.add(fmt.Errorf("%s: %w", name, err))
		return
	}
}

// text looks at YAML that stands in the field itself.
func (c *checker) text(at place, text string) {
	if err := c.tree.checkBounds([]byte(text), c.limits); err != nil {
		c.fail(at, "", err)
	}
}

// resource looks at a reference to a file or a folder.
func (c *checker) resource(at place, p string) {
	if isRepository(p) {
		c.fail(at, p, ErrRemote)
		return
	}
	name, ok := c.find(at, p)
	switch {
	case !ok:
	case c.tree.folders[name]:
		c.folder(name)
	default:
		c.yaml(at, name)
	}
}

// schemes are those that the library fetches, and one that people try.
var schemes = []string{"http://", "https://", "ssh://", "file://", "git://"}

// isURL reports whether the library might fetch a file. Like isRepository, it
// holds for more than the library really fetches, never for less.
func isURL(p string) bool {
	if parsed, err := url.Parse(p); err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") {
		return true
	}
	lower := normalized(p)
	for _, scheme := range schemes {
		if strings.HasPrefix(lower, scheme) {
			return true
		}
	}
	return false
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

// fields looks at every field of a kustomization that makes the library load
// something.
func (c *checker) fields(at place, k *types.Kustomization) {
	each := func(field string, values []string, look func(place, string)) {
		for i, value := range values {
			look(at.in("%s[%d]", field, i), value)
		}
	}
	each("resources", k.Resources, c.resource)
	each("bases", k.Bases, c.resource)
	each("components", k.Components, c.component)
	each("crds", k.Crds, c.file)
	each("configurations", k.Configurations, c.file)
	each("generators", k.Generators, c.plugin)
	each("transformers", k.Transformers, c.plugin)
	each("validators", k.Validators, c.plugin)
	if p, ok := k.OpenAPI["path"]; ok {
		c.file(at.in("openapi.path"), p)
	}
	c.setsSchema = c.setsSchema || len(k.OpenAPI) > 0
	for i, patch := range k.PatchesStrategicMerge {
		c.inlineOrFile(at.in("patchesStrategicMerge[%d]", i), string(patch))
	}
	c.patches(at.in("patches"), k.Patches)
	c.patches(at.in("patchesJson6902"), k.PatchesJson6902)
	for i, replacement := range k.Replacements {
		if replacement.Path != "" {
			c.file(at.in("replacements[%d].path", i), replacement.Path)
		}
	}
	for i := range k.ConfigMapGenerator {
		c.sources(at.in("configMapGenerator[%d]", i), k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		c.sources(at.in("secretGenerator[%d]", i), k.SecretGenerator[i].KvPairSources)
	}
	if len(k.HelmCharts) > 0 {
		c.fail(at.in("helmCharts"), "", errCharts)
	}
	if len(k.HelmChartInflationGenerator) > 0 {
		c.fail(at.in("helmChartInflationGenerator"), "", errCharts)
	}
}

// component looks at a reference to a folder.
func (c *checker) component(at place, p string) {
	if isRepository(p) {
		c.fail(at, p, ErrRemote)
		return
	}
	name, ok := c.find(at, p)
	switch {
	case !ok:
	case !c.tree.folders[name]:
		c.fail(at, p, errors.New("it is a file, want a folder"))
	default:
		c.folder(name)
	}
}

func (c *checker) patches(at place, patches []types.Patch) {
	for i, patch := range patches {
		if patch.Path != "" {
			c.file(at.in("[%d].path", i), patch.Path)
		}
		c.text(at.in("[%d].patch", i), patch.Patch)
	}
}

// inlineOrFile looks at a field that holds YAML or a path.
func (c *checker) inlineOrFile(at place, value string) {
	if isInline(value) {
		c.text(at, value)
		return
	}
	c.file(at, value)
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

// sources looks at what a ConfigMap or a Secret is made of.
func (c *checker) sources(at place, s types.KvPairSources) {
	for i, literal := range s.LiteralSources {
		// The library would put the value into its error.
		if !strings.Contains(literal, "=") {
			c.fail(at.in(".literals[%d]", i), "", errors.New("want key=value"))
		}
	}
	for i, file := range s.FileSources {
		in := at.in(".files[%d]", i)
		_, after, keyed := strings.Cut(file, "=")
		switch {
		case isURL(file):
			c.fail(in, file, ErrRemote)
		case keyed:
			c.plain(in, after)
		default:
			c.plain(in, file)
		}
	}
	for i, file := range s.EnvSources {
		c.plain(at.in(".envs[%d]", i), file)
	}
	if s.EnvSource != "" {
		c.plain(at.in(".env"), s.EnvSource)
	}
}
