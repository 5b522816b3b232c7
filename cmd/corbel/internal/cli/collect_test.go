// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/test/check"
)

// canaries makes confidential texts.
type canaries struct {
	all     []string
	secrets map[string][]byte // those that a Secret has
}

var placeholder = regexp.MustCompile(`@(secret|base64|json|log|url|free|begin|long)@`)

// put replaces placeholders by canaries: values of a Secret in several forms, and texts that no Secret has.
func (c *canaries) put(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(form string) string {
		name := fmt.Sprintf("canary%02d", len(c.all))
		c.all = append(c.all, name)
		if form == "@free@" {
			return name
		}
		value := name
		switch form {
		case "@secret@":
		case "@begin@", "@long@":
			value += strings.Repeat("y", 60)
		default:
			value += "&\"/x"
		}
		c.secrets[name] = []byte(value)
		switch form {
		case "@base64@":
			value = base64.StdEncoding.EncodeToString([]byte(value))
			c.all = append(c.all, value)
		case "@json@":
			quoted, _ := json.Marshal(value)
			value = strings.Trim(string(quoted), `"`)
		case "@log@":
			value = strings.Trim(strconv.Quote(value), `"`)
		case "@url@":
			value = url.QueryEscape(value)
		case "@begin@":
			value = value[:len(value)/2]
		case "@long@":
			value = strings.Repeat("x", 180) + value
		}
		return value
	})
}

// collected are the objects of a component with canaries.
const collected = `
apiVersion: shop.example.com/v1alpha1
kind: Shop
metadata:
  {namespace: fleet, name: corner, uid: corner, annotations: {note: "see @secret@", kubectl.kubernetes.io/last-applied-configuration: "@free@"}}
spec: {values: {password: "@free@", secretAccessKey: "@free@", url: "postgres://shop:@free@@db/shop", list: ["@secret@"]}}
status:
  {reconciler: shop.example.com, ownerID: x, state: Error, revision: 1, rollback: {from: 2, to: 1, digest: d, message: "failed with @secret@"},
   history: [{revision: 1, result: Failed, appliedAt: "2026-01-01T23:00:00Z", changedBy: "@secret@"}],
   conditions: [{type: Ready, status: "False", reason: Error, message: "refused @secret@, Bearer abcdefgh1@free@", lastTransitionTime: "2026-01-01T23:00:00Z"}],
   inventory: {format: 3, operator: {key: k, namespace: system, lease: system/shop.example.com},
     objects: {"apps/v1 Deployment fleet/web": '{"uid":"1"}', "v1 ConfigMap fleet/settings": '{"uid":"2"}', "v1 Secret fleet/own": '{"uid":"3"}'}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: fleet, name: web, uid: web, annotations: {checksum: "@base64@", key: "-----BEGIN EC KEY-----\n@free@\n-----END EC KEY-----"}}
spec:
  template:
    metadata: {annotations: {config: '{"user":"a","password":"@free@"}'}}
    spec:
      containers:
      - {name: web, image: "registry.example.com/shop:1.1", args: ["--password=@free@", "--token", "@free@", "--dsn=@url@"],
         env: [{name: PLAIN, value: "@secret@"}, {name: SHOP_KEY, value: "@free@"}, {name: REF, valueFrom: {secretKeyRef: {name: own, key: password}}}]}
status: {conditions: [{type: Available, status: "False", message: "no @secret@"}]}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {namespace: fleet, name: settings, labels: {label: "@secret@"}, managedFields: [
    {manager: shop.example.com, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:text": {}}}},
    {manager: kubectl-edit, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:long": {}}}}]}
data: {long: "@long@", text: "password is @secret@ and @json@", "@secret@": "a key", db-password: "@free@", config.yaml: "a: 1\napi_key: '@free@'\nb: 2"}
binaryData: {file: "@base64@"}
---
apiVersion: v1
kind: Secret
metadata: {namespace: fleet, name: own, annotations: {note: "@free@"}}
data: {a: "@base64@"}
stringData: {b: "@free@"}
---
apiVersion: v1
kind: Pod
metadata: {namespace: fleet, name: web-1, uid: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]}
spec: {containers: [{name: web, env: [{name: PLAIN, value: "@secret@"}], command: [sh, -c, "echo @secret@"]}]}
status: {message: "@secret@", containerStatuses: [{name: web, lastState: {terminated: {exitCode: 1, message: "login as @secret@ failed"}}}]}
---
apiVersion: v1
kind: Event
metadata: {namespace: fleet, name: one}
involvedObject: {kind: Shop, namespace: fleet, name: corner, uid: corner}
reason: WriteRefused
message: "Invalid value: @secret@, and @begin@…"
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: system, name: shop.example.com, annotations: {note: "@secret@"}}
spec: {holderIdentity: operator-1_8f3}
---
apiVersion: v1
kind: Pod
metadata: {namespace: system, name: operator-1}
spec: {containers: [{name: manager, env: [{name: AWS_SECRET, value: "@free@"}], ports: [{name: metrics, containerPort: 8443}]}]}
`

// unpack returns the files of an archive.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	packed := check.Must(os.Open(name))(t)
	defer packed.Close()
	files, archive := map[string]string{}, tar.NewReader(check.Must(gzip.NewReader(packed))(t))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check.NoError(t, err)
		files[strings.TrimPrefix(header.Name, "corbel-collect/")] = string(check.Must(io.ReadAll(archive))(t))
	}
}

