// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
)

const oneVersion = `[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`

func isNotServed(err error) bool {
	_, ok := errors.AsType[*cluster.NotServedError](err)
	return ok
}

func TestATypeIsNotServedOnlyIfTheServerProvesIt(t *testing.T) {
	target := real(t)
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "nowhere.example.com", Version: "v1", Kind: "Foo"},
		{Group: "apps", Version: "v9", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "Foo"},
		{Version: "v1", Kind: "Foo"},
		{Version: "v2", Kind: "ConfigMap"},
	} {
		if _, err := target.Types().Resolve(t.Context(), gvk); !isNotServed(err) {
			t.Errorf("%s: got %v", gvk, err)
		}
	}
}

func TestATypeThatComesAndGoesIsFollowed(t *testing.T) {
	target := real(t)
	ctx, types, group := t.Context(), target.Types(), unique("g")+".example.com"
	foo := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Foo"}
	if _, err := types.Resolve(ctx, foo); !isNotServed(err) {
		t.Fatalf("got %v", err)
	}
	if gone, err := types.Gone(ctx, foo.GroupKind()); !gone || err != nil {
		t.Fatalf("a type that never was: got %v, %v", gone, err)
	}
	crd, definitions := create(t, target, definition(group, oneVersion))
	eventually(t, "the new type is served", func() bool { _, err := types.Resolve(ctx, foo); return err == nil })
	if gone, err := types.Gone(ctx, foo.GroupKind()); gone || err != nil {
		t.Fatalf("a served type: got %v, %v", gone, err)
	}
	foos := resolve(t, target, foo)

	if _, _, err := target.Objects().Delete(ctx, definitions, "", crd.GetName(), crd.GetUID(), "", metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the path is not served", func() bool {
		_, err := target.Objects().Get(ctx, foos, "default", "x")
		_, unserved := errors.AsType[*cluster.UnservedPathError](err)
		if unserved && cluster.IsNotFound(err, foos, "x") {
			t.Fatal("a path that is not served passes for a proof of absence")
		}
		return unserved
	})
	eventually(t, "the type is not served", func() bool { _, err := types.Resolve(ctx, foo); return isNotServed(err) })
	eventually(t, "the type is gone", func() bool { gone, err := types.Gone(ctx, foo.GroupKind()); return gone && err == nil })
}

func TestAnObjectIsFoundInAnyVersion(t *testing.T) {
	target := real(t)
	ctx, types, group := t.Context(), target.Types(), unique("g")+".example.com"
	schemaText := `schema: {openAPIV3Schema: {type: object}}`
	create(t, target, definition(group, `[{name: v1, served: true, storage: true, `+schemaText+`}, {name: v1beta1, served: false, storage: false, `+schemaText+`}]`))
	gk := schema.GroupKind{Group: group, Kind: "Foo"}
	eventually(t, "the type is served", func() bool { _, err := types.Resolve(ctx, gk.WithVersion("v1")); return err == nil })

	if _, err := types.Resolve(ctx, gk.WithVersion("v1beta1")); !isNotServed(err) {
		t.Errorf("a version that is not served: got %v", err)
	}
	for _, preferred := range []string{"v1beta1", "v1", ""} {
		if resource, err := types.ResolveAny(ctx, gk, preferred); err != nil || resource.GVR.Version != "v1" {
			t.Errorf("preferring %q: got %+v, %v", preferred, resource, err)
		}
	}
	if _, err := types.ResolveAny(ctx, schema.GroupKind{Group: group, Kind: "Bar"}, "v1"); !isNotServed(err) {
		t.Errorf("another kind: got %v", err)
	}
}

