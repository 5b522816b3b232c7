// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

const (
	outputConfig = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, data: {value: swordfish}}"
	outputSecret = "{apiVersion: v1, kind: Secret, metadata: {name: web, namespace: shop}, data: {value: c3dvcmRmaXNo}}"
)

func TestOutputsOfAnObject(t *testing.T) {
	for name, test := range map[string]struct {
		live   string
		output policy.Output
		want   Output
		// message is that of an object that is not ready; empty if the object is ready.
		message string
	}{
		"a value":                     {outputConfig, policy.Output{Expression: "self.data.value"}, Output{Value: "swordfish", Found: true, OfManifest: true}, ""},
		"a plain value":               {outputConfig, policy.Output{Expression: "self.metadata.name"}, Output{Value: "web", Found: true}, ""},
		"a value of a Secret":         {outputSecret, policy.Output{Expression: "self.data.value"}, Output{Value: "swordfish", Found: true, OfSecret: true, OfManifest: true}, ""},
		"an optional value":           {outputConfig, policy.Output{Expression: "self.?status.?host"}, Output{}, ""},
		"no value yet":                {outputConfig, policy.Output{Expression: "self.status.host"}, Output{}, "the output host has no value: self.status.host: no such key: status"},
		"an error with a value":       {outputConfig, policy.Output{Expression: "int(self.data.value)"}, Output{OfManifest: true}, "the output host has no value: its expression fails, with an error that may quote values and is not shown"},
		"an error of a Secret":        {outputSecret, policy.Output{Expression: "{'a': 1}[self.status.a]"}, Output{OfSecret: true}, "the output host has no value: its expression fails, with an error that may quote values and is not shown"},
		"a secret output, not yet":    {outputConfig, policy.Output{Expression: "self.status.host", Secret: true}, Output{}, "the output host has no value: self.status.host: no such key: status"},
		"an error of a secret output": {outputConfig, policy.Output{Expression: "int(self.status.host)", Secret: true}, Output{}, "the output host has no value: its expression fails, with an error that may quote values and is not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			test.output.Name = "host"
			found := plan.Status{Readiness: plan.Ready}
			(&Observer{}).addOutputs(&found, objectOf(t, test.live), []policy.Output{test.output})
			if got := OutputsOf(found)[test.output.Expression]; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if (found.Readiness == plan.Ready) != (test.message == "") || found.Message != test.message || strings.Contains(found.Message, "swordfish") {
				t.Errorf("the status is %v, %q, want %q", found.Readiness, found.Message, test.message)
			}
			if !hasOutputs(found, []policy.Output{test.output}) || hasOutputs(found, []policy.Output{test.output, {Expression: "self.metadata.uid"}}) {
				t.Error("the outputs that were evaluated are not those that the object has")
			}
		})
	}
}

// TestAnOutputHoldsNothingBackThatHasFailed keeps the message of a failure.
func TestAnOutputHoldsNothingBackThatHasFailed(t *testing.T) {
	found := plan.Status{Readiness: plan.Failed, Message: "it has failed"}
	(&Observer{}).addOutputs(&found, objectOf(t, outputConfig), []policy.Output{{Name: "host", Expression: "self.status.host"}})
	if found.Readiness != plan.Failed || found.Message != "it has failed" {
		t.Errorf("the status is %+v", found)
	}
}
