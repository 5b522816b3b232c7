// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

const (
	// maxCopied limits the bytes that the operations "copy" of one patch add to an
	// object.
	//
	// Limit: what the operations copy of one JSON patch add to an object in a kustomization.
	maxCopied = 256 << 10
	// maxGrowth limits the bytes that patches, labels and annotations may add to all
	// objects together.
	//
	// Limit: what patches, labels and annotations of a kustomization add to all objects together.
	maxGrowth = 1 << 30
	// maxLoads is how many times the limit of all files together a build may load, each
	// file counted as often as it is referred to.
	maxLoads = 4
	// maxNested limits the replacements that may copy what others have changed. Each of
	// them can double an object.
	maxNested = 8
)

// A build can neither be interrupted nor measured. The library applies JSON patches by
// one that has a limit, which is off by default; the API server sets it in this way, too.
func init() {
	if limit := jsonpatch.AccumulatedCopySizeLimit; limit <= 0 || limit > maxCopied {
		jsonpatch.AccumulatedCopySizeLimit = maxCopied
	}
}

// growth estimates, before a build, how large its objects may become.
type growth struct {
	// loaded counts the bytes of the files, objects the documents of resources.
	loaded, objects int
	// spread counts the bytes that may be added to each object, and aimed those that
	// are added to the objects of one name.
	spread, aimed int
	sources       []source
	targets       []target
}

// source is where a replacement copies from, and how many fields it copies to.
type source struct {
	path   []string
	fields int
}

// target is a field that a replacement copies to. If it joins, what is copied is put into
// the text that the field has.
type target struct {
	path  []string
	joins bool
}

// literal matches names that a selector does not treat as an expression.
var literal = regexp.MustCompile(`^[A-Za-z0-9.:-]+$`)

// weigh counts a file.
func (c *checker) weigh(size int) { c.growth.loaded += size }

// resourceFile counts the objects of a file, those of lists as well.
func (c *checker) resourceFile(data []byte) {
	c.growth.objects += max(1+bytes.Count(data, []byte("\n---")), bytes.Count(data, []byte("apiVersion")))
}

// patch counts a patch. Without a target it is for the object that it names.
func (c *checker) patch(text string, target *types.Selector) {
	size, err := c.tree.checkBounds([]byte(text), c.limits)
	if err != nil {
		return // the look at the text says so
	}
	if copies(text) {
		size += maxCopied
	}
	if target == nil || literal.MatchString(target.Name) {
		c.growth.aimed += size
	} else {
		c.growth.spread += size
	}
}

// pluginText counts the configuration of a plugin, or a file that one refers to. It may be a
// patch for any object, or hold such patches as texts.
func (c *checker) pluginText(at place, data []byte) {
	if _, err := c.tree.checkBounds(data, c.limits); err != nil {
		return // the look at the text says so
	}
	c.patch(string(data), &types.Selector{})
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	for {
		var root yamlv3.Node
		if decoder.Decode(&root) != nil {
			return // the library says why
		}
		c.pluginTexts(at, &root, map[*yamlv3.Node]int{})
	}
}

// pluginTexts counts the texts of a document, each as often as aliases repeat it. The bounds
// of the document are known to be kept. The map has what was counted for an alias, so that
// each node is looked at twice at most.
func (c *checker) pluginTexts(at place, node *yamlv3.Node, aliased map[*yamlv3.Node]int) {
	if node.Kind == yamlv3.AliasNode {
		counted, known := aliased[node.Alias]
		if !known {
			before := c.growth.spread
			c.pluginTexts(at, node.Alias, aliased)
			counted = c.growth.spread - before
			c.growth.spread = before
			aliased[node.Alias] = counted
		}
		c.growth.spread += counted
		return
	}
	var text string
	if node.Kind == yamlv3.ScalarNode && node.Decode(&text) == nil { // of any tag, such as !!binary
		extent, err := document.ExtentOf([]byte(text))
		if err == nil {
			err = isWithin(extent, len(text), c.limits)
		}
		if err != nil {
			c.fail(at, "", err)
			return
		}
		size := max(extent.Bytes, len(text))
		if copies(text) {
			size += maxCopied
		}
		// The text itself is counted with what holds it.
		c.growth.spread += size - len(text)
	}
	for _, child := range node.Content {
		c.pluginTexts(at, child, aliased)
	}
}

// copies reports whether a patch is a JSON patch with an operation "copy". It reads the
// patch as the library does: what starts like JSON is no YAML.
func copies(text string) bool {
	unmarshal := func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "[") {
		unmarshal = json.Unmarshal
	}
	var operations []map[string]any
	return unmarshal([]byte(text), &operations) == nil &&
		slices.ContainsFunc(operations, func(operation map[string]any) bool { return operation["op"] == "copy" })
}

