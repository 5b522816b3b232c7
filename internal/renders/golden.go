// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package renders

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/report"
)

// GoldenText renders objects as the text of a golden file. The time is the start of the year 2000. Values that the rendering
// reports as random are "(random)": it is called again to find out which they are.
func GoldenText(ctx context.Context, render func(context.Context) ([]*unstructured.Unstructured, error)) (string, error) {
	ctx, randomness := WithRandomness(WithTime(ctx, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	first, err := render(ctx)
	if err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	if !randomness.Used() {
		return Text(first)
	}
	for i, object := range first {
		first[i] = object.DeepCopy()
	}
	for range 2 { // two random numbers may be equal
		again, err := render(ctx)
		if err != nil {
			return "", fmt.Errorf("render: %w", err)
		}
		if len(again) != len(first) {
			return "", fmt.Errorf("the number of objects is random: %d and %d", len(first), len(again))
		}
		for i, object := range first {
			object.Object = masked(object.Object, again[i].Object).(map[string]any)
		}
	}
	return Text(first)
}

// Text returns objects as YAML documents.
func Text(objects []*unstructured.Unstructured) (string, error) {
	texts := make([]string, 0, len(objects))
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("%s: %w", report.Key{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}, err)
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n"), nil
}

// masked returns a value without the parts that differ in another rendering.
func masked(value, other any) any {
	switch value := value.(type) {
	case map[string]any:
		if other, ok := other.(map[string]any); ok {
			for key := range value {
				value[key] = masked(value[key], other[key])
			}
			return value
		}
	case []any:
		if other, ok := other.([]any); ok && len(other) == len(value) {
			for i := range value {
				value[i] = masked(value[i], other[i])
			}
			return value
		}
	default:
		if reflect.DeepEqual(value, other) {
			return value
		}
	}
	return "(random)"
}
