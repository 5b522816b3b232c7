// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// generator renders a Helm chart. It may be used by several goroutines at once.
type generator struct {
	err     error
	options Options
	loaded
	texts  *cache.Cache[[]manifest]
	runner *timeout.Runner
}

var _ manifests.Generator = &generator{}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// New returns a generator that renders the chart at root, which is a folder of the file system ("."
// for all of it) or a packed chart (*.tgz). The chart is read once, here. Generators of charts with
// the same files share the parsed chart, among the charts that were loaded last.
//
// A folder that a program embeds needs the pattern "all:", as in //go:embed all:chart:
// without it, files like _helpers.tpl are missing.
//
// If options are invalid or the chart cannot be loaded, there is an error. The generator is usable
// even then: it returns the same error whenever it is called. So the caller has the choice to stop
// the operator, or to go on and let the mistake show up at the components.
func New(fsys fs.FS, root string, options Options) (manifests.Generator, error) {
	g := &generator{
		texts: cache.New[[]manifest](maxTexts, maxTextBytes), runner: timeout.New("chart " + path.Clean(root)),
	}
	if g.options, g.err = options.complete(); g.err != nil {
		return g, g.err
	}
	g.loaded, g.err = timeout.Run(context.Background(), g.runner, g.options.Timeout, func(context.Context) (loaded, error) {
		return load(fsys, root)
	})
	if sum := digest.OfValues(options); g.err == nil && sum != digest.OfValues(Options{}) {
		g.digest += sum.Digest()
	}
	return g, g.err
}

// Digest covers the files of the chart, packed or not, and the
// options, if there are any.
func (g *generator) Digest() string { return g.digest }

// Source returns name and version of the chart.
func (g *generator) Source() v1alpha1.Source {
	source := v1alpha1.Source{Generator: "helm"}
	if g.chart != nil && g.chart.Metadata != nil {
		source.Chart, source.Version, source.AppVersion = g.chart.Metadata.Name, g.chart.Metadata.Version, g.chart.Metadata.AppVersion
	}
	return source
}

// DefaultValues are the values of the file values.yaml.
func (g *generator) DefaultValues() map[string]any {
	if g.chart == nil {
		return nil
	}
	var values map[string]any
	text, err := json.Marshal(g.chart.Values)
	if err != nil || utiljson.Unmarshal(text, &values) != nil {
		return nil
	}
	return values
}

// SharedTypes are the definitions in the folders crds of the chart and of all its sub-charts, in
// the version of the chart.
func (g *generator) SharedTypes() (shared []types.SharedType) {
	if g.chart == nil {
		return nil
	}
	objects, err := g.readCRDs(context.Background(), g.chart)
	if err != nil {
		return nil // each rendering reports it
	}
	for _, object := range objects {
		isShared := func(first types.SharedType) bool { return first.Name == object.GetName() }
		if object.GroupVersionKind().GroupKind() == definitionKind && !slices.ContainsFunc(shared, isShared) {
			dropNeeds(object)
			shared = append(shared, types.SharedType{Name: object.GetName(), Version: g.Source().Version, Definition: object})
		}
	}
	return shared
}

// Generate implements manifests.Generator. The parameters are the values of the
// chart. The lines of mistakes in the manifests count in the rendered text.
func (g *generator) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if g.err != nil {
		return nil, g.err
	}
	// This copy is made here: a rendering that outlives its timeout must not read values that the
	// caller may change.
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	return timeout.Run(ctx, g.runner, g.options.Timeout, func(ctx context.Context) ([]client.Object, error) {
		if g.options.KeepIntegers {
			return g.render(ctx, namespace, name, values)
		}
		if err := makeFloats(values); err != nil {
			return nil, err
		}
		return g.render(ctx, namespace, name, values)
	})
}

