// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// verdict says how the two renderings of a chart compare.
type verdict struct {
	// refused: neither renders the chart.
	refused bool
	// difference is empty if both are the same.
	difference string
}

func compare(path string, values map[string]any, upgrade bool) verdict {
	want, wantErr := byHelm(path, values, upgrade)
	got, err := byUs(path, values, upgrade)
	switch {
	case err != nil && wantErr != nil:
		return verdict{refused: true}
	case err != nil:
		return verdict{difference: "only ours refuses: " + err.Error()}
	case wantErr != nil:
		return verdict{difference: "only Helm refuses: " + wantErr.Error()}
	}
	return verdict{difference: cmp.Diff(texts(want), texts(got))}
}

func texts(objects []object) []string {
	result := make([]string, len(objects))
	for i, o := range objects {
		result[i] = o.name + "\n" + o.text
	}
	return result
}

func TestChartsAreRenderedAsByHelm(t *testing.T) {
	charts, err := os.ReadDir("testdata/charts")
	if err != nil {
		t.Fatal(err)
	}
	if len(charts) < 40 {
		t.Errorf("there are %d charts, want at least 40", len(charts))
	}
	for _, entry := range charts {
		path := filepath.Join("testdata/charts", entry.Name())
		for _, upgrade := range []bool{false, true} {
			for name, values := range valuesOf(t, path) {
				t.Run(fmt.Sprintf("%s/%s/upgrade=%t", entry.Name(), name, upgrade), func(t *testing.T) {
					v := compare(path, values, upgrade)
					refuses := strings.HasPrefix(entry.Name(), "refused-")
					if v.difference != "" {
						t.Errorf("-Helm +ours:\n%s", v.difference)
					} else if v.refused != refuses {
						t.Errorf("refused: %t, want %t", v.refused, refuses)
					}
				})
			}
		}
	}
}

// valuesOf returns the values to render a chart with: those of the chart itself,
// and those in its files ci/*.yaml.
func valuesOf(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	sets := map[string]map[string]any{"defaults": {}}
	files, err := filepath.Glob(filepath.Join(path, "ci", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(data, &values); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sets[filepath.Base(file)] = values
	}
	return sets
}

// TestACollectionIsRenderedAsByHelm renders every chart in the folder that
// CORBEL_HELM_CHARTS names, however deep.
func TestACollectionIsRenderedAsByHelm(t *testing.T) {
	root := os.Getenv("CORBEL_HELM_CHARTS")
	if root == "" {
		t.Skip("CORBEL_HELM_CHARTS names no folder with charts")
	}
	var identical, refused, total int
	var rest []string
	for _, path := range chartsIn(t, root) {
		for name, values := range valuesOf(t, path) {
			total++
			switch v := compare(path, values, false); {
			case v.refused:
				refused++
			case v.difference == "":
				identical++
			default:
				rest = append(rest, strings.TrimPrefix(path, root)+" ("+name+")")
				t.Logf("%s (%s): -Helm +ours:\n%.4000s", path, name, v.difference)
			}
		}
	}
	slices.Sort(rest)
	t.Logf("%d charts, %d identical, %d both refuse, rest: %v", total, identical, refused, rest)
	if len(rest) > 0 || total == 0 {
		t.Fail()
	}
}

// chartsIn returns the charts below a folder, but not their sub-charts.
func chartsIn(t *testing.T, root string) []string {
	t.Helper()
	var charts []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			if strings.HasSuffix(path, ".tgz") {
				charts = append(charts, path)
			}
			return nil
		}
		if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err == nil {
			charts = append(charts, path)
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return charts
}
