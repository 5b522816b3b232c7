// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/wire"
)

// writes are the names of the ConfigMaps that were created and deleted, in order.
type writes struct {
	mu               sync.Mutex
	created, deleted []string
}

func (w *writes) watch(namespace string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			below := "/namespaces/" + namespace + "/configmaps"
			if err != nil || response.StatusCode >= 300 || !strings.Contains(r.URL.Path, below) {
				return response, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			switch r.Method {
			case http.MethodDelete:
				w.deleted = append(w.deleted, path.Base(r.URL.Path))
			case http.MethodPost:
				w.created = append(w.created, nameIn(r))
			}
			return response, err
		})
	}
}

// nameIn returns the name of the object in the body of a request.
func nameIn(r *http.Request) string {
	body, err := r.GetBody()
	if err != nil {
		return err.Error()
	}
	var object struct{ Metadata struct{ Name string } }
	if err := json.NewDecoder(body).Decode(&object); err != nil {
		return err.Error()
	}
	return object.Metadata.Name
}

// sequenced is a chart with objects that are applied one after the other.
func sequenced(t *testing.T) *helm.Generator {
	t.Helper()
	object := func(name, annotations string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n---\n")}
	}
	both := object("second", `helm.sh/resource-group: b, helm.sh/depends-on/resource-groups: '["a"]'`)
	both.Data = append(both.Data, object("first", "helm.sh/resource-group: a").Data...)
	g, err := helm.New(fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: sequenced\nversion: 1.0.0\nannotations: {helm.sh/depends-on/subcharts: db}\n" +
			"dependencies: [{name: db, version: 1.0.0, depends-on: [cache]}, {name: cache, version: 1.0.0}]\n")},
		"charts/db/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: db\nversion: 1.0.0\n")},
		"charts/db/templates/a.yaml": both, "charts/cache/Chart.yaml": {Data: []byte("apiVersion: v2\nname: cache\nversion: 1.0.0\n")},
		"charts/cache/templates/a.yaml": object("zero", ""), "templates/a.yaml": object("last", ""),
	}, ".", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheObjectsOfAChartComeInItsOrderAndGoInReverse(t *testing.T) {
	f := newFixture(t)
	seen := &writes{}
	f.startWith(t, sequenced(t), seen.watch(f.namespace))
	bundle := f.bundle(t, nil)
	f.ready(t, bundle)
	if err := f.Delete(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if diff := cmp.Diff([]string{"zero", "first", "second", "last"}, seen.created); diff != "" {
		t.Errorf("created: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"last", "second", "first", "zero"}, seen.deleted); diff != "" {
		t.Errorf("deleted: -want +got:\n%s", diff)
	}
}
