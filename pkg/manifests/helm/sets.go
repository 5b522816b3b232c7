// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// maxSets limits how many sets of parsed templates a generator keeps. There is
// one for each combination of sub-charts that was ever wanted.
const maxSets = 8

// parser parses the templates of all charts.
var parser = templates.NewParser("", "", functions)

// sets are the parsed templates of a chart.
type sets struct {
	mu    sync.Mutex
	byKey map[string]*template.Template
}

// get returns the templates, parsed. They must not be changed.
func (s *sets) get(files map[string]*common.File) (*template.Template, error) {
	names := inOrder(files)
	var key strings.Builder
	for _, name := range names {
		// The files stay the same as long as the generator lives.
		fmt.Fprintf(&key, "%s\x00%p\x00", name, files[name])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.byKey[key.String()]; ok {
		return set, nil
	}
	set, err := parseAll(names, files)
	if err != nil {
		return nil, err
	}
	if s.byKey == nil || len(s.byKey) >= maxSets {
		s.byKey = map[string]*template.Template{}
	}
	s.byKey[key.String()] = set
	return set, nil
}

func parseAll(names []string, files map[string]*common.File) (*template.Template, error) {
	set := template.New("").Option("missingkey=zero")
	var errs []error
	for _, name := range names {
		errs = append(errs, parser.Parse(set, name, string(files[name].Data), nil))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, nil
}

// inOrder returns the names as Helm parses them: those with the longest paths
// first, so that charts override what their sub-charts define.
func inOrder(files map[string]*common.File) []string {
	return slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(b, a))
	})
}
