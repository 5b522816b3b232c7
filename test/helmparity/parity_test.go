// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
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

func compare(path string, values map[string]any, at setting) verdict {
	want, wantErr := byHelm(path, values, at)
	got, err := byUs(path, values, at)
	switch {
	case err != nil && wantErr != nil:
		return verdict{refused: true, byHelm: wantErr, byUs: err}
	case err != nil:
		return verdict{difference: "only ours refuses: " + err.Error()}
	case wantErr != nil:
		return verdict{difference: "only Helm refuses: " + wantErr.Error()}
	}
	v := verdict{difference: cmp.Diff(want, got)}
	if v.difference == "" {
		return v
	}
	again, err := byHelm(path, values, at)
	if err != nil {
		return v
	}
	expected, actual, random := withoutRandom(texts(want), texts(again), texts(got))
	if random {
		v.difference = cmp.Diff(expected, actual)
	}
	return verdict{difference: v.difference, random: random}
}

// texts returns the objects line by line.
func texts(objects []object) []string {
	result := make([]string, len(objects))
	for i, o := range objects {
		text, err := yaml.Marshal(o.Content)
		result[i] = fmt.Sprintf("%s\n%s%v", o.Name, text, err)
	}
	return result
}

func TestChartsAreRenderedAsByHelm(t *testing.T) {
	charts := check.Must(os.ReadDir("testdata/charts"))(t)
	if len(charts) < 40 {
		t.Errorf("there are %d charts, want at least 40", len(charts))
	}
	sets := 0
	for _, entry := range charts {
		path := filepath.Join("testdata/charts", entry.Name())
		all := valuesOf(t, path)
		sets += len(all)
		for _, at := range settings() {
			for name, values := range all {
				t.Run(fmt.Sprintf("%s/%s/%s", entry.Name(), name, at), func(t *testing.T) {
					v := compare(path, values, at)
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
	if sets < 75 {
		t.Errorf("there are %d sets of values, want at least 75", sets)
	}
}

// The comparison would show little if it treated texts as numbers, or rounded them.
func TestValuesOfOtherTypesAreDifferent(t *testing.T) {
	for value, other := range map[string]string{`"1"`: "1", "true": `"true"`, "9007199254740993": "9007199254740992", "[]": "null"} {
		want := check.Must(split("kind: A\nvalue: " + value + "\n"))(t)
		got := check.Must(split("kind: A\nvalue: " + other + "\n"))(t)
		if cmp.Equal(want, got) {
			t.Errorf("%s is the same as %s", value, other)
		}
	}
}

// valuesOf returns the values to render a chart with: those of the chart itself, and
// each values file that it ships, beside them or in a folder for tests and examples.
func valuesOf(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	sets := map[string]map[string]any{"defaults": {}}
	for _, pattern := range []string{"*values*.y*ml", "ci/*.y*ml", "values/*.y*ml", "examples/*values*.y*ml", "examples/*/*values*.y*ml"} {
		files := check.Must(filepath.Glob(filepath.Join(path, pattern)))(t)
		for _, file := range files {
			name := check.Must(filepath.Rel(path, file))(t)
			if name == "values.yaml" {
				continue // the defaults
			}
			data := check.Must(os.ReadFile(file))(t)
			values, err := loader.LoadValues(bytes.NewReader(data))
			if err != nil {
				t.Logf("%s holds no values: %v", file, err)
				continue
			}
			sets[name] = values
		}
	}
	return sets
}
