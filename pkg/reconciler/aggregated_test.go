// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// newAggregated returns an API server of its own, which serves Foos of example.com and keeps them in memory, and the manifests of its
// APIService and of the Service that leads the API server to this machine. It answers a list of metadata with whole objects, as
// servers do that cannot convert them.
func newAggregated(t *testing.T, namespace string) (*wire.Recorder, []client.Object) {
	t.Helper()
	recorder := wire.NewRecorder()
	transport := check.Must(rest.TransportFor(recorder.Config()))(t)
	server := httptest.NewTLSServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "recorder.invalid"
		r.Out.Header.Set("Accept", "application/json")
	}})
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	check.NoError(t, err)
	return recorder, []client.Object{
		parse(t, `{apiVersion: v1, kind: Service, metadata: {name: foos, namespace: `+namespace+`}, spec: {type: ExternalName, externalName: `+host+`}}`),
		parse(t, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec:
  group: example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: `+namespace+`, name: foos, port: `+port+`}`),
	}
}

// The type of an aggregated API server is one of the component's own, or an additional
// managed one: its instances come after it and go before it, and those of others block.
func TestATypeOfAnAggregatedServerIsManagedLikeAnyOther(t *testing.T) {
	b := newBench(t)
	server, objects := newAggregated(t, b.namespace)
	foo := func(name string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: example.com/v1, kind: Foo, metadata: {name: `+name+`, namespace: `+b.namespace+`}}`)
	}
	objects = append(objects, foo("ours"))
	t.Cleanup(func() {
		// Otherwise every later discovery would ask a server that is gone.
		_ = b.Delete(context.Background(), objects[1].DeepCopyObject().(client.Object))
	})
	apply := func() (outcome reconciler.Outcome) {
		b.until("the API is available", func() bool {
			var err error
			if outcome, err = b.apply(objects...); err != nil && !apierrors.IsServiceUnavailable(err) {
				t.Fatal(err)
			}
			return err == nil
		})
		return outcome
	}
	setReady := func(status string) {
		object := mustOwn(t, server, foo("ours"))
		object.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": status, "reason": "Winding", "message": "it is being wound up",
		}}}
		server.Put(object)
	}
	b.until("the instance, after the API is available", func() bool { apply(); return len(server.Sent(http.MethodPost)) > 0 })
	setReady("False")
	outcome := apply()
	if len(outcome.Waiting) != 1 || outcome.Waiting[0].Key.Kind != "Foo" || !strings.Contains(outcome.Waiting[0].Message, "it is being wound up") {
		t.Errorf("an instance that is not ready: waiting for %v", outcome.Waiting)
	}
	setReady("True")
	if outcome := apply(); !outcome.Done() {
		t.Errorf("a ready instance: waiting for %v", outcome.Waiting)
	}
	pattern := reconciler.TypeInfo{Group: "example.com", Kind: "Foo"}
	check.SameNamed(t, "our own instance blocks", "", b.blockers(pattern))

	theirs := server.Put(foo("theirs"))
	blocked := "1 foreign instance: Foo " + b.namespace + "/theirs"
	if got, want := b.blockers(pattern), "APIService v1.example.com: "+blocked+"\ntype Foo.example.com: "+blocked; got != want {
		t.Errorf("got blockers %q, want %q", got, want)
	}
	outcome, err := b.delete()
	if err != nil || !slices.ContainsFunc(outcome.Waiting, func(w report.Wait) bool {
		return w.Key.Kind == "APIService" && w.Reason == report.WaitBlocked && strings.Contains(w.Message, blocked)
	}) {
		t.Errorf("with a foreign instance: %v, waiting for %v", err, outcome.Waiting)
	}
	if deleted := server.Sent(http.MethodDelete); len(deleted) != 1 || path.Base(deleted[0].Path) != "ours" {
		t.Errorf("deleted %v", deleted)
	}
	b.until("the end of the foreign instance", func() bool { return b.Delete(t.Context(), theirs) == nil })
	b.until("the deletion", func() bool {
		outcome, err := b.delete()
		return err == nil && outcome.Done()
	})
	api := objects[1].DeepCopyObject().(client.Object)
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(api), api); !apierrors.IsNotFound(err) {
		t.Errorf("the APIService: %v", err)
	}
}
