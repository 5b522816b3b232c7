// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestWhatTheServerWouldRefuseIsFoundBeforeAnythingIsWritten(t *testing.T) {
	const cm = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `
	long := strings.Repeat("x", 64)
	half := strings.Repeat("x", maxData/2)
	encoded := base64.StdEncoding.EncodeToString([]byte(half))
	tests := []struct{ name, object, want string }{
		{"label value too long", cm + `labels: {app: ` + long + `}}}`, "ConfigMap shop/a: metadata.labels: the value of app: "},
		{"label value with a blank", cm + `labels: {app: "a b"}}}`, "ConfigMap shop/a: metadata.labels: the value of app: "},
		{"label name that is none", cm + `labels: {"a b": c}}}`, `ConfigMap shop/a: metadata.labels: "a b": `},
		{"label prefix that is none", cm + `labels: {"A_b/c": c}}}`, `ConfigMap shop/a: metadata.labels: "A_b/c": `},
		{"annotation name that is none", cm + `annotations: {"a b": c}}}`, `ConfigMap shop/a: metadata.annotations: "a b": `},
		{"annotations too large", cm + `annotations: {a: ` + strings.Repeat("x", 150<<10) + `, b: ` + strings.Repeat("x", 150<<10) + `}}}`,
			"ConfigMap shop/a: metadata.annotations have 307202 bytes; the server takes 262144 at most"},
		{"owner that is somebody else", cm + `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b, uid: u-1}]}}`,
			"ConfigMap shop/a: metadata.ownerReferences: ConfigMap b is not the component"},
		{"owner without uid", cm + `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b}]}}`,
			"ConfigMap shop/a: metadata.ownerReferences: ConfigMap b is not the component"},
		{"too much text", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: ` + half + `, b: ` + half + `, c: x}}`,
			"ConfigMap shop/a: has 1048577 bytes of data; the server takes 1048576 at most"},
		{"too much text and binary data", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: ` + half + `x}, binaryData: {b: ` + encoded + `}}`,
			"ConfigMap shop/a: has 1048577 bytes of data"},
		{"too large a secret", `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: ` + encoded + `}, stringData: {b: ` + half + `x}}`,
			"Secret shop/a: has 1048577 bytes of data"},
		{"too large a body", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {a: [` + strings.Repeat("x", maxBody) + `]}}`,
			"Deployment shop/a: has at least 31"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { expectMistake(t, input(parse(t, tt.object)...), tt.want) })
	}
}

func TestWhatTheServerTakesIsNoMistake(t *testing.T) {
	half := strings.Repeat("x", maxData/2)
	encoded := base64.StdEncoding.EncodeToString([]byte(half))
	in := input(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.example.com/name: "", x: z}, annotations: {Example.com/Note: x}}, data: {a: `+half+`}, binaryData: {b: `+encoded+`}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: `+encoded+`}, stringData: {b: `+half+`}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: shop, uid: `+string(input().Owner.Ref.UID)+`}]}}`)...)
	if _, err := Build(t.Context(), in); err != nil {
		t.Error(err)
	}
}
