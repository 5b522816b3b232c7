// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Deprecated fields are built, so they are checked.

package kustomize

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/types"
)

// fieldKind is the kind of the content of a field of a kustomization.
type fieldKind int

const (
	resourceField fieldKind = iota // a file that is read as YAML, a folder or a repository
	yamlField                      // a file that is read as YAML
	inlineField                    // YAML, or such a file
	pluginField                    // the configuration of a plugin: YAML, such a file, a folder or a repository
	textField                      // YAML
	dataField                      // a file that may hold anything
	keyedField                     // the same, maybe with a key before it
	literalField                   // a key and a value
)

// holdsText reports whether the field holds YAML, and not a path.
func (k fieldKind) holdsText(value string) bool {
	return k == textField || (k == inlineField || k == pluginField) && isInline(value)
}

// eachField calls visit for each field of a kustomization that makes the library load something,
// and for each field with YAML or values. It sets the field to the value that visit leaves.
func eachField(k *types.Kustomization, visit func(field string, kind fieldKind, value *string)) {
	list := func(field string, kind fieldKind, values []string) {
		for i := range values {
			visit(fmt.Sprintf("%s[%d]", field, i), kind, &values[i])
		}
	}
	patches := func(field string, patches []types.Patch) {
		for i := range patches {
			visit(fmt.Sprintf("%s[%d].path", field, i), yamlField, &patches[i].Path)
			visit(fmt.Sprintf("%s[%d].patch", field, i), textField, &patches[i].Patch)
		}
	}
	sources := func(field string, i int, s *types.KvPairSources) {
		field = fmt.Sprintf("%s[%d]", field, i)
		list(field+".literals", literalField, s.LiteralSources)
		list(field+".files", keyedField, s.FileSources)
		list(field+".envs", dataField, s.EnvSources)
		visit(field+".env", dataField, &s.EnvSource)
	}
	list("resources", resourceField, k.Resources)
	list("bases", resourceField, k.Bases)
	list("components", resourceField, k.Components)
	list("crds", yamlField, k.Crds)
	list("configurations", yamlField, k.Configurations)
	list("generators", pluginField, k.Generators)
	list("transformers", pluginField, k.Transformers)
	list("validators", pluginField, k.Validators)
	if p, ok := k.OpenAPI["path"]; ok {
		visit("openapi.path", yamlField, &p)
		k.OpenAPI["path"] = p
	}
	for i := range k.PatchesStrategicMerge {
		visit(fmt.Sprintf("patchesStrategicMerge[%d]", i), inlineField, (*string)(&k.PatchesStrategicMerge[i]))
	}
	patches("patches", k.Patches)
	patches("patchesJson6902", k.PatchesJson6902)
	for i := range k.Replacements {
		visit(fmt.Sprintf("replacements[%d].path", i), yamlField, &k.Replacements[i].Path)
	}
	for i := range k.ConfigMapGenerator {
		sources("configMapGenerator", i, &k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		sources("secretGenerator", i, &k.SecretGenerator[i].KvPairSources)
	}
}