func TestNothingConfidentialIsCollected(t *testing.T) {
	c := &canaries{secrets: map[string][]byte{}}
	var objects []client.Object
	for _, text := range strings.Split(c.put(collected), "---\n") {
		object := &unstructured.Unstructured{}
		check.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		objects = append(objects, object)
	}
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.36.0"}`,
		"/api/v1/namespaces/system/pods/operator-1/log":                strings.Repeat(c.put("a long log with @secret@\n"), 40_000) + c.put("{\"msg\":\"@json@ @log@\",\"password\":\"a \\\"@free@\"}\nproxy https://user:@free@@proxy\n"),
		"/api/v1/namespaces/system/pods/operator-1:8443/proxy/metrics": c.put("requests{path=\"/@secret@\"} 1\n"),
	}
	plan := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "corbel-preview-1", Labels: preview.Owner{Reconciler: "shop.example.com", UID: "corner"}.Labels()}}
	check.NoError(t, preview.SetAnswer(plan, preview.Answer{Request: "r", Plan: []byte(c.put(`{"kind":"Shop","name":"corner","namespace":"fleet","changes":[{"key":{"kind":"ConfigMap","name":"settings"},"class":"Update","fields":[{"path":"data.a","old":"@begin@...","new":"@secret@"}]}]}`))}))
	objects = append(objects, plan, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "corner-database"}, Data: c.secrets}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "account"}, Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"namespace": []byte("fleet")},
	})
	if len(c.all) < 30 {
		t.Fatalf("there are %d canaries only", len(c.all))
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := answers[r.URL.Path]; ok && r.URL.Query().Get("previous") == "" {
			_, _ = io.WriteString(w, text)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()

	writes := func(verb string) error { t.Errorf("the command writes: %s", verb); return nil }
	allowed := true
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return writes("create")
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return writes("update")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return writes("patch")
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return writes("delete")
		},
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, isSecrets := list.(*corev1.SecretList); isSecrets && !allowed {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
			}
			return inner.List(ctx, list, options...)
		},
	})
	collect := func() map[string]string {
		file := filepath.Join(t.TempDir(), "case.tar.gz")
		got := offline(t, server, served(shopResource), func(f *frame) { f.connection.config = &rest.Config{Host: api.URL} }, "collect", "shop/corner", "-f", file)
		if got.code != 0 || got.err != "" || !strings.Contains(got.out, "case.tar.gz has 1 component") {
			t.Fatalf("%+v", got)
		}
		if left := check.Must(os.ReadDir(filepath.Dir(file)))(t); len(left) != 1 {
			t.Errorf("beside the archive there is %v", left)
		}
		return unpack(t, file)
	}

	files := collect()
	for name, text := range files {
		for _, canary := range c.all {
			if strings.Contains(name+text, canary) {
				t.Errorf("%s has %s", name, canary)
			}
		}
		if len(text) > maxCollected {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	for name, want := range map[string]string{
		"001-Shop-corner/component.yaml": "message: refused ***, Bearer ***", "001-Shop-corner/inventory.yaml": "apps/v1 Deployment fleet/web",
		"001-Shop-corner/tree.yaml": "name: web-1", "001-Shop-corner/dependents/002-Deployment-web.yaml": "image: registry.example.com/shop:1.1",
		"001-Shop-corner/dependents/003-Secret-own.yaml": "a: '***'", "001-Shop-corner/pods/002-web-1.yaml": "exitCode: 1", "001-Shop-corner/events.yaml": "WriteRefused",
		"001-Shop-corner/why.txt": "Shop fleet/corner is not Ready", "001-Shop-corner/plan-1.txt": "settings", "operator-001/lease.yaml": "operator-1_8f3", "operator-001/pod.yaml": "name: AWS_SECRET",
		"operator-001/manager.log": "a long log with ***\n{\"msg\":\"*** ***\",\"password\":***}\nproxy https://***@proxy", "operator-001/metrics.txt": `requests{path="/***"} 1`, "versions.txt": "v1.36.0", "check.yaml": "",
		"LEFT-OUT.txt": "operator-001/manager-previous.log: ",
	} {
		if text, ok := files[name]; !ok || !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%.2000s", name, want, text)
		}
	}

	allowed = false
	files = collect()
	for _, want := range []string{"values of Secrets in namespace fleet may be repeated in other files", "values of Secrets in namespace system"} {
		if !strings.Contains(files["LEFT-OUT.txt"], want) {
			t.Errorf("LEFT-OUT.txt lacks %q:\n%s", want, files["LEFT-OUT.txt"])
		}
	}
}

func TestAValueIsReplacedInEachForm(t *testing.T) {
	const value = "the first line\nthe-second-of-three-lines\n\u200ba \"third\" line"
	r := newRedactor([][]byte{[]byte(value)})
	for _, form := range []string{value, sentence.OneLine(value), sentence.Printable(value), sentence.Printable(sentence.OneLine(value)), strings.Trim(strconv.Quote(value), `"`)} {
		check.SameNamed(t, form, "see ***, please", r.text("see "+form+", please"))
		for length := shortest; length < len(form); length++ {
			check.SameNamed(t, "a part of it", "see ***…", r.text("see "+form[:length]+"…"))
			check.SameNamed(t, "a part of it", `"***..." and more`, r.text(`"`+form[:length]+`..." and more`))
		}
	}
}
