// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Output is what an expression for an output gives for an object.
type Output struct {
	Value string `json:"value,omitempty"`
	// Found is false if the object does not have the value.
	Found bool `json:"found,omitempty"`
	// OfSecret: the object is a Secret.
	OfSecret bool `json:"ofSecret,omitempty"`
	// OfManifest: the expression uses fields that are made of the manifest, which may have values of a Secret.
	OfManifest bool `json:"ofManifest,omitempty"`
}

// OutputsOf returns the outputs of an object, by their expressions.
func OutputsOf(status plan.Status) (outputs map[string]Output) {
	if status.Outputs != "" {
		_ = json.Unmarshal([]byte(status.Outputs), &outputs) // addOutputs has made it
	}
	return outputs
}

// addOutputs adds the outputs of an object to its status. The object is not ready as long as an output has no value.
func (o *Observer) addOutputs(found *plan.Status, live *unstructured.Unstructured, outputs []policy.Output) {
	if len(outputs) == 0 {
		return
	}
	ofSecret, values := confidential.IsSecret(live.GroupVersionKind().GroupKind()), make(map[string]Output, len(outputs))
	for _, output := range outputs {
		program, err := o.options.Compiler.CompileOutput(output.Expression)
		if err != nil {
			continue // another client has changed the annotation, and it is repaired
		}
		value := Output{OfSecret: ofSecret, OfManifest: !program.IsPlain()}
		value.Value, value.Found, err = program.Evaluate(live, ofSecret || output.Secret)
		values[output.Expression] = value
		if err == nil || found.Readiness != plan.Ready && found.Readiness != plan.ReadinessUnknown {
			continue
		}
		found.Readiness, found.Message = plan.NotReady, "the output "+output.Name+" has no value: "+Sentence(err.Error())
	}
	encoded, _ := json.Marshal(values) // strings and bools
	found.Outputs = string(encoded)
}
