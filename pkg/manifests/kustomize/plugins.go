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
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

var errCharts = fmt.Errorf("%w; use the Helm generator for charts", ErrPlugin)

// loading are the fields of built-in plugins that hold paths of files to load.
var loading = []string{"path", "paths", "files", "env", "envs", "targetFilePath"}

// plugin looks at the configuration of a generator, transformer or validator,
// which stands in the field, in a file, or in the files of a folder.
func (c *checker) plugin(at place, value string) {
	if isRepository(value) {
		c.fail(at, value, ErrRemote)
		return
	}
	if isInline(value) {
		c.configuration(at, []byte(value))
		return
	}
	name, ok := c.find(at, value)
	switch {
	case !ok:
	case c.tree.folders[name]:
		c.pluginFolder(name)
	default:
		at = place{file: name, folder: at.folder}
		c.yaml(at, name)
		c.configuration(at, c.tree.files[name])
	}
}

// pluginFolder accepts kustomizations that only list files.
func (c *checker) pluginFolder(folder string) {
	if !c.enter(folder) {
		return
	}
	defer c.leave()
	at, k := c.load(folder)
	if k == nil {
		return
	}
	resources := k.Resources
	rest := *k
	rest.TypeMeta, rest.MetaData, rest.Resources = types.TypeMeta{}, nil, nil
	if rest.CheckEmpty() == nil {
		c.add(fmt.Errorf("%s: folder %s configures generators, transformers or validators, so its kustomization may do nothing but list resources", at.file, folder))
		return
	}
	for i, p := range resources {
		// The paths in them are relative to the kustomization that uses them, so
		// nothing can be said about them but that they lead nowhere else.
		c.plugin(at.in("resources[%d]", i), p)
	}
	c.approve(at, k)
}

// configuration looks at the documents that configure plugins.
func (c *checker) configuration(at place, data []byte) {
	if err := c.tree.checkBounds(data, c.limits); err != nil {
		c.fail(at, "", err)
		return
	}
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
func (c *checker) configurations(at place, document any) {
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
		c.fail(at, version+" "+kind, fmt.Errorf("%w; their apiVersion is %q", ErrPlugin, konfig.BuiltinPluginApiVersion))
	case kind == "HelmChartInflationGenerator":
		c.fail(at, kind, errCharts)
	default:
		c.paths(at, content)
	}
}

// paths refuses whatever might make a built-in plugin load something that is
// not in the tree. Not all of it is the path of a file: it may be that of a
// field.
func (c *checker) paths(at place, value any) {
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
	for _, field := range loading {
		if strings.EqualFold(field, key) {
			return true
		}
	}
	return false
}

// pluginFile looks at a file, whatever the plugin does with it. What is no file may be the
// path of a field.
func (c *checker) pluginFile(at place, value string) {
	name, err := resolve(at.folder, value)
	if data, isFile := c.tree.files[name]; err == nil && isFile {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			c.yaml(at, name)
		} else if err := c.tree.checkBounds(data, c.limits); err != nil {
			c.fail(at, value, err)
		}
	}
}

func (c *checker) loaded(at place, value any) {
	switch value := value.(type) {
	case string:
		_, after, _ := strings.Cut(value, "=")
		switch {
		case isURL(value) || isURL(after):
			c.fail(at, value, ErrRemote)
		case isKustomization(cmp.Or(after, value)):
			// It would not be what stands in the file, see approve.
			c.fail(at, value, errors.New("a kustomization cannot be the data of a plugin"))
		default:
			c.pluginFile(at, value)
		}
	case []any:
		for i, item := range value {
			c.loaded(at.in("[%d]", i), item)
		}
	}
}
