// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// renderName is the function that the engine calls for every template.
const renderName = "_render"

// rendering is one rendering of a chart.
type rendering struct {
	chart        *chart.Chart // changed by the rendering
	values       map[string]any
	release      common.ReleaseOptions
	service      string // of the release
	capabilities *common.Capabilities
	lookup       lookup.Function
	limits       manifests.TemplateLimits
	sets         *sets
}

// run returns the output of every template, by its path.
func (r *rendering) run(ctx context.Context) (map[string]string, error) {
	given := masked(r.values)
	if err := chartutil.ProcessDependencies(r.chart, given); err != nil {
		return nil, fmt.Errorf("dependencies of chart %s: %w", r.chart.Name(), err)
	}
	data, err := util.ToRenderValuesWithSchemaValidation(r.chart, given, r.release, r.capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("values of chart %s: %w", r.chart.Name(), err)
	}
	if release, ok := data["Release"].(map[string]any); ok {
		release["Service"] = r.service
	}
	values, _ := data["Values"].(common.Values)
	unmask(values)
	if err := checkSchemas(r.chart, values); err != nil {
		return nil, err
	}
	if required := r.chart.Metadata.KubeVersion; required != "" && !chartutil.IsCompatibleRange(required, r.capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart %s requires Kubernetes %s, and the target has %s", r.chart.Name(), required, r.capabilities.KubeVersion.Version)
	}
	files := map[string]*common.File{}
	templatesOf(r.chart, files)
	set, err := r.sets.get(files)
	if err != nil {
		return nil, err
	}
	return r.drive(ctx, set, data)
}

// drive lets Helm's engine prepare the data of each template, in its order, and call back for the
// template itself, because the engine can neither be counted nor interrupted.
func (r *rendering) drive(ctx context.Context, set *templates.Set, data common.Values) (map[string]string, error) {
	set, err := set.Clone()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(functions)
	all["lookup"] = r.lookup
	executor := templates.NewRendering(set, parser, all, templates.Options{
		Limits: r.limits, Interrupted: ctx.Err, Nothing: "<no value>",
		CheckPattern: func(pattern string) error { return checkPattern(pattern, r.chart) },
		Random:       func() { manifests.NoteRandom(ctx) }, Now: func() time.Time { return manifests.Now(ctx) },
	})
	var failed error
	render := func(name string, dot map[string]any) (string, error) {
		renders.NoteProgress(ctx, "template "+name)
		text, err := executor.Execute(name, guarded(dot))
		failed = cmp.Or(failed, err)
		return text, err
	}
	callBack(r.chart)
	e := engine.Engine{CustomTemplateFuncs: template.FuncMap{renderName: render}}
	outputs, err := e.RenderWithContext(ctx, r.chart, data)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error()))
	}
	return outputs, nil
}

// callBack replaces the templates of the chart by calls of render.
func callBack(c *chart.Chart) {
	for i, file := range c.Templates {
		if file == nil {
			continue
		}
		name := c.ChartFullPath() + "/" + file.Name
		call := "{{" + renderName + " " + strconv.Quote(path.Clean(name)) + " .}}"
		c.Templates[i] = &common.File{Name: file.Name, Data: []byte(call)}
	}
	for _, dependency := range c.Dependencies() {
		callBack(dependency)
	}
}

// releaseFor describes the deployment as a release of Helm. Its revision is the component's; all
// are installations until one was applied and ready.
func releaseFor(ctx context.Context, namespace, name string) common.ReleaseOptions {
	known := manifests.FromContext(ctx)
	return common.ReleaseOptions{
		Name:      name,
		Namespace: namespace,
		Revision:  int(max(known.Revision, 1)),
		IsInstall: !known.Upgrade,
		IsUpgrade: known.Upgrade,
	}
}

// capabilitiesFor returns the capabilities of the target. Without a target they are the
// capabilities that helm template assumes.
func capabilitiesFor(ctx context.Context, options Options) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if target, ok := renders.Target(ctx); ok && (options.KubeVersion == "" || options.APIVersions == nil) {
		served, err := target.Types().Served(ctx)
		if err != nil {
			return nil, fmt.Errorf("capabilities of the target: %w", err)
		}
		version, err := common.ParseKubeVersion(served.Version)
		if err != nil {
			return nil, fmt.Errorf("version %q of the target: %w", served.Version, err)
		}
		capabilities.KubeVersion, capabilities.APIVersions = *version, served.APIVersions
	}
	if options.KubeVersion != "" {
		version, err := common.ParseKubeVersion(options.KubeVersion)
		if err != nil {
			return nil, err
		}
		capabilities.KubeVersion = *version
	}
	if options.APIVersions != nil {
		capabilities.APIVersions = options.APIVersions
	}
	// Templates get the list itself.
	capabilities.APIVersions = slices.Clone(capabilities.APIVersions)
	return capabilities, nil
}

// maxSets limits how many sets of parsed templates a generator keeps. There is
// one for each combination of sub-charts that was ever requested.
const maxSets = 8

// parser parses the templates of all charts.
var parser = templates.NewParser("", "", functions)

// sets are the parsed templates of a chart.
type sets struct {
	mu    sync.Mutex
	byKey map[string]*templates.Set
}

// get returns the templates, parsed. They must not be changed.
func (s *sets) get(files map[string]*common.File) (*templates.Set, error) {
	names := inOrder(files)
	var key strings.Builder
	for _, name := range names {
		// The files stay the same as long as the generator lives.
		fmt.Fprintf(&key, "%s\x00%p\x00", name, files[name])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.byKey[key.String()]; ok {
		return set, nil
	}
	set, err := parseAll(names, files)
	if err != nil {
		return nil, err
	}
	if s.byKey == nil || len(s.byKey) >= maxSets {
		s.byKey = map[string]*templates.Set{}
	}
	s.byKey[key.String()] = set
	return set, nil
}

func parseAll(names []string, files map[string]*common.File) (*templates.Set, error) {
	set := templates.NewSet("missingkey=zero")
	var errs []error
	for _, name := range names {
		errs = append(errs, parser.Parse(set, name, string(files[name].Data), nil))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, nil
}

// inOrder returns the names as Helm parses them: the longest paths first, so that charts override
// the definitions of their sub-charts.
func inOrder(files map[string]*common.File) []string {
	return slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(b, a))
	})
}
