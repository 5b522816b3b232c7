// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
)

// maxSubcharts limits how deep sub-charts may be nested.
const maxSubcharts = 50

// loaded is a chart with its parsed templates and the digest of its files. Several
// generators may share it.
type loaded struct {
	chart  *chart.Chart // must not be changed
	sets   *sets
	digest string
	// bare means that the chart has none of the files that //go:embed leaves out.
	bare bool
}

// charts are the charts that were loaded last, as long as their files together are not larger than
// this.
var charts = cache.New[loaded](64, 32<<20)

// load reads a chart as Helm does, unless one with the same files was loaded before.
func load(fsys fs.FS, root string) (loaded, error) {
	files, err := readChart(fsys, root)
	if err != nil {
		return loaded{}, err
	}
	contents, size := make(map[string][]byte, len(files)), int64(0)
	for i, file := range files {
		size += int64(len(file.Name) + len(file.Data))
		// Their order counts, and in an archive a name may come twice.
		contents[fmt.Sprintf("%8d %s", i, file.Name)] = file.Data
	}
	key := cache.KeyOf(contents)
	if known, ok := charts.Get(key); ok {
		return known, nil
	}
	bare := isBare(files)
	c, err := parseChart(root, files)
	if err == nil && bare {
		err = checkEmbedded(c)
	}
	if err != nil {
		return loaded{}, err
	}
	l := loaded{chart: c, sets: &sets{}, digest: digestOf(files), bare: bare}
	charts.Put(key, l, size)
	return l, nil
}

func parseChart(root string, files []*archive.BufferedFile) (*chart.Chart, error) {
	if err := checkNesting(files); err != nil {
		return nil, err
	}
	if err := checkPacked(files); err != nil {
		return nil, err
	}
	if err := checkVersion(files); err != nil {
		return nil, fmt.Errorf("chart %s: %w", root, err)
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", root, err)
	}
	if kind := c.Metadata.Type; kind != "" && kind != "application" {
		return nil, fmt.Errorf("chart %s: %s charts are not installable", root, kind)
	}
	if missing := missingDependencies(c); len(missing) > 0 {
		return nil, fmt.Errorf("chart %s: found in Chart.yaml, but missing in charts/ directory: %s", root, strings.Join(missing, ", "))
	}
	sortDependencies(c)
	return c, checkSequences(c)
}

// checkVersion refuses charts of an apiVersion that Helm does not install. The library for charts
// of version v2, which is called afterwards, loads any as such. It looks at sub-charts no more than
// Helm does, and reports mistakes in other files.
func checkVersion(files []*archive.BufferedFile) error {
	at := slices.IndexFunc(files, func(file *archive.BufferedFile) bool { return file.Name == "Chart.yaml" })
	var head struct {
		APIVersion string `json:"apiVersion"`
	}
	if at < 0 || yaml.Unmarshal(files[at].Data, &head) != nil {
		return nil
	}
	if known := []string{"", chart.APIVersionV1, chart.APIVersionV2}; !slices.Contains(known, head.APIVersion) {
		return fmt.Errorf("Chart.yaml: apiVersion %q is not supported; Helm installs charts of v1 and v2", head.APIVersion)
	}
	return nil
}

// digestOf is the same for the same files, in whatever order they come.
func digestOf(files []*archive.BufferedFile) string {
	parts := make([]string, 0, len(files))
	for _, file := range files {
		parts = append(parts, digest.Combine(file.Name, string(file.Data)))
	}
	slices.Sort(parts)
	return digest.Combine(parts...)
}

// checkNesting refuses folders that are sub-charts of sub-charts without end.
func checkNesting(files []*archive.BufferedFile) error {
	for _, file := range files {
		if strings.Count(file.Name, "charts/") > maxSubcharts {
			return fmt.Errorf("%s: sub-charts are nested deeper than %d levels", path.Clean(file.Name), maxSubcharts)
		}
	}
	return nil
}

// checkPacked refuses packed sub-charts that are damaged, hold links, or unpack to too
// much, and files with aliases that expand to too much.
func checkPacked(files []*archive.BufferedFile) error {
	inspected := &inspection{left: maxChart}
	for _, file := range files {
		if err := inspected.file(path.Clean(file.Name), file.Data, 0); err != nil {
			return err
		}
	}
	return nil
}

func missingDependencies(c *chart.Chart) []string {
	var missing []string
	for _, dependency := range c.Metadata.Dependencies {
		found := slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == dependency.Name })
		if !found {
			missing = append(missing, dependency.Name)
		}
	}
	return missing
}

// sortDependencies sorts the sub-charts, because the loader returns them in any order.
func sortDependencies(c *chart.Chart) {
	dependencies := slices.SortedStableFunc(slices.Values(c.Dependencies()), func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	c.SetDependencies(dependencies...)
	for _, dependency := range dependencies {
		sortDependencies(dependency)
	}
}

// clone returns a copy of a chart for one rendering, which changes charts. Parts that are only read
// are shared. The values are masked.
func clone(c *chart.Chart) *chart.Chart {
	metadata := *c.Metadata
	metadata.Dependencies = make([]*chart.Dependency, len(c.Metadata.Dependencies))
	for i, dependency := range c.Metadata.Dependencies {
		copied := *dependency
		copied.ImportValues = slices.Clone(dependency.ImportValues)
		metadata.Dependencies[i] = &copied
	}
	if c.Metadata.Dependencies == nil {
		metadata.Dependencies = nil
	}
	copied := &chart.Chart{
		Metadata: &metadata, Lock: c.Lock, Templates: slices.Clone(c.Templates), Values: masked(c.Values),
		Schema: c.Schema, Files: c.Files, Raw: c.Raw,
	}
	for _, dependency := range c.Dependencies() {
		copied.AddDependency(clone(dependency))
	}
	return copied
}

// templatesOf returns the templates of a chart and its sub-charts by the path
// that they have in the engine.
func templatesOf(c *chart.Chart, templates map[string]*common.File) {
	for _, file := range c.Templates {
		isLibrary := strings.EqualFold(c.Metadata.Type, "library")
		if file == nil || isLibrary && !strings.HasPrefix(path.Base(file.Name), "_") {
			continue
		}
		templates[path.Join(c.ChartFullPath(), file.Name)] = file
	}
	for _, dependency := range c.Dependencies() {
		templatesOf(dependency, templates)
	}
}
