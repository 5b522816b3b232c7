// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	releaseName = "shop"
	namespace   = "prod"
	kubeVersion = "1.33.1"
	// prefix is the name of the reconciler, with which our annotations begin.
	prefix = "parity.example.com"
)

// apiVersions are those that charts of the operators' world ask for.
var apiVersions = []string{"monitoring.coreos.com/v1", "cert-manager.io/v1", "cert-manager.io/v1/Certificate"}

// object is one rendered object as YAML.
type object struct{ name, text string }

// byHelm renders a chart with the code of helm template --include-crds.
func byHelm(path string, values map[string]any, upgrade bool) (objects []object, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	loaded, err := loadByHelm(path)
	if err != nil {
		return nil, err
	}
	rendered, err := renderByHelm(loaded, releaseName, values, upgrade)
	if err != nil {
		return nil, err
	}
	text := rendered.Manifest
	for _, hook := range rendered.Hooks {
		if !runs(hook, upgrade) {
			continue
		}
		text += "---\n# Source: " + hook.Path + "\n" + hook.Manifest + "\n"
	}
	return split(text)
}

func loadByHelm(path string) (*chart.Chart, error) {
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	if kind := loaded.Metadata.Type; kind != "" && kind != "application" {
		return nil, fmt.Errorf("%s charts are not installable", kind)
	}
	return loaded, checkDependencies(loaded)
}

func renderByHelm(loaded *chart.Chart, name string, values map[string]any, upgrade bool) (*release.Release, error) {
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.Replace, install.IncludeCRDs = action.DryRunClient, true, true
	install.ReleaseName, install.Namespace, install.IsUpgrade = name, namespace, upgrade
	install.KubeVersion, install.APIVersions = version, apiVersions
	result, err := install.RunWithContext(context.Background(), loaded, values)
	if err != nil {
		return nil, err
	}
	return result.(*release.Release), nil
}

// runs tells whether a hook is for an installation, or an upgrade, or for a
// deletion. Hooks that last stay in place once they were installed.
func runs(h *release.Hook, upgrade bool) bool {
	lasts := h.Kind != "Job" && h.Kind != "Pod" && !slices.Contains(h.DeletePolicies, release.HookSucceeded)
	for _, event := range h.Events {
		switch event {
		case release.HookPreInstall, release.HookPostInstall:
			if !upgrade || lasts {
				return true
			}
		case release.HookPreUpgrade, release.HookPostUpgrade:
			if upgrade {
				return true
			}
		case release.HookPreDelete, release.HookPostDelete:
			return true
		}
	}
	return false
}

// split returns the objects of a stream in their order.
func split(text string) ([]object, error) {
	documents := releaseutil.SplitManifests(text)
	var objects []object
	for i := range len(documents) {
		document := documents[fmt.Sprintf("manifest-%d", i)]
		var content map[string]any
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue
		}
		o, err := objectOf(content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// objectOf normalises an object: the API server takes null annotations for none,
// and refuses those whose names have two slashes, so that ours has none.
func objectOf(content map[string]any) (object, error) {
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range []string{"annotations", "labels"} {
		entries, _ := metadata[field].(map[string]any)
		for key, value := range entries {
			if value == nil {
				entries[key] = ""
			}
			if strings.HasPrefix(key, prefix+"/") || key == "helm.corbel.run/revision" || strings.Count(key, "/") > 1 {
				delete(entries, key)
			}
		}
		if _, there := metadata[field]; there && len(entries) == 0 {
			delete(metadata, field)
		}
	}
	text, err := yaml.Marshal(content)
	return object{name: fmt.Sprintf("%v %v", content["kind"], metadata["name"]), text: string(text)}, err
}

func generatorOf(path string) (*helm.Generator, error) {
	return helm.New(os.DirFS(filepath.Dir(path)), filepath.Base(path), helmOptions())
}

func helmOptions() helm.Options {
	return helm.Options{KubeVersion: kubeVersion, APIVersions: append(common.DefaultCapabilities.Copy().APIVersions, apiVersions...)}
}

// byUs renders a chart with the generator.
func byUs(path string, values map[string]any, upgrade bool) ([]object, error) {
	generator, err := generatorOf(path)
	if err != nil {
		return nil, err
	}
	ctx := manifests.WithComponentRevision(context.Background(), 1)
	if upgrade {
		ctx = manifests.WithComponentRevision(ctx, 2)
	}
	ctx = manifests.WithReconcilerName(ctx, prefix)
	generated, err := manifests.Generate(ctx, generator, namespace, releaseName, types.UnstructurableMap(values))
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, item := range generated {
		// Through YAML, so that numbers are what they are on the other side.
		text, err := yaml.Marshal(item)
		if err != nil {
			return nil, err
		}
		parts, err := split(string(text))
		if err != nil {
			return nil, err
		}
		objects = append(objects, parts...)
	}
	return objects, nil
}

func checkDependencies(c *chart.Chart) error {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		found := false
		for _, dependency := range c.Dependencies() {
			found = found || dependency.Name() == wanted.Name
		}
		if !found {
			missing = append(missing, wanted.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("found in Chart.yaml, but missing in charts/ directory: %s", strings.Join(missing, ", "))
	}
	return nil
}

func init() { log.SetOutput(io.Discard) }
