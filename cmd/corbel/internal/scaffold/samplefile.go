// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values"
)

// exampleSecret is the name of a Secret in the comments of a sample.
const exampleSecret = "my-secret"

// sampleOf returns the manifest of a component with the values of the chart with which it renders. The fields of the
// spec are comments, with the defaults of the chart.
func sampleOf(o Options, l learned) ([]byte, error) {
	spec, metadata := map[string]any{}, map[string]any{"name": "sample"}
	if o.Form == FormChart {
		if l.sample == nil {
			l.sample = map[string]any{}
		}
		spec["values"] = l.sample
		if o.Former != nil {
			spec = l.sample
			if labels := o.Former.sampleLabels(); len(labels) > 0 {
				metadata["labels"] = labels
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": o.Group + "/" + o.Version, "kind": o.Kind, "metadata": metadata, "spec": spec,
	})
	if err != nil {
		return nil, err
	}
	if l.unrendered != "" {
		text = append([]byte("# Fill in the spec; the chart cannot be rendered without: "+l.unrendered+"\n"), text...)
	}
	if len(o.Fields) > 0 && l.typed != nil {
		fields, err := defaultsOf(l.typed)
		if err != nil {
			return nil, err
		}
		text = append(text, "  # The fields of the spec, with the defaults of the chart"...)
		if len(o.Secrets) > 0 {
			text = append(text, "; "+exampleSecret+" is an example"...)
		}
		text = append(text, ":\n"...)
		for line := range strings.Lines(fields) {
			text = append(text, "  # "+line...)
		}
	}
	return text, nil
}

// defaultsOf writes the defaults of the fields of an object as YAML, in the order of the tree.
func defaultsOf(object *values.Field) (string, error) {
	const maxLines = 12
	var out strings.Builder
	for _, field := range object.Fields {
		value := map[string]any{field.Key: defaultOf(field)}
		text, err := yaml.Marshal(value)
		if err != nil {
			return "", err
		}
		if field.Type != values.Object {
			if strings.Count(string(text), "\n") > maxLines {
				text = fmt.Appendf(nil, "%s # see chart/values.yaml\n", strings.SplitN(string(text), "\n", 2)[0])
			}
			out.Write(text)
			continue
		}
		below, err := defaultsOf(field)
		if err != nil {
			return "", err
		}
		out.WriteString(strings.TrimSuffix(string(text), " {}\n") + "\n")
		for line := range strings.Lines(below) {
			out.WriteString("  " + line)
		}
	}
	return out.String(), nil
}

// defaultOf returns the default of a field that is no object, or else an empty value of its type.
func defaultOf(field *values.Field) any {
	switch field.Type {
	case values.SecretKey:
		return map[string]any{"name": exampleSecret, "key": field.Key}
	case values.SecretName:
		return map[string]any{"name": exampleSecret}
	}
	if field.Default != nil {
		return field.Default
	}
	switch field.Type {
	case values.Bool:
		return false
	case values.Integer, values.Number:
		return 0
	case values.List:
		return []any{}
	case values.Object, values.Map, values.Core, values.Any:
		return map[string]any{}
	default:
		return ""
	}
}
