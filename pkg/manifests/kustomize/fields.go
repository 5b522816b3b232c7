// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Deprecated fields are built, so they are looked at.

package kustomize

import (
	"errors"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

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
	c.everywhere(k)
	for i, patch := range k.PatchesStrategicMerge {
		c.patch(string(patch), nil)
		c.inlineOrFile(at.in("patchesStrategicMerge[%d]", i), string(patch))
	}
	c.patches(at.in("patches"), k.Patches)
	c.patches(at.in("patchesJson6902"), k.PatchesJson6902)
	for i, replacement := range k.Replacements {
		if replacement.Path != "" {
			c.file(at.in("replacements[%d].path", i), replacement.Path)
			c.replacementFile(c.tree.files[path.Join(at.folder, replacement.Path)])
			continue
		}
		c.replacement(replacement.Replacement)
	}
	c.growth.objects += len(k.ConfigMapGenerator) + len(k.SecretGenerator)
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
			c.patch(string(c.tree.files[path.Join(at.folder, patch.Path)]), patch.Target)
		}
		c.patch(patch.Patch, patch.Target)
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

// isInline tells whether a field holds YAML, and not a path. Nothing that is a
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
