// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Deprecated fields are built, so they are approved.

package kustomize

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// asItIs marks the path of a kustomization that is wanted as data. No file is
// called like this.
const asItIs = "\x00"

// approve keeps the kustomization for the build, in the form in which it was looked
// at. It is the second barrier against other machines: the library sees no
// kustomization that was not approved, and all paths in the others begin with a dot,
// so that the library takes none of them for a URL or a repository, also if the
// look at them was wrong.
func (c *checker) approve(at place, k *types.Kustomization) {
	c.localize(at.folder, k)
	data, err := yaml.Marshal(k)
	if err != nil {
		c.add(err)
		return
	}
	c.approved[at.file] = data
}

func (c *checker) localize(folder string, k *types.Kustomization) {
	local := func(value *string) { *value = c.local(folder, *value) }
	unlessInline := func(value *string) {
		if !isInline(*value) {
			local(value)
		}
	}
	for _, paths := range [][]string{k.Resources, k.Bases, k.Components, k.Crds, k.Configurations} {
		for i := range paths {
			local(&paths[i])
		}
	}
	for _, values := range [][]string{k.Generators, k.Transformers, k.Validators} {
		for i := range values {
			unlessInline(&values[i])
		}
	}
	for i := range k.PatchesStrategicMerge {
		unlessInline((*string)(&k.PatchesStrategicMerge[i]))
	}
	for _, patches := range [][]types.Patch{k.Patches, k.PatchesJson6902} {
		for i := range patches {
			local(&patches[i].Path)
		}
	}
	for i := range k.Replacements {
		local(&k.Replacements[i].Path)
	}
	if p, ok := k.OpenAPI["path"]; ok {
		k.OpenAPI["path"] = c.local(folder, p)
	}
	for i := range k.ConfigMapGenerator {
		c.localizeSources(folder, &k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		c.localizeSources(folder, &k.SecretGenerator[i].KvPairSources)
	}
}

func (c *checker) localizeSources(folder string, s *types.KvPairSources) {
	for i, file := range s.FileSources {
		key, p, keyed := strings.Cut(file, "=")
		if !keyed {
			key, p = path.Base(file), file
		}
		s.FileSources[i] = key + "=" + c.local(folder, p)
	}
	for i := range s.EnvSources {
		s.EnvSources[i] = c.local(folder, s.EnvSources[i])
	}
	s.EnvSource = c.local(folder, s.EnvSource)
}

// local returns a path that nobody takes for that of another machine.
func (c *checker) local(folder, p string) string {
	if p == "" {
		return ""
	}
	if _, isFile := c.tree.files[path.Join(folder, p)]; isFile && isKustomization(p) {
		p += asItIs
	}
	if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
		return p
	}
	return "./" + p
}

func isKustomization(p string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(p))
}
