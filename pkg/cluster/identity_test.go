// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
)

const asked = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop","uid":"one","resourceVersion":"7"}}`

// requests are all ways to ask for an object.
func requests(t *testing.T) map[string]func(*cluster.Objects) error {
	object := parse(t, asked)
	first := func(_ *unstructured.Unstructured, err error) error { return err }
	return map[string]func(*cluster.Objects) error{
		"get":    func(o *cluster.Objects) error { return first(o.Get(t.Context(), configMaps, "shop", "settings")) },
		"create": func(o *cluster.Objects) error { return first(o.Create(t.Context(), configMaps, object, "test")) },
		"update": func(o *cluster.Objects) error { return first(o.Update(t.Context(), configMaps, object, "test")) },
		"apply":  func(o *cluster.Objects) error { return first(o.Apply(t.Context(), configMaps, object, "test")) },
		"patch": func(o *cluster.Objects) error {
			return first(o.Patch(t.Context(), configMaps, "shop", "settings", types.MergePatchType, []byte("{}"), "test"))
		},
		"delete": func(o *cluster.Objects) error {
			gone, live, err := o.Delete(t.Context(), configMaps, "shop", "settings", "one", "7", "Background")
			if err != nil && (gone || live != nil) {
				t.Errorf("a deletion with an error says gone: %v, live: %v", gone, live)
			}
			return err
		},
	}
}

func TestAnAnswerAboutAnotherObjectIsAnError(t *testing.T) {
	replaced := func(old, new string) string { return strings.Replace(asked, old, new, 1) }
	for name, tc := range map[string]struct {
		body string
		// only are the requests to which the answer is wrong; all if it is empty.
		only string
	}{
		"another kind":      {body: replaced("ConfigMap", "Secret")},
		"another group":     {body: replaced(`"v1"`, `"example.com/v1"`)},
		"another version":   {body: replaced(`"v1"`, `"v2"`)},
		"another namespace": {body: replaced("shop", "bank")},
		"no namespace":      {body: replaced(`"namespace":"shop",`, "")},
		"another name":      {body: replaced("settings", "other")},
		"another uid":       {body: replaced("one", "two"), only: "update apply delete"},
		"nothing":           {body: "{}"},
		"a list":            {body: `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + asked + `]}`},
		"success about another name": {
			body: `{"apiVersion":"v1","kind":"Status","status":"Success","details":{"name":"other","uid":"one"}}`,
		},
		"success about another uid": {
			body: `{"apiVersion":"v1","kind":"Status","status":"Success","details":{"name":"settings","uid":"two"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, cluster.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, "application/json", 200, tc.body)
			})
			for verb, send := range requests(t) {
				err := send(target.Objects())
				wrong, protocol := errors.AsType[*cluster.ProtocolError](err)
				if want := tc.only == "" || strings.Contains(tc.only, verb); protocol != want {
					t.Errorf("%s: got %v, want a protocol error: %v", verb, err, want)
				}
				if protocol && !strings.Contains(wrong.Error(), `ConfigMap "settings" of v1 in namespace "shop"`) {
					t.Errorf("%s: %q does not say what was asked for", verb, wrong)
				}
			}
		})
	}
}
