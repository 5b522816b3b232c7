// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import "testing"

func TestProcessedManifestsAreNotRefused(t *testing.T) {
	for name, object := range map[string]string{
		"a hook that has an order":            `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-install, shop.example.com/apply-order: "-1"}}}`,
		"a hook of a deletion":                `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-delete, shop.example.com/run-on: pre-delete}}}`,
		"a definition of the folder crds":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: crd-install}}}`,
		"another annotation of Helm":          `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}`,
		"a text about encrypted values":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "values look like ENC[AES256_GCM,data:...]"}}`,
		"a kind that is decrypted in cluster": `{apiVersion: apps/v1, kind: SopsSecret, metadata: {name: a}, sops: {mac: x}}`,
		"a field of that name":                `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, sops: {enabled: true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			items, err := read(parse(t, object), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range items {
				i.identify()
				i.checkUnprocessed("shop.example.com")
				if err := invalid(t.Context(), items); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
