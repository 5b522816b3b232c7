// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestDeclaresConditions(t *testing.T) {
	const with = `schema: {openAPIV3Schema: {properties: {status: {properties: {conditions: {type: array}}}}}}`
	tests := []struct {
		name, crd string
		want      bool
	}{
		{"declared in the version", `{spec: {versions: [{name: v1, ` + with + `}]}}`, true},
		{"declared in another version only", `{spec: {versions: [{name: v2, ` + with + `}, {name: v1}]}}`, false},
		{"a status without conditions", `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {status: {properties: {phase: {}}}}}}}]}}`, false},
		{"no status", `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {properties: {}}}}]}}`, false},
		{"no versions", `{spec: {}}`, false},
		{"versions of an odd shape", `{spec: {versions: [a, {name: 1}]}}`, false},
		{"no specification", `{metadata: {}}`, false},
	}
	for _, tt := range tests {
		crd := object(t, `apiextensions.k8s.io/v1 CustomResourceDefinition `+tt.crd)
		check.SameNamed(t, tt.name, tt.want, DeclaresConditions(crd.Object, "v1"))
	}
	if DeclaresConditions(nil, "v1") {
		t.Error("nothing declares conditions")
	}
}
