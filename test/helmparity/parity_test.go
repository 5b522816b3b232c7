// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// verdict says how the two renderings of a chart compare.
type verdict struct {
	// refused: neither renders the chart. These are the reasons of both.
	refused      bool
	byHelm, byUs error
	// random: Helm gives something else every time; the rest was compared.
	random bool
	// difference is empty if both are the same.
	difference string
}

func compare(path string, values map[string]any, upgrade bool) verdict {
	want, wantErr := byHelm(path, values, upgrade)
	got, err := byUs(path, values, upgrade)
	switch {
	case err != nil && wantErr != nil:
		return verdict{refused: true, byHelm: wantErr, byUs: err}
	case err != nil:
		return verdict{difference: "only ours refuses: " + err.Error()}
	case wantErr != nil:
		return verdict{difference: "only Helm refuses: " + wantErr.Error()}
	}
	v := verdict{difference: cmp.Diff(texts(want), texts(got))}
	if v.difference == "" {
		return v
	}
	again, err := byHelm(path, values, upgrade)
	if err != nil {
		return v
	}
	expected, actual, random := withoutRandom(texts(want), texts(again), texts(got))
	return verdict{difference: cmp.Diff(expected, actual), random: random}
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
