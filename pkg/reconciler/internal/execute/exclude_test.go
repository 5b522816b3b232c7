// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatExcludesAFieldOfTheManifestIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		live, manifest string
		field, message string
		managers       map[string]string // fields by manager
		want           string            // operations, and managers
	}{
		"a default of a strategy": {
			live: `{spec: {replicas: 5, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden: may not be specified when strategy `type` is 'Recreate'",
			want: `[{"op":"remove","path":"/spec/strategy/rollingUpdate"},{"op":"add","path":"/spec/strategy/type","value":"Recreate"}]`,
		},
		"one that the manifest sets to null": {
			live: `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate, rollingUpdate: null}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden",
			want: `[{"op":"remove","path":"/spec/strategy/rollingUpdate"},{"op":"add","path":"/spec/strategy/type","value":"Recreate"}]`,
		},
		"a field that the message names, behind a sidecar": {
			live:     `{spec: {containers: [{name: side, image: x}, {name: c, image: i, env: [{name: P, value: x}]}]}}`,
			manifest: `{spec: {containers: [{name: c, image: i, env: [{name: P, valueFrom: {a: b}}]}]}}`,
			field:    "spec.containers[1].env[0].valueFrom", message: "Invalid value: \"\": may not be specified when `value` is not empty",
			want: `[{"op":"remove","path":"/spec/containers/1/env/0/value"},{"op":"add","path":"/spec/containers/1/env/0/name","value":"P"},` +
				`{"op":"add","path":"/spec/containers/1/env/0/valueFrom","value":{"a":"b"}}]`,
		},
		"another source of a volume": {
			live: `{spec: {volumes: [{name: v, emptyDir: {}}]}}`, manifest: `{spec: {volumes: [{name: v, configMap: {name: c}}]}}`,
			field: "spec.volumes[0].configMap", message: "Forbidden: may not specify more than 1 volume type",
			want: `[{"op":"remove","path":"/spec/volumes/0/emptyDir"},{"op":"add","path":"/spec/volumes/0/configMap","value":{"name":"c"}},` +
				`{"op":"add","path":"/spec/volumes/0/name","value":"v"}]`,
		},
		"a field of another manager": {
			live: `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden", managers: map[string]string{"terraform": `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{},"f:x":{}}},"f:z":{"f:a":{}}}}`},
			want: "spec.strategy.rollingUpdate is set by the field manager terraform",
		},
		"a field of our own": {
			live: `{spec: {minAvailable: 1}}`, manifest: `{spec: {maxUnavailable: 1}}`, field: "spec", message: "Invalid value: minAvailable and maxUnavailable cannot be both set",
			managers: map[string]string{"corbel": `{"f:spec":{"f:minAvailable":{}}}`},
			want:     `[{"op":"remove","path":"/spec/minAvailable"},{"op":"add","path":"/spec/maxUnavailable","value":1}]`,
		},
		"a mistake of the manifest": {
			live: `{spec: {containers: [{name: c, resources: {}, securityContext: {}, image: i}]}}`, manifest: `{spec: {containers: [{name: c, image: ""}]}}`,
			field: "spec.containers[0].image", message: "Required value", want: ``,
		},
		"a path that is nowhere": {live: `{spec: {a: 1}}`, manifest: `{spec: {b: 1}}`, field: "spec.c[7].d", message: "x", want: ``},
		"no path":                {live: `{spec: {a: 1}}`, manifest: `{spec: {b: 1}}`, field: "<nil>", message: "x", want: ``},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: object(t, tc.live)}
			var entries []metav1.ManagedFieldsEntry
			for manager, fields := range tc.managers {
				entries = append(entries, entry(manager, metav1.ManagedFieldsOperationUpdate, "", fields))
			}
			live.SetManagedFields(entries)
			x := exclusions{live: live, owner: "corbel"}
			x.find(live.Object, object(t, tc.manifest), nil, segments(tc.field), tc.message)
			got := strings.Join(x.owned, ", ")
			if len(x.operations) > 0 {
				text, err := json.Marshal(x.operations)
				if err != nil {
					t.Fatal(err)
				}
				got += string(text)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
