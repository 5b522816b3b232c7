// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/env"
)

const goodManifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: not-there-yet}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: not-there-yet}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: in-a-list}}
`

const badManifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: not-there-yet}
spec:
  replicaz: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 70000}]}
---
apiVersion: example.com/v1
kind: Nothing
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}
`

func fromText(t *testing.T, text string) manifests.Generator {
	t.Helper()
	g, err := manifests.FromFS(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheServerIsAskedWhetherItWouldAcceptTheObjects(t *testing.T) {
	config := env.Shared(t).Config()
	valid := func(g manifests.Generator, namespace string) *report {
		return check(t, func(t testing.TB) { manifeststest.Case{Generator: g, Namespace: namespace}.Valid(t, config) })
	}
	good := valid(fromText(t, goodManifests), "")
	good.wants(t)
	if logged := strings.Join(good.logs, "\n"); logged != "Thing a: not checked, because its type comes with the objects" {
		t.Errorf("it logs %q", logged)
	}
	bad := valid(fromText(t, badManifests), "kube-system")
	bad.wants(t, `Deployment not-there-yet/web: `, `unknown field "spec.replicaz"`, "Service web: ", "spec.ports[0].port", "Nothing a: ", `no matches for kind "Nothing"`, "ConfigMap kube-system/Not_A_Name")
	if len(bad.errors) != 4 {
		t.Errorf("%d errors: %q", len(bad.errors), bad.errors)
	}
	server, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = server.Get(t.Context(), client.ObjectKey{Name: "not-there-yet"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{}})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the objects were really created: %v", err)
	}
}
