// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

// testApp is the body of a test function of an operator.
func testApp(t *testing.T) {
	templates := fstest.MapFS{"config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  size: {{ .Values.size | quote }}\n")}}
	g, err := gotemplate.New(templates, ".", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := manifeststest.Case{Generator: g, Namespace: "prod", Name: "app", Parameters: types.UnstructurableMap{"size": 3}}
	c.Golden(t, filepath.Join("testdata", "app.golden"))
	c.Deterministic(t)
}

func Example() {
	var t *testing.T // of the test function
	testApp(t)
}
