// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values/testdata/bitnami"
	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values/testdata/helmdocs"
	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values/testdata/schema"
	"github.com/corbel-run/corbel/test/check"
)

// again decodes a document into the types of a chart, which are those of testdata, and encodes it again.
func again[T any](t *testing.T, document any) any {
	t.Helper()
	text, err := json.Marshal(document)
	check.NoError(t, err)
	var values T
	check.NoError(t, json.Unmarshal(text, &values))
	text, err = json.Marshal(values)
	check.NoError(t, err)
	return decoded(t, string(text))
}

// What is decoded into the types and encoded again is the same: the values of the charts, values
// that are zero or empty, and nothing.
func TestRoundTrip(t *testing.T) {
	documents := map[string][]any{
		"bitnami": {
			decoded(t, `{"global": {}, "commonLabels": {}, "image": {"tag": "", "pullSecrets": []}, "extraFlags": [], "metrics": {"enabled": false, "extraArgs": []}}`),
			decoded(t, `{"primary": {"count": 0, "livenessProbe": {"enabled": false, "httpGet": {"port": "http"}}, "resources": {}, "tolerations": [], "pdb": {"minAvailable": "50%"}, "service": {"nodePorts": {"cache": 30000}}}}`),
			decoded(t, `{"auth": {"password": {"name": "x", "key": "y"}, "existingSecret": {"name": "z"}, "enabled": false}}`),
			decoded(t, `{"primary": {"podSecurityContext": {"runAsNonRoot": false}, "revisionHistoryLimit": "", "persistence": {"accessModes": [], "selector": {}}}}`),
		},
		"helmdocs": {
			decoded(t, `{"replicaCount": 0, "settings": {"a": null, "b": [1, "x"]}, "adminPort": 0, "ratio": 0.25, "ingress": {"hosts": [], "tls": []}, "mixture": [1.5, {}, null], "matrix": [[], [0]]}`),
			decoded(t, `{"ports": [], "env": [], "ingress": {"hosts": [{"paths": []}, {}]}, "replica_count": 0, "Replica-Count": 1, "REPLICACOUNT": 2, "9to5": false}`),
			decoded(t, `{"ratio": 1, "image": {}, "podAnnotations": {"": ""}}`),
		},
		"schema": {
			decoded(t, `{"threshold": 0, "backends": {"x": {}, "y": {"weight": 0}}, "features": [], "custom": false, "remote": "", "tree": {"left": {"left": {"left": {}}}}}`),
			decoded(t, `{"backends": {}, "custom": {}, "tolerations": [{}], "license": "", "port": "http"}`),
		},
	}
	types := map[string]func(*testing.T, any) any{
		"bitnami": again[bitnami.CacheValues], "helmdocs": again[helmdocs.ShopValues], "schema": again[schema.StoreValues],
	}
	for folder := range documents {
		text := check.Must(os.ReadFile(filepath.Join("testdata", folder, "values.yaml")))(t)
		own := check.Must(parseValues(text))(t)
		delete(own.value, "a,b")
		delete(own.value, "auth") // it has texts in place of references
		if primary, ok := own.value["primary"].(map[string]any); ok {
			// The empty object stands for a number that is not set.
			delete(primary["pdb"].(map[string]any), "minAvailable")
		}
		// A null in values.yaml is no value.
		for _, document := range append(documents[folder], withoutNull(own.value), map[string]any{}) {
			want := again[any](t, document)
			if diff := cmp.Diff(want, types[folder](t, want)); diff != "" {
				t.Errorf("the values of %s differ after a round trip (-want +got):\n%s", folder, diff)
			}
		}
	}
}

// The chart gets what is in Secrets, or their names; a Secret that is not loaded is empty.
func TestReferencesToSecrets(t *testing.T) {
	var given bitnami.CacheValues
	check.NoError(t, json.Unmarshal([]byte(`{"auth": {"password": {"name": "x"}, "existingSecret": {"name": "z"}, "enabled": true}}`), &given))
	parameters := map[string]any{"auth": map[string]any{"password": map[string]any{"name": "x"}, "existingSecret": map[string]any{"name": "z"}, "enabled": true, "user": "u"}}
	given.SetSecrets(parameters)
	check.Equal(t, map[string]any{"auth": map[string]any{"password": "", "existingSecret": "z", "enabled": true, "user": "u"}}, parameters)
	for _, values := range []bitnami.CacheValues{{}, {Auth: &bitnami.CacheValuesAuth{}}} {
		values.SetSecrets(map[string]any{})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	value := check.Must(decodeJSON([]byte(text)))(t)
	return value
}

func withoutNull(value any) any {
	if object, ok := value.(map[string]any); ok {
		maps.DeleteFunc(object, func(_ string, inner any) bool { return withoutNull(inner) == nil })
	}
	return value
}
