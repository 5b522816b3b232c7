// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"errors"
	"fmt"
	"path"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/outputs"
	"github.com/corbel-run/corbel/pkg/status"
)

// Output is a value of a dependent object that components publish in their status, or if it is secret, in a Secret. The annotation output
// of the object does the same.
type Output struct {
	// Name is the name of the output: at most 40 letters, digits, _ and -.
	//
	// Default: none; it is required
	Name string
	// Type is the type of the object.
	//
	// Default: none; it is required
	Type v1alpha1.TypeInfo
	// Object is the name of the object; a * in it stands for any characters. A component without such an object does not have the output.
	//
	// Default: empty, for the only object of the type
	Object string
	// Expression is a CEL expression over the object, which is the variable self, such as "self.spec.rules[0].host". It gives a string, a
	// number or a bool. A component waits for the value, unless the expression gives an optional value.
	//
	// Default: none; it is required
	Expression string
	// Secret publishes the value in the Secret with the name of the component and the suffix -outputs.
	//
	// Default: false: the status has the value, unless the annotation output says otherwise
	Secret bool
}

// checkOutputs returns the mistakes in the option Outputs.
func checkOutputs(list []Output) (errs []error) {
	known := map[string]bool{}
	for _, output := range list {
		var mistakes []error
		if !vocabulary.IsOutputName(output.Name) {
			mistakes = append(mistakes, errors.New(vocabulary.OutputNameRule))
		}
		if output.Type.Kind == "" {
			mistakes = append(mistakes, errors.New("the kind of the object is missing"))
		}
		if _, err := path.Match(output.Object, ""); err != nil {
			mistakes = append(mistakes, fmt.Errorf("the name of the object %q: %w", output.Object, err))
		}
		if output.Expression == "" {
			mistakes = append(mistakes, errors.New("the expression is missing"))
		} else if _, err := status.CompileOutput(output.Expression); err != nil {
			mistakes = append(mistakes, err)
		}
		if known[output.Name] {
			mistakes = append(mistakes, errors.New("the name is given twice"))
		}
		known[output.Name] = true
		if err := errors.Join(mistakes...); err != nil {
			errs = append(errs, fmt.Errorf("option Outputs, output %s: %w", cmp.Or(output.Name, "without a name"), err))
		}
	}
	return errs
}

// outputRules returns the option Outputs for package outputs.
func outputRules(list []Output) (rules []outputs.Rule) {
	for _, output := range list {
		rules = append(rules, outputs.Rule(output))
	}
	return rules
}