func (g *generator) render(ctx context.Context, namespace, name string, values map[string]any) ([]client.Object, error) {
	capabilities, err := capabilitiesFor(ctx, g.options)
	if err != nil {
		return nil, err
	}
	find := lookup.Function(nothingFound)
	if manifests.FromContext(ctx).Client != nil && !g.options.DisableLookup {
		find = lookup.For(ctx, g.options.Limits.WithDefaults().WorkBytes)
	}
	r := &rendering{
		chart: clone(g.chart), values: values, release: releaseFor(ctx, namespace, name), service: g.options.ReleaseService, capabilities: capabilities,
		lookup: find, limits: g.options.Limits, sets: g.sets,
	}
	outputs, err := r.run(ctx)
	switch {
	case err != nil && g.bare && strings.Contains(err.Error(), templates.NoTemplate):
		return nil, fmt.Errorf("%w; %s", err, embedding)
	case err != nil:
		return nil, err
	}
	result, err := g.read(ctx, outputs)
	if err != nil {
		return nil, err
	}
	if g.options.CRDs != CRDsNever {
		if result.crds, err = g.readCRDs(ctx, r.chart); err != nil {
			return nil, err
		}
	}
	return g.arrange(ctx, r.chart, result, r.release)
}

// CRDPolicy decides about the objects in the folders crds of a chart.
type CRDPolicy string

const (
	// CRDsApply creates and upgrades them. They belong to the operator, and are shared by all components. It is the
	// default.
	CRDsApply CRDPolicy = "apply"
	// CRDsOnce creates them where they are missing and then does not change them,
	// as Helm does.
	CRDsOnce CRDPolicy = "once"
	// CRDsNever leaves them out.
	CRDsNever CRDPolicy = "never"
)

// Options are the options of New.
type Options struct {
	// DisableLookup makes the function lookup find nothing, as it does in helm template.
	//
	// Default: false
	DisableLookup bool
	// CRDs decides about the folders crds.
	//
	// Default: CRDsApply
	CRDs CRDPolicy
	// ReleaseService is the value of .Release.Service, which charts put into the label
	// app.kubernetes.io/managed-by. To take over components of SAP component-operator-runtime without a restart of
	// pods, set the name of the reconciler.
	//
	// Default: Helm
	ReleaseService string
	// KeepIntegers passes whole numbers to the templates as they are, as the Helm operator of operator-sdk does. Helm
	// prints 1e+06 for 1000000.
	//
	// Default: false
	KeepIntegers bool
	// KubeVersion is the version of Kubernetes to render for, such as "1.33.1".
	//
	// Default: that of the target
	KubeVersion string
	// APIVersions are the API versions to render for, such as "apps/v1" and "apps/v1/Deployment".
	//
	// Default: those that the target serves
	APIVersions []string
	// Timeout limits one rendering; the deadline of the context counts as well.
	//
	// Default: 10 minutes
	Timeout time.Duration
	// Limits are the limits of one rendering.
	//
	// Default: those of manifests.TemplateLimits
	Limits manifests.TemplateLimits
}

const defaultTimeout = 10 * time.Minute

// complete fills in the defaults, and checks the rest.
func (o Options) complete() (Options, error) {
	o.CRDs, o.ReleaseService = cmp.Or(o.CRDs, CRDsApply), cmp.Or(o.ReleaseService, "Helm")
	o.Timeout = files.PositiveOr(o.Timeout, defaultTimeout)
	var errs []error
	switch o.CRDs {
	case CRDsApply, CRDsOnce, CRDsNever:
	default:
		errs = append(errs, fmt.Errorf("option CRDs: %q is not one of %s, %s, %s", o.CRDs, CRDsApply, CRDsOnce, CRDsNever))
	}
	if o.KubeVersion != "" {
		if _, err := common.ParseKubeVersion(o.KubeVersion); err != nil {
			errs = append(errs, fmt.Errorf("option KubeVersion: %w", err))
		}
	}
	return o, errors.Join(errs...)
}
