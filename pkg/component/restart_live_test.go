// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/wire"
)

// heavy is a chart with large definitions, a generated certificate and a workload of a later wave.
func heavy(t *testing.T, namespace string) manifests.Generator {
	t.Helper()
	description := strings.Repeat("It describes a field at length. ", 4000)
	files := fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: heavy\nversion: 1.0.0\n")}, "values.yaml": {Data: []byte("values: {}\n")},
		"templates/secret.yaml": {Data: []byte(`{{- $certificate := genSelfSignedCert "heavy" nil nil 365 }}
apiVersion: v1
kind: Secret
metadata: {name: certificate}
type: kubernetes.io/tls
data:
  tls.crt: {{ $certificate.Cert | b64enc }}
  tls.key: {{ $certificate.Key | b64enc }}
`)},
		"templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: b}\n")},
		"templates/workload.yaml": {Data: []byte(`apiVersion: v1
kind: PodTemplate
metadata: {name: workload, annotations: {` + operatorName + `/apply-order: "1"}}
template: {spec: {containers: [{name: main, image: "registry.example.com/core:1"}]}}
`)},
	}
	for _, kind := range []string{"Fish", "Bird"} {
		plural, group := strings.ToLower(kind)+"s", namespace+".example.com"
		files["templates/"+plural+".yaml"] = &fstest.MapFile{Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + "." + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: "` + description + `"}}}]
`)}
	}
	return must(helm.New(files, ".", helm.Options{}))(t)
}

// journal notes which writes of dependent objects change nothing.
type journal struct {
	mu   sync.Mutex
	vain []string
}

// versionIn returns the version of the object in a response.
func versionIn(response *http.Response) string {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if err != nil || json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.ResourceVersion
}

func (j *journal) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPut && r.Method != http.MethodPatch || strings.Contains(r.URL.Path, "/widgets/") {
			return next.RoundTrip(r)
		}
		read := r.Clone(r.Context())
		read.Method, read.Body, read.ContentLength, read.GetBody, read.URL.RawQuery = http.MethodGet, nil, 0, nil, ""
		response, err := next.RoundTrip(read)
		if err != nil {
			return nil, err
		}
		before := versionIn(response)
		response, err = next.RoundTrip(r)
		if err != nil || response.StatusCode >= 300 {
			return response, err
		}
		if version := versionIn(response); version != "" && version == before {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.vain = append(j.vain, r.URL.Path)
		}
		return response, nil
	})
}

func TestARestartInAnInstallationWritesNothingAgain(t *testing.T) {
	crashAtEachRequest(t, func(t *testing.T, at int, after bool) (int, bool) {
		k, j := &trap{at: at, after: after}, &journal{}
		var generator manifests.Generator
		b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) {
			generator = heavy(b.T, b.namespace)
			b.manager = newManagerVia(b.T, b.env, b.user, func(next http.RoundTripper) http.RoundTripper { return k.wrap(next) })
			b.reconciler = component.NewReconciler[*widget.Widget](operatorName, generator, component.ReconcilerOptions{})
		})
		b.create(widget.Spec{})
		k.arm()
		for range 20 {
			_, _ = b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key("main")})
			if k.hit() {
				break
			}
		}
		b.reconciler = component.NewReconciler[*widget.Widget](operatorName, generator, component.ReconcilerOptions{})
		b.check(b.reconciler.SetupWithManager(newManagerVia(b.T, b.env, b.user, j.wrap)))
		b.until(component.StateReady)
		if len(j.vain) > 0 {
			t.Errorf("written although nothing changes: %v", j.vain)
		}
		b.resetRequests()
		b.reconcile()
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("writes at rest: %v", writes)
		}
		return k.count, k.hit()
	})
}
