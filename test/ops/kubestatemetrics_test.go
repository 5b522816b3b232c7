// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// stateMetrics is the configuration of kube-state-metrics for custom resources, as far as it is used.
type stateMetrics struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []struct {
			GroupVersionKind struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"groupVersionKind"`
			MetricNamePrefix string              `json:"metricNamePrefix"`
			LabelsFromPath   map[string][]string `json:"labelsFromPath"`
			Metrics          []struct {
				Name string `json:"name"`
				Help string `json:"help"`
				Each struct {
					Type string `json:"type"`
					Info *struct {
						LabelsFromPath map[string][]string `json:"labelsFromPath"`
					} `json:"info"`
					Gauge *struct {
						Path []string `json:"path"`
					} `json:"gauge"`
				} `json:"each"`
			} `json:"metrics"`
		} `json:"resources"`
	} `json:"spec"`
}

// TestKubeStateMetricsReadsFieldsThatExist looks up each path in the definition of a component.
func TestKubeStateMetricsReadsFieldsThatExist(t *testing.T) {
	var config stateMetrics
	check.NoError(t, yaml.UnmarshalStrict(rendered(t, "kube-state-metrics.yaml"), &config))
	text := check.Must(os.ReadFile(filepath.Join(root, "examples/shop/config/crd/shop.example.com_shops.yaml")))(t)
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	check.NoError(t, yaml.Unmarshal(text, &definition))
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	checkPath := func(path []string, wantNumber bool) {
		t.Helper()
		if path[0] == "metadata" {
			if !slices.Contains([]string{"name", "namespace", "generation"}, path[1]) || len(path) != 2 {
				t.Errorf("metadata has no field %v", path)
			}
			return
		}
		found, err := fieldAt(schema, path)
		if err != "" {
			t.Errorf("%v: %s", path, err)
			return
		}
		if isNumber := found["type"] == "integer" || found["type"] == "number"; isNumber != wantNumber {
			t.Errorf("%v is of type %v", path, found["type"])
		}
	}
	for _, resource := range config.Spec.Resources {
		if gvk := resource.GroupVersionKind; gvk.Group != shop.Group || gvk.Version != shop.Version || gvk.Kind != shop.Kind {
			t.Errorf("it is about %+v", gvk)
		}
		for _, path := range resource.LabelsFromPath {
			checkPath(path, false)
		}
		for _, metric := range resource.Metrics {
			if !regexp.MustCompile(`^[a-z_]+$`).MatchString(metric.Name) || metric.Help == "" {
				t.Errorf("metric %q: %q", metric.Name, metric.Help)
			}
			switch {
			case metric.Each.Type == "Info" && metric.Each.Info != nil:
				for _, path := range metric.Each.Info.LabelsFromPath {
					checkPath(path, false)
				}
			case metric.Each.Type == "Gauge" && metric.Each.Gauge != nil:
				checkPath(metric.Each.Gauge.Path, true)
			default:
				t.Errorf("metric %s is of type %q", metric.Name, metric.Each.Type)
			}
		}
	}
}

// fieldAt returns the schema of a field. An element such as [type=Ready] selects from a list by a field.
func fieldAt(schema map[string]any, path []string) (found map[string]any, problem string) {
	for _, element := range path {
		if selector, isSelector := strings.CutPrefix(element, "["); isSelector {
			items, isList := schema["items"].(map[string]any)
			if !isList {
				return nil, element + " selects from a field that is no list"
			}
			field, value, _ := strings.Cut(strings.TrimSuffix(selector, "]"), "=")
			if _, problem := fieldAt(items, []string{field}); problem != "" || value == "" {
				return nil, element + ": " + problem
			}
			schema = items
			continue
		}
		properties, _ := schema["properties"].(map[string]any)
		next, exists := properties[element].(map[string]any)
		if !exists {
			return nil, "there is no field " + element
		}
		schema = next
	}
	return schema, ""
}
