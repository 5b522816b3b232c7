// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// TestACollectionIsRenderedAsByHelm renders every chart in the folder that CORBEL_HELM_CHARTS
// names, however deep, with each of its values files, the settings in turn. Sub-charts that a
// chart does not bring are read from the collection, if they are there.
func TestACollectionIsRenderedAsByHelm(t *testing.T) {
	root := os.Getenv("CORBEL_HELM_CHARTS")
	if root == "" {
		t.Skip("CORBEL_HELM_CHARTS names no folder with charts")
	}
	c := collectionIn(t, root)
	var identical, random, refused, total int
	var rest []string
	reasons := map[string][]string{}
	for _, path := range c.charts {
		whole, err := c.complete(t, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for name, values := range valuesOf(t, path) {
			at := settings()[total%len(settings())]
			total++
			where := fmt.Sprintf("%s (%s, %s)", strings.TrimPrefix(path, root), name, at)
			switch v := compare(whole, values, at); {
			case v.refused:
				refused++
				why := reason(v.byHelm)
				reasons[why] = append(reasons[why], where)
				if ours := reason(v.byUs); ours != why || why == failing {
					t.Logf("%s:\n Helm refuses it because %.600v\n and we because %.600v", where, v.byHelm, v.byUs)
				}
			case v.difference == "":
				identical++
				if v.random {
					random++
				}
			default:
				rest = append(rest, where)
				t.Logf("%s: -Helm +ours:\n%.4000s", where, v.difference)
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		slices.Sort(reasons[why])
		t.Logf("both refuse, %s: %d: %.2000s", why, len(reasons[why]), strings.Join(reasons[why], ", "))
	}
	slices.Sort(rest)
	t.Logf("%d charts, %d identical (%d of them but for lines that Helm renders anew each time), %d both refuse, rest: %v", total, identical, random, refused, rest)
	if len(rest) > 0 || total == 0 {
		t.Fail()
	}
}

const failing = "a template fails with these values"

// reasonOf are the classes of refusals, by what Helm says.
var reasonOf = []struct{ pattern, reason string }{
	{`missing in charts/ directory`, "a sub-chart is neither in the chart nor in the collection"},
	{`requires? kubeVersion|requires Kubernetes`, "it is for another version of Kubernetes"},
	{`library charts are not installable`, "it is a library"},
	{`specifications of the schema|values of chart`, "the values do not fit the schema"},
	{`execution error at|error calling (fail|required)`, "the chart demands other values"},
	{`nil pointer evaluating|wrong type for value|error calling|can't evaluate`, failing},
}

func reason(err error) string {
	for _, class := range reasonOf {
		if regexp.MustCompile(class.pattern).MatchString(err.Error()) {
			return class.reason
		}
	}
	return fmt.Sprintf("%.300v", err)
}

// collection is a folder with charts.
type collection struct {
	charts []string
	byName charts
}

// collectionIn finds the charts below a folder, but not their sub-charts.
func collectionIn(t *testing.T, root string) collection {
	t.Helper()
	c := collection{byName: charts{}}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			if strings.HasSuffix(path, ".tgz") {
				c.charts = append(c.charts, path)
			}
			return nil
		}
		metadata, err := metadataOf(path)
		if os.IsNotExist(err) {
			return nil
		}
		c.charts = append(c.charts, path)
		if err == nil {
			c.byName[metadata.Name] = append(c.byName[metadata.Name], path)
		}
		return filepath.SkipDir
	})
	check.NoError(t, err)
	return c
}

// complete returns the folder of the chart, or that of a copy that holds what it lacks.
func (c collection) complete(t *testing.T, path string) (string, error) {
	if strings.HasSuffix(path, ".tgz") {
		return path, nil
	}
	dependencies, err := missing(path, c.byName)
	if err != nil || len(dependencies) == 0 {
		return path, nil // the loader reports what is wrong
	}
	whole := filepath.Join(t.TempDir(), filepath.Base(path))
	return whole, vendor(path, whole, c.byName, maxLevels)
}
