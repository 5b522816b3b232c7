// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	charter "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	releaseName = "shop"
	namespace   = "prod"
	// kubeVersion is that of the target, if nothing else is said.
	kubeVersion = "1.33.1"
	// prefix is the name of the reconciler, with which our annotations start.
	prefix = "parity.example.com"
)

// apiVersions are those that charts of the operators' world ask for.
var apiVersions = []string{"monitoring.coreos.com/v1", "cert-manager.io/v1", "cert-manager.io/v1/Certificate"}

// setting is what a chart is rendered for.
type setting struct {
	kubeVersion string
	upgrade     bool
}

// settings are those that charts are rendered for: the oldest and the newest version of
// Kubernetes that charts may still be for, as an installation and as an upgrade.
func settings() []setting {
	var all []setting
	for _, version := range []string{"1.28.0", kubeVersion, "1.37.2"} {
		all = append(all, setting{version, false}, setting{version, true})
	}
	return all
}

func (s setting) String() string { return fmt.Sprintf("%s,upgrade=%t", s.kubeVersion, s.upgrade) }

// object is one rendered object, with the values that a client gets of it.
type object struct {
	Name    string
	Content map[string]any
}

// byHelm renders a chart with the code of helm template --include-crds.
func byHelm(path string, values map[string]any, at setting) (objects []object, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	loaded, err := loadByHelm(path)
	if err != nil {
		return nil, err
	}
	rendered, err := renderByHelm(loaded, releaseName, values, at)
	if err != nil {
		return nil, err
	}
	text := rendered.Manifest
	for _, hook := range rendered.Hooks {
		if !runs(hook, at.upgrade) {
			continue
		}
		text += "---\n# Source: " + hook.Path + "\n" + hook.Manifest + "\n"
	}
	return split(text)
}

// loadByHelm loads a chart as the command does, which looks at the version of the chart
// first, and installs charts of one kind only.
func loadByHelm(path string) (*chart.Chart, error) {
	found, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	loaded, ok := found.(*chart.Chart)
	if !ok {
		return nil, errors.New("invalid chart apiVersion")
	}
	if kind := loaded.Metadata.Type; kind != "" && kind != "application" {
		return nil, fmt.Errorf("%s charts are not installable", kind)
	}
	accessor, err := charter.NewAccessor(loaded)
	if err != nil {
		return nil, err
	}
	return loaded, action.CheckDependencies(loaded, accessor.MetaDependencies())
}

func renderByHelm(loaded *chart.Chart, name string, values map[string]any, at setting) (*release.Release, error) {
	version, err := common.ParseKubeVersion(at.kubeVersion)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.Replace, install.IncludeCRDs = action.DryRunClient, true, true
	install.ReleaseName, install.Namespace, install.IsUpgrade = name, namespace, at.upgrade
	install.KubeVersion, install.APIVersions = version, apiVersions
	result, err := install.RunWithContext(context.Background(), loaded, values)
	if err != nil {
		return nil, err
	}
	return result.(*release.Release), nil
}

// runs reports whether a hook is for an installation, or an upgrade, or for a
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

// split returns the objects of a stream in their order, as clients decode them.
func split(text string) ([]object, error) {
	documents := releaseutil.SplitManifests(text)
	var objects []object
	for i := range len(documents) {
		data, err := yaml.YAMLToJSON([]byte(documents[fmt.Sprintf("manifest-%d", i)]))
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := json.Unmarshal(data, &content); err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue
		}
		for _, item := range withoutLists(content) {
			objects = append(objects, objectOf(item))
		}
	}
	return objects, nil
}

// withoutLists returns the items of a list, which Helm prints as it is and then installs
// one by one.
func withoutLists(content map[string]any) []map[string]any {
	items, isList := content["items"].([]any)
	kind, _ := content["kind"].(string)
	if kind = strings.TrimSuffix(kind, "List"); !isList || kind == content["kind"] {
		return []map[string]any{content}
	}
	var all []map[string]any
	for _, item := range items {
		inner, _ := item.(map[string]any)
		if kind != "" && inner["kind"] == nil {
			inner["kind"], inner["apiVersion"] = kind, content["apiVersion"]
		}
		all = append(all, withoutLists(inner)...)
	}
	return all
}

// objectOf normalises an object: the API server treats null annotations as none,
// and refuses those with two slashes in their names, so that ours has none.
func objectOf(content map[string]any) object {
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
	return object{Name: fmt.Sprintf("%v %v", content["kind"], metadata["name"]), Content: content}
}

// generatorOf follows links in the path itself, because Helm does; the generator does not
// leave its file system.
func generatorOf(path string, at setting) (manifests.Generator, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return helm.New(os.DirFS(filepath.Dir(path)), filepath.Base(path), helmOptions(at))
}

func helmOptions(at setting) helm.Options {
	return helm.Options{KubeVersion: at.kubeVersion, APIVersions: append(common.DefaultCapabilities.Copy().APIVersions, apiVersions...)}
}

// byUs renders a chart with the generator.
func byUs(path string, values map[string]any, at setting) ([]object, error) {
	generator, err := generatorOf(path, at)
	if err != nil {
		return nil, err
	}
	known := manifests.Context{ReconcilerName: prefix, Revision: 1}
	if at.upgrade {
		known.Revision, known.Upgrade = 2, true
	}
	ctx := known.In(context.Background())
	generated, err := manifests.Generate(ctx, generator, namespace, releaseName, types.UnstructurableMap(values))
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, item := range generated {
		objects = append(objects, objectOf(item.(*unstructured.Unstructured).Object))
	}
	return objects, nil
}

func init() { log.SetOutput(io.Discard) }