// everywhere counts what a kustomization adds to each object.
func (c *checker) everywhere(k *types.Kustomization) {
	//lint:ignore SA1019 kustomizations with commonLabels are in use
	pairs := []map[string]string{k.CommonLabels, k.CommonAnnotations}
	for _, label := range k.Labels {
		pairs = append(pairs, label.Pairs)
	}
	for _, m := range pairs {
		for key, value := range m {
			c.growth.spread += len(key) + len(value)
		}
	}
	c.growth.spread += len(k.NamePrefix) + len(k.NameSuffix)
}

// replacement counts what a replacement copies, also what it cuts out of a text: that may be
// all of the text.
func (c *checker) replacement(r types.Replacement) {
	fields := 0
	for _, t := range r.Targets {
		if t == nil {
			continue
		}
		fields += len(t.FieldPaths)
		for _, path := range t.FieldPaths {
			c.growth.targets = append(c.growth.targets, target{
				path: utils.SmarterPathSplitter(path, "."), joins: t.Options != nil && t.Options.Delimiter != "",
			})
		}
	}
	if r.Source != nil && r.Source.FieldPath != "" {
		c.growth.sources = append(c.growth.sources, source{path: utils.SmarterPathSplitter(r.Source.FieldPath, "."), fields: fields})
	}
}

// replacementFile looks at a file of replacements, which holds one or a list.
func (c *checker) replacementFile(data []byte) {
	if _, err := c.tree.checkBounds(data, c.limits); err != nil {
		return // the look at the file says so
	}
	var list []types.Replacement
	if yaml.Unmarshal(data, &list) != nil {
		var one types.Replacement
		if yaml.Unmarshal(data, &one) != nil {
			return // the library says why
		}
		list = append(list, one)
	}
	for _, r := range list {
		c.replacement(r)
	}
}

// check refuses a build that might take all memory.
func (g *growth) check(limits Limits) error {
	nested := 0
	for _, s := range g.sources {
		if slices.ContainsFunc(g.targets, s.holds) {
			nested += s.fields
		}
	}
	var errs []error
	if most := maxLoads * limits.TotalBytes; int64(g.loaded) > most {
		errs = append(errs, &LimitError{Message: fmt.Sprintf("the files that it refers to have more than %d bytes, each counted as often as it is referred to", most)})
	}
	if g.spread > maxGrowth/max(1, g.objects) || g.aimed > maxGrowth-g.spread*g.objects {
		errs = append(errs, &LimitError{Message: fmt.Sprintf("its patches, labels and annotations may add more than %d bytes to its objects; "+
			"select fewer objects by each patch, and have fewer patches that copy", maxGrowth)})
	}
	if nested > maxNested {
		errs = append(errs, &LimitError{Message: fmt.Sprintf("its replacements copy more than %d times what other replacements change; each time the object may double", maxNested)})
	}
	return errors.Join(errs...)
}

// holds reports whether the target may be a part of the source: a field below it, or a piece
// of its text.
func (s source) holds(t target) bool {
	if len(t.path) < len(s.path) || len(t.path) == len(s.path) && !t.joins {
		return false
	}
	for i, segment := range s.path {
		if segment != t.path[i] && !strings.ContainsAny(segment+t.path[i], "*[]0123456789") {
			return false
		}
	}
	return true
}

// maxDepth limits how deep a YAML file may be nested, because the library walks
// it recursively.
//
// Unit: levels
// Limit: the nesting of a YAML file of a kustomization.
const maxDepth = 500

// maxExtents limits how many texts a generator knows the extent of.
const maxExtents = 10_000

// checkBounds refuses a YAML text that is nested too deep, or has aliases that
// expand to too much: the library expands all of them. What does not parse is
// left to the library, which says why. It returns the size of the expanded text.
// A text is parsed for it once, as most files are the same in every build.
func (t *tree) checkBounds(data []byte, limits Limits) (size int, err error) {
	key := cache.KeyOf(map[string][]byte{"": data})
	extent, known := t.extents.Get(key)
	if !known {
		if extent, err = document.ExtentOf(data); err != nil {
			return 0, err
		}
		t.extents.Put(key, extent, 1)
	}
	if err := isWithin(extent, len(data), limits); err != nil {
		return 0, err
	}
	return max(extent.Bytes, len(data)), nil
}

// isWithin returns an error if the extent of a text of that size exceeds the limits.
func isWithin(extent document.Extent, size int, limits Limits) error {
	switch {
	case extent.Depth > maxDepth:
		return &LimitError{Message: fmt.Sprintf("it is nested deeper than %d levels", maxDepth)}
	case extent.Values > limits.Values:
		return &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d values", limits.Values)}
	case int64(extent.Bytes) > max(limits.TotalBytes, 4*int64(size)):
		return &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d bytes", limits.TotalBytes)}
	}
	return nil
}
