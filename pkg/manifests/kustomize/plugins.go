// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
)

var errCharts = fmt.Errorf("%w; use the Helm generator for charts", errPlugin)

// loading are the fields of built-in plugins that hold paths of files to load.
var loading = []string{"path", "paths", "files", "env", "envs", "targetFilePath"}

// configuration looks at the documents that configure plugins.
func (c *checker) configuration(at fieldRef, data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for number := 1; ; number++ {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		here := at
		if here.field == "" {
			here.field = fmt.Sprintf("document %d", number)
		}
		if err != nil {
			c.fail(here, "", errors.New("the configuration does not parse"))
			return
		}
		c.configurations(here, document)
	}
}

// configurations looks at one configuration, or a list of them.
func (c *checker) configurations(at fieldRef, document any) {
	content, ok := document.(map[string]any)
	if !ok {
		if document != nil {
			c.fail(at, "", errors.New("want an object that configures a plugin"))
		}
		return
	}
	version, kind := fmt.Sprint(content["apiVersion"]), fmt.Sprint(content["kind"])
	if items, isList := content["items"].([]any); isList && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			c.configurations(at.in(".items[%d]", i), item)
		}
		return
	}
	switch {
	case version != konfig.BuiltinPluginApiVersion:
		c.fail(at, version+" "+kind, fmt.Errorf("%w; their apiVersion is %q", errPlugin, konfig.BuiltinPluginApiVersion))
	case kind == "HelmChartInflationGenerator":
		c.fail(at, kind, errCharts)
	default:
		c.paths(at, content)
	}
}

// paths refuses values that might make a built-in plugin load something that is not in the tree.
// Not every value is the path of a file: it may be the path of a field.
func (c *checker) paths(at fieldRef, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if isLoading(key) {
				c.loaded(at.in(".%s", key), value[key])
			}
			c.paths(at.in(".%s", key), value[key])
		}
	case []any:
		for i, child := range value {
			c.paths(at.in("[%d]", i), child)
		}
	}
}

// isLoading compares as the JSON decoder does, which ignores the case.
func isLoading(key string) bool {
	return slices.ContainsFunc(loading, func(field string) bool { return strings.EqualFold(field, key) })
}

// loaded looks at a value that a plugin may load. A value that is no file may be the path of a
// field.
func (c *checker) loaded(at fieldRef, value any) {
	switch value := value.(type) {
	case string:
		_, after, _ := strings.Cut(value, "=")
		switch {
		case isURL(value) || isURL(after):
			c.fail(at, value, errRemote)
		case strings.Contains(value, rawSuffix) || isKustomization(cmp.Or(after, value)):
			// It would differ from the file, see approve.
			c.fail(at, value, errors.New("a kustomization cannot be the data of a plugin"))
		default:
			if name, err := resolve(at.folder, value); err == nil {
				c.text(fieldRef{file: name}, yamlField, c.tree.files[name])
			}
		}
	case []any:
		for i, item := range value {
			c.loaded(at.in("[%d]", i), item)
		}
	}
}
