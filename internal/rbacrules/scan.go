// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
)

// ScanChart returns the kinds of objects that the templates of a chart and of its sub-charts can
// render, and the kinds in its folders crds. Unknown are the places where a kind is computed in a
// way that cannot be read. A template that does not parse is an error.
func ScanChart(files fs.FS, dir string) (kinds []Kind, unknown []string, err error) {
	s := &scanner{defines: map[string]string{}, values: map[string]map[string]any{}}
	if err := s.read(files, dir, ""); err != nil {
		return nil, nil, err
	}
	// Templates use definitions of other files, so all are parsed first.
	for _, f := range s.files {
		if err := s.parse(f); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range s.texts {
		s.scan(t)
	}
	slices.Sort(s.unknown)
	return complete(s.kinds, s.defined), slices.Compact(s.unknown), nil
}

// file is a template or a definition.
type file struct{ name, text string }

// scanner collects the findings.
type scanner struct {
	files   []file
	defines map[string]string         // flattened, by name
	values  map[string]map[string]any // the defaults of a chart, by the beginning of the names of its files
	texts   []file                    // flattened templates
	kinds   []Kind
	defined []Kind
	unknown []string
}

// read reads the files of a chart, and of its sub-charts, which may be packed. The prefix names the
// chart in messages.
func (s *scanner) read(files fs.FS, dir, prefix string) error {
	return fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		if placeOf(relative) == "" {
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return s.take(prefix, relative, content)
	})
}

// placeOf returns which folder of a chart, or of a sub-chart that is a folder, a file is in: templates, crds, or
// charts if it is a packed sub-chart. It is values.yaml for that file, and empty for another one.
func placeOf(name string) string {
	for {
		folder, rest, found := strings.Cut(name, "/")
		switch {
		case name == valuesFile:
			return name
		case !found:
			return ""
		case folder == "templates", folder == "crds":
			return folder
		case folder == "charts" && path.Ext(rest) == ".tgz" && !strings.Contains(rest, "/"):
			return folder
		case folder != "charts":
			return ""
		}
		_, name, _ = strings.Cut(rest, "/") // the folder of the sub-chart
	}
}

// take takes a file of a chart.
func (s *scanner) take(prefix, name string, content []byte) error {
	switch placeOf(name) {
	case "templates":
		s.files = append(s.files, file{prefix + name, string(content)})
	case "crds":
		s.readDefinitions(prefix+name, content)
	case "charts":
		return s.readPacked(content, prefix+name+"/")
	case valuesFile:
		var values map[string]any
		_ = yaml.Unmarshal(content, &values) // the generator reports a mistake when it loads the chart
		s.values[strings.TrimSuffix(prefix+name, valuesFile)] = values
	}
	return nil
}

// valuesFile has the default values of a chart.
const valuesFile = "values.yaml"

// defaultOf returns the default of a value in the chart of a template; nil if it has none.
func (s *scanner) defaultOf(template, value string) any {
	chart, _, _ := strings.Cut(template, "templates/")
	found, _, _ := unstructured.NestedFieldNoCopy(s.values[chart], strings.Split(value, ".")...)
	return found
}

// maxPacked bounds a packed sub-chart.
const maxPacked = 100 << 20

// readPacked reads a packed sub-chart.
func (s *scanner) readPacked(content []byte, prefix string) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: it is no packed chart: %w", prefix, err)
	}
	for archive := tar.NewReader(io.LimitReader(unzipped, maxPacked)); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		if err := s.take(prefix, name, text); err != nil {
			return err
		}
	}
}

// readDefinitions reads a file of the folder crds, which is no template.
func (s *scanner) readDefinitions(name string, content []byte) {
	for _, document := range separator.Split(string(content), -1) {
		object := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(document), &object.Object) != nil || object.GetKind() == "" {
			continue // Helm refuses it when the chart is loaded
		}
		k := kindIn(object.GetAPIVersion(), object.GetKind())
		k.Origins = []string{name}
		s.kinds = append(s.kinds, k)
		s.defined = append(s.defined, definedBy(object)...)
	}
}

// parse flattens a template and the definitions in it.
func (s *scanner) parse(f file) error {
	trees, err := parseTemplate(f.name, f.text)
	if err != nil {
		return errors.Join(fmt.Errorf("%s does not parse", f.name), err)
	}
	for _, match := range looked.FindAllStringSubmatch(f.text, -1) {
		k := kindIn(match[1], match[2])
		k.Read, k.Origins = true, []string{f.name}
		s.kinds = append(s.kinds, k)
	}
	isTemplate := !strings.HasPrefix(path.Base(f.name), "_") && path.Base(f.name) != "NOTES.txt"
	for name, tree := range trees {
		text := flatten(f.text, tree.Root)
		if name != f.name {
			s.defines[name] += text
		}
		if name != f.name || isTemplate {
			s.texts = append(s.texts, file{f.name, text})
		}
	}
	return nil
}