func TestCustomTypesAreDescribedByTheirDefinition(t *testing.T) {
	target := real(t)
	group := unique("g") + ".example.com"
	create(t, target, definition(group, `[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
		spec: {type: object, properties: {size: {type: integer}, tls: {type: object}, items: {type: array, items: {type: object, properties: {
			config: {type: object, additionalProperties: {type: string}}}}}}},
		status: {type: object, properties: {conditions: {type: array, items: {type: object}}, size: {type: integer}}}}}},
		subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}}]`))
	foo := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Foo"}
	eventually(t, "the type is served", func() bool { _, err := target.Types().Resolve(t.Context(), foo); return err == nil })
	custom, err := target.Types().Custom(t.Context(), foo)
	if err != nil || !custom.DeclaresConditions || !slices.Equal(custom.ReplicasPath, []string{"spec", "size"}) ||
		!maps.Equal(custom.Maps, map[string]bool{"spec.items.config": true}) {
		t.Errorf("got %+v, %v", custom, err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		if declares, err := target.Types().DeclaresConditions(t.Context(), gvk); declares || err != nil {
			t.Errorf("%s: got %v, %v", gvk, declares, err)
		}
	}
}

func TestTypesOfACanceledRequestAreNotUnreadable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"slow.example.com","versions":[{"groupVersion":"slow.example.com/v1","version":"v1"}]}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`,
	}
	target := serve(t, cluster.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		if !known { // the types of the slow group
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	readable, unreadable, err := target.Types().Namespaced(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, %v", readable, unreadable, err)
	}
}

// serveType creates a definition of kind Foo in the group and waits until it is served.
func serveType(t *testing.T, target cluster.Target, group string) {
	t.Helper()
	create(t, target, definition(group, "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]"))
	eventually(t, "the type is served", func() bool {
		found, _, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: group, Kind: "Foo"})
		return err == nil && len(found) == 1
	})
}

// breakGroup creates an APIService with a server that does not exist, and waits until it is listed.
func breakGroup(t *testing.T, target cluster.Target, group string) {
	t.Helper()
	create(t, target, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}`)
	eventually(t, "the group is listed", func() bool {
		versions, err := target.Types().Versions(t.Context(), group)
		return err == nil && len(versions) == 1
	})
}

func TestAPatternCoversTheTypesThatAreServedNow(t *testing.T) {
	target := real(t)
	suffix := unique("s") + ".example.com"
	serveType(t, target, "a."+suffix)
	serveType(t, target, "b."+suffix)
	breakGroup(t, target, "broken."+suffix)
	breakGroup(t, target, unique("elsewhere")+".example.org")

	for name, tc := range map[string]struct{ pattern, matching, unknown string }{
		"a type":                     {"a." + suffix + "/Foo", "foos.a." + suffix, ""},
		"an unknown kind":            {"a." + suffix + "/Bar", "", ""},
		"all kinds of a group":       {"a." + suffix + "/*", "foos.a." + suffix, ""},
		"an unknown group":           {"c." + suffix + "/*", "", ""},
		"all groups below a name":    {"*." + suffix + "/*", "foos.a." + suffix + " foos.b." + suffix, "broken." + suffix + "/v1"},
		"a kind in all groups below": {"*." + suffix + "/Foo", "foos.a." + suffix + " foos.b." + suffix, "broken." + suffix + "/v1"},
		"the broken group":           {"broken." + suffix + "/Foo", "", "broken." + suffix + "/v1"},
		"another suffix":             {"*.not." + suffix + "/*", "", ""},
		"the core group":             {"/ConfigMap", "configmaps", ""},
	} {
		t.Run(name, func(t *testing.T) {
			group, kind, _ := strings.Cut(tc.pattern, "/")
			found, unknown, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: group, Kind: kind})
			check.NoError(t, err)
			var names []string
			for _, resource := range found {
				names = append(names, resource.GVR.GroupResource().String())
			}
			check.Same(t, tc.matching, strings.Join(names, " "))
			check.SameNamed(t, "unknown", tc.unknown, strings.Trim(fmt.Sprint(unknown), "[]"))
		})
	}
	everything, _, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: "*", Kind: "*"})
	if err != nil || len(everything) < 50 {
		t.Errorf("everything: got %d types, %v", len(everything), err)
	}
}

func TestServedIsAskedForKindByKindWhereItHasTo(t *testing.T) {
	answers := map[string]string{
		"/version":               `{"gitVersion":"v1.25.0"}`,
		"/api":                   `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":                `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod"},{"name":"pods/log","kind":"Pod"}]}`,
		"/apis":                  `{"kind":"APIGroupList","groups":[{"name":"a.example.com","versions":[{"version":"v1"}]},{"name":"broken.example.com","versions":[{"version":"v1"}]}]}`,
		"/apis/a.example.com/v1": `{"kind":"APIResourceList","groupVersion":"a.example.com/v1","resources":[{"name":"foos","kind":"Foo"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[strings.TrimSuffix(r.URL.Path, "/")]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	target := check.Must(cluster.New(&rest.Config{Host: server.URL}, cluster.Options{}))(t)
	got, err := target.Types().Served(t.Context())
	want := cluster.Served{Version: "v1.25.0", APIVersions: []string{"a.example.com/v1", "a.example.com/v1/Foo", "broken.example.com/v1", "v1", "v1/Pod"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
