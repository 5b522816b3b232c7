// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
)

// foreignFiles are files by which a kustomization tells SAP component-operator-runtime how it is rendered,
// with what takes their place. To build without them would give other objects.
var foreignFiles = map[string]string{
	".component-config.yaml": "its delimiters and suffix are Options.Templates, its values those of the spec or of a parameter transformer, " +
		"and files beside the folder need no list: a kustomization may refer to all files below the root",
	".component-ignore": "move it to the root as .corbelignore, which follows the same rules, or name it in Options.IgnoreFile",
}

// checkDialect refuses what the folder, or one below it, has for another program.
func (t *tree) checkDialect(folder, ignoreFile string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		instead, found := foreignFiles[path.Base(name)]
		if !found || name == ignoreFile || !isBelow(folder, name) {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: it is a file of SAP component-operator-runtime, which is not read: %s; then remove it", name, instead))
	}
	return errors.Join(errs...)
}

// findActions returns an error that names the first file with actions of a template. It explains another
// error of a build without templates, in which they are YAML that makes no sense.
func (t *tree) findActions(folder string, ignored ignoreRules) error {
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if ext := path.Ext(name); (ext == ".yaml" || ext == ".yml") && isBelow(folder, name) && !ignored.ignores(name) && bytes.Contains(t.files[name], []byte("{{")) {
			return fmt.Errorf("%s may be a template, and files are not: set Options.Templates", name)
		}
	}
	return nil
}

// isBelow reports whether a file is in a folder or one below it.
func isBelow(folder, name string) bool {
	for at := path.Dir(name); ; at = path.Dir(at) {
		if at == folder {
			return true
		}
		if at == "." {
			return false
		}
	}
}