var (
	separator = regexp.MustCompile(`(?m)^---.*$`)
	// topLevel is a line with an apiVersion or a kind of an object, and nested one in a list.
	topLevel = regexp.MustCompile(`(?m)^(apiVersion|kind):[ \t]*(.*)$`)
	nested   = regexp.MustCompile(`(?m)^[ \t-]*(apiVersion|kind):[ \t]*(.*)$`)
	// list is the kind of an object that holds other objects.
	list = regexp.MustCompile(`(?m)^kind:[ \t]*["']?List["']?[ \t]*$`)
	// looked is a call of the function lookup with a literal type.
	looked = regexp.MustCompile(`lookup\s+"([^"]+)"\s+"([A-Za-z]+)"`)
	// crdField is a field of a definition that is a template.
	crdField = regexp.MustCompile(`(?m)^[ \t]*(group|plural|kind|scope):[ \t]*["']?([A-Za-z0-9.-]+)["']?[ \t]*$`)
)

// scan finds the kinds in the documents of a flattened template.
func (s *scanner) scan(t file) {
	for _, document := range separator.Split(t.text, -1) {
		line := topLevel
		if list.MatchString(document) {
			line = nested
		}
		for _, o := range outlinesIn(document, line) {
			if s.isNeverApplied(t.name, o.text) {
				continue
			}
			for _, kind := range o.kinds {
				s.add(t.name, o.versions, kind, len(o.kinds) > 1)
			}
			if strings.Contains(o.text, "CustomResourceDefinition") {
				s.define(o.text)
			}
		}
	}
}

// outline is the part of a document that describes an object, with its possible apiVersions and kinds: branches may
// choose between them.
type outline struct {
	text            string
	versions, kinds []string
}

// outlinesIn returns the outlines of a document. It has several if branches hold whole objects. The lines have an
// apiVersion or a kind; an outline begins with the same one of the two as the document.
func outlinesIn(document string, line *regexp.Regexp) (found []outline) {
	first, last := "", ""
	var starts []int
	for _, at := range line.FindAllStringSubmatchIndex(document, -1) {
		field, value := document[at[2]:at[3]], document[at[4]:at[5]]
		if first == "" {
			first = field
		}
		if field == first && last != first {
			found, starts = append(found, outline{}), append(starts, at[0])
		}
		o := &found[len(found)-1]
		if field == "kind" {
			o.kinds = append(o.kinds, value)
		} else {
			o.versions = append(o.versions, value)
		}
		last = field
	}
	starts = append(starts, len(document))
	for n := range found {
		found[n].text = document[starts[n]:starts[n+1]]
	}
	return found
}

// add notes the possible kinds of a pair of apiVersions and kind. If there are other kinds, the
// apiVersion may belong to one of them.
func (s *scanner) add(origin string, versions []string, kind string, others bool) {
	kinds, complete := s.valuesOf(origin, kind, kindName)
	if !complete {
		s.unknown = append(s.unknown, origin+": kind: "+readable(kind))
	}
	for _, name := range kinds {
		if name == "List" {
			continue
		}
		var groups []string
		for _, version := range versions {
			found, _ := s.valuesOf(origin, version, groupVersion)
			groups = append(groups, found...)
		}
		var found []Kind
		for _, version := range groups {
			found = append(found, kindIn(version, name))
		}
		if found = consistent(Merge(found, nil)); len(found) == 0 {
			found = builtIn(name)
		}
		if others && slices.ContainsFunc(found, func(k Kind) bool { return !k.Optional }) {
			found = slices.DeleteFunc(found, func(k Kind) bool { return k.Optional }) // another kind has that apiVersion
		}
		if len(found) == 0 {
			s.unknown = append(s.unknown, origin+": apiVersion of "+name)
		}
		for _, k := range found {
			k.Origins = []string{origin}
			s.kinds = append(s.kinds, k)
		}
	}
}

// consistent leaves out pairs of the apiVersion of one branch with the kind of another: kinds that a
// group of Kubernetes does not have.
func consistent(kinds []Kind) []Kind {
	return slices.DeleteFunc(kinds, func(k Kind) bool {
		return k.Optional && cluster.IsBuiltIn(k.Group) && !slices.Contains(removed, k.Kind)
	})
}

// define notes the kind of a definition that is a template, as far as it is literal.
func (s *scanner) define(document string) {
	k := Kind{Namespaced: true}
	for _, match := range crdField.FindAllStringSubmatch(document, -1) {
		switch value := match[2]; match[1] {
		case "group":
			if k.Group == "" {
				k.Group = value
			}
		case "plural":
			k.Resource = value
		case "kind":
			if value != "CustomResourceDefinition" && k.Kind == "" {
				k.Kind = value
			}
		case "scope":
			k.Namespaced = value != "Cluster"
		}
	}
	if k.Group != "" {
		s.defined = append(s.defined, k)
	}
}
