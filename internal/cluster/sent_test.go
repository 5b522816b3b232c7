// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// recorded returns a target that sends its requests to the recorder.
func recorded(t *testing.T, recorder *wire.Recorder) cluster.Target {
	t.Helper()
	target := check.Must(cluster.New(recorder.Config(), cluster.Options{}))(t)
	t.Cleanup(target.Close)
	return target
}

func TestADeletionSaysWhatItIsAbout(t *testing.T) {
	for name, tc := range map[string]struct {
		resourceVersion string
		want            map[string]any
	}{
		"with a resourceVersion":    {"7", map[string]any{"uid": "u", "resourceVersion": "7"}},
		"without a resourceVersion": {"", map[string]any{"uid": "u"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: u}}`))
			gone, live, err := recorded(t, recorder).Objects().Delete(t.Context(), configMaps, "shop", "settings", "u", tc.resourceVersion, metav1.DeletePropagationOrphan)
			if !gone || live != nil || err != nil {
				t.Errorf("got %v, %v, %v", gone, live, err)
			}
			sent := recorder.Sent()
			if len(sent) != 1 || sent[0].Method != http.MethodDelete {
				t.Fatalf("sent %v", sent)
			}
			check.EqualNamed(t, "preconditions", tc.want, sent[0].Body["preconditions"])
			check.SameNamed(t, "the propagation policy", string(metav1.DeletePropagationOrphan), sent[0].Field("propagationPolicy"))
		})
	}
	recorder := wire.NewRecorder()
	if _, _, err := recorded(t, recorder).Objects().Delete(t.Context(), configMaps, "shop", "settings", "", "7", ""); err == nil || len(recorder.Sent()) > 0 {
		t.Errorf("without a uid: %v, sent %v", err, recorder.Sent())
	}
}

func TestOnlyAProofOfTheEndOfAnObjectMeansGone(t *testing.T) {
	foos := cluster.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}, Kind: "Foo", Namespaced: true}
	pods := cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}
	object := func(apiVersion, kind, metadata string) map[string]any {
		return parse(t, `{apiVersion: `+apiVersion+`, kind: `+kind+`, metadata: {name: settings, namespace: shop, uid: u`+metadata+`}}`).Object
	}
	const leaving = `, deletionTimestamp: "2026-01-01T00:00:00Z"`
	success := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	for name, tc := range map[string]struct {
		resource      cluster.Resource
		code          int
		body          any
		gone, lives   bool
		isAnError     bool
		isAProofOf404 bool
	}{
		"a Status of success":                {resource: configMaps, code: 200, body: success, gone: true},
		"a Status of failure":                {resource: configMaps, code: 200, body: wire.Failure(500, metav1.StatusReasonInternalError, nil)},
		"the object, being deleted":          {resource: configMaps, code: 200, body: object("v1", "ConfigMap", leaving), lives: true},
		"the object of a built-in type":      {resource: configMaps, code: 200, body: object("v1", "ConfigMap", ""), gone: true},
		"the object of another type":         {resource: foos, code: 200, body: object("example.com/v1", "Foo", "")},
		"a pod that has nothing to wait for": {resource: pods, code: 200, body: object("v1", "Pod", leaving+", deletionGracePeriodSeconds: 0"), gone: true},
		"a pod that waits for a finalizer":   {resource: pods, code: 200, body: object("v1", "Pod", leaving+", deletionGracePeriodSeconds: 0, finalizers: [example.com/f]"), lives: true},
		"another object":                     {resource: configMaps, code: 200, body: object("v1", "ConfigMap", ", labels: {}")["metadata"], isAnError: true},
		"Forbidden":                          {resource: configMaps, code: 403, body: wire.Failure(403, metav1.StatusReasonForbidden, &metav1.StatusDetails{Name: "settings", Kind: "configmaps"}), isAnError: true},
		"NotFound":                           {resource: configMaps, code: 404, body: wire.Failure(404, metav1.StatusReasonNotFound, &metav1.StatusDetails{Name: "settings", Kind: "configmaps"}), isAnError: true, isAProofOf404: true},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(wire.Sent) (int, any) { return tc.code, tc.body }
			gone, live, err := recorded(t, recorder).Objects().Delete(t.Context(), tc.resource, "shop", "settings", "u", "7", "")
			if gone != tc.gone || (live != nil) != tc.lives || (err != nil) != tc.isAnError {
				t.Errorf("gone: %v, live: %v, error: %v", gone, live, err)
			}
			if cluster.IsNotFound(err, tc.resource, "settings") != tc.isAProofOf404 {
				t.Errorf("treated as a proof that it does not exist: %v", err)
			}
		})
	}
}

func TestATypeIsGoneOnlyIfNothingBringsIt(t *testing.T) {
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bars.example.com}, spec: {names: {kind: Bar}}}`
	service := func(name, labels string) string {
		return `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: ` + name + `, labels: {` + labels + `}}}`
	}
	for name, tc := range map[string]struct {
		object string
		kind   schema.GroupKind
		gone   bool
	}{
		"nothing brings it":                        {"", schema.GroupKind{Group: "example.com", Kind: "Bar"}, true},
		"it is served":                             {"", schema.GroupKind{Group: "example.com", Kind: "Foo"}, false},
		"a definition that is not served":          {crd, schema.GroupKind{Group: "example.com", Kind: "Bar"}, false},
		"a definition of another kind":             {crd, schema.GroupKind{Group: "example.com", Kind: "Baz"}, true},
		"an aggregated server is responsible":      {service("v1.example.com", ""), schema.GroupKind{Group: "example.com", Kind: "Bar"}, false},
		"the server itself serves the group":       {service("v1.example.com", "kube-aggregator.kubernetes.io/automanaged: onstart"), schema.GroupKind{Group: "example.com", Kind: "Bar"}, true},
		"an aggregated server of a longer group":   {service("v1.sub.example.com", ""), schema.GroupKind{Group: "example.com", Kind: "Bar"}, true},
		"an aggregated server that is not listed":  {service("v1.other.io", ""), schema.GroupKind{Group: "other.io", Kind: "Bar"}, false},
		"an aggregated server of an unlisted kind": {service("v9.example.com", ""), schema.GroupKind{Group: "example.com", Kind: "Bar"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			if tc.object != "" {
				recorder.Put(parse(t, tc.object))
			}
			gone, err := recorded(t, recorder).Types().Gone(t.Context(), tc.kind)
			if gone != tc.gone || err != nil {
				t.Errorf("got %v, %v", gone, err)
			}
		})
	}
	for _, resource := range []string{"customresourcedefinitions", "apiservices"} {
		recorder := wire.NewRecorder()
		recorder.Answer = func(sent wire.Sent) (int, any) {
			if sent.Path[len(sent.Path)-len(resource):] == resource {
				return http.StatusForbidden, wire.Failure(http.StatusForbidden, metav1.StatusReasonForbidden, nil)
			}
			return 0, nil
		}
		if gone, err := recorded(t, recorder).Types().Gone(t.Context(), schema.GroupKind{Group: "example.com", Kind: "Bar"}); gone || err == nil {
			t.Errorf("without the right to list %s: got %v, %v", resource, gone, err)
		}
	}
}

func TestAWriteSendsThePreconditionsOfTheObject(t *testing.T) {
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: u, resourceVersion: "7"}}`
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		recorder := wire.NewRecorder(parse(t, text))
		objects := recorded(t, recorder).Objects()
		write := objects.Update
		if method == http.MethodPatch {
			write = objects.Apply
		}
		check.Must(write(t.Context(), configMaps, parse(t, text), "test"))(t)
		sent := recorder.Sent()[0]
		if sent.Method != method || sent.Field("metadata", "uid") != "u" || sent.Field("metadata", "resourceVersion") != "7" || sent.Query.Get("fieldManager") != "test" {
			t.Errorf("sent %v %v %v", sent, sent.Body, sent.Query)
		}
	}
}

func TestEveryWriteOfADryRunIsOne(t *testing.T) {
	held := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: u}}`)
	fresh := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: shop}}`)
	recorder := wire.NewRecorder(held)
	var answered, read int
	var refusal error
	objects := recorded(t, recorder).Objects().DryRun(cluster.DryRun{
		Known: func(_ cluster.Resource, _, name string) *unstructured.Unstructured {
			if name == "known" {
				return fresh
			}
			return nil
		},
		Read:        func(cluster.Resource, *unstructured.Unstructured) { read++ },
		BeforeWrite: func() error { return refusal },
		Answered:    func(*unstructured.Unstructured) { answered++ },
	})
	write := func() []error {
		_, create := objects.Create(t.Context(), configMaps, fresh.DeepCopy(), "me")
		_, update := objects.Update(t.Context(), configMaps, held.DeepCopy(), "me")
		_, apply := objects.Apply(t.Context(), configMaps, held.DeepCopy(), "me")
		_, patch := objects.Patch(t.Context(), configMaps, "shop", "settings", types.MergePatchType, []byte("{}"), "me")
		_, _, deletion := objects.Delete(t.Context(), configMaps, "shop", "settings", "u", "", metav1.DeletePropagationBackground)
		return []error{create, update, apply, patch, deletion}
	}
	check.NoError(t, errors.Join(write()...))
	sent := recorder.Writes()
	for _, s := range sent {
		options, _ := s.Body["dryRun"].([]any)
		if s.Query.Get("dryRun") != "All" && !slices.Equal(options, []any{"All"}) {
			t.Errorf("%s is no dry run: %v %v", s, s.Query, s.Body)
		}
	}
	if len(sent) != 5 || answered != 4 {
		t.Errorf("sent %v, and %d answers", sent, answered)
	}
	refusal = errors.New("no")
	for i, err := range write() {
		if !errors.Is(err, refusal) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if live, err := objects.Get(t.Context(), configMaps, "shop", "known"); err != nil || live != fresh || read != 0 {
		t.Errorf("got %v, %v, %d reads", live, err, read)
	}
	if _, err := objects.Get(t.Context(), configMaps, "shop", "new"); err != nil || read != 1 || len(recorder.Writes()) != 5 {
		t.Errorf("got %v, %d reads, sent %v", err, read, recorder.Writes())
	}
}
