// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
)

// maxFaults limits how many faults of the values are reported for one chart.
const maxFaults = 20

// checkSchemas checks the values of a chart, and the values for its sub-charts, against the schemas
// that the charts bring. It replaces Helm's own check, which loads the references of a schema from
// the network and from files.
func checkSchemas(c *chart.Chart, values map[string]any) error {
	var errs []error
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values); err != nil {
			errs = append(errs, fmt.Errorf("values of chart %s: %w", c.ChartFullPath(), err))
		}
	}
	for _, dependency := range c.Dependencies() {
		value := values[dependency.Name()]
		if value == nil {
			continue
		}
		inner, ok := value.(map[string]any)
		if !ok {
			errs = append(errs, fmt.Errorf("values of chart %s: want a map, got %T", dependency.ChartFullPath(), value))
			continue
		}
		errs = append(errs, checkSchemas(dependency, inner))
	}
	return errors.Join(errs...)
}

func checkSchema(data []byte, values map[string]any) error {
	compiled, err := compile(data)
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	err = compiled.Validate(values)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return faultsOf(invalid)
	}
	return err
}

// schemas are the schemas that were compiled last. They are not changed by their use.
var schemas = cache.New[*jsonschema.Schema](64, 8<<20)

func compile(data []byte) (*jsonschema.Schema, error) {
	key := cache.KeyOf(map[string][]byte{"": data})
	if known, ok := schemas.Get(key); ok {
		return known, nil
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	const name = "file:///values.schema.json"
	if err := compiler.AddResource(name, schema); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	schemas.Put(key, compiled, int64(len(data)))
	return compiled, nil
}

// noLoader refuses to load anything. A reference to a urn is not known to Helm either, and allows
// everything.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, errors.New("a schema cannot refer to other files or to the network; put it into $defs")
}

// faultsOf lists the mistakes in the values, without the values, which may be secret.
func faultsOf(invalid *jsonschema.ValidationError) error {
	var errs []error
	printer := message.NewPrinter(language.English)
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		text := e.ErrorKind.LocalizedString(printer)
		switch k := e.ErrorKind.(type) {
		case *kind.Pattern:
			text = fmt.Sprintf("it does not match the pattern %q", k.Want)
		case *kind.Format:
			text = fmt.Sprintf("it is no %s", k.Want)
		}
		errs = append(errs, fmt.Errorf("at '/%s': %s", strings.Join(e.InstanceLocation, "/"), text))
	}
	walk(invalid)
	if more := len(errs) - maxFaults; more > 0 {
		errs = append(errs[:maxFaults], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
