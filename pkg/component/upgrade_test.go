// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// recordUpgrade makes the test write its testdata instead of reading it: copy this file
// into a checkout of an earlier revision, run the test there with the flag, and copy the
// folder back.
var recordUpgrade = flag.String("record-upgrade", "", "record the states that the test starts from, by this build, as those of a `revision`")

// upgradeFolder has a folder for each revision with recorded states.
const upgradeFolder = "testdata/upgrade"

// upgradeNamespace is where the operator of an upgrade keeps its digest key.
const upgradeNamespace = "upgrade-operator"

// upgrade is a component that an earlier build has brought to Ready.
type upgrade struct {
	name      string
	revision  string // of the earlier build
	generator func(t *testing.T) manifests.Generator
	spec      widget.Spec
	options   component.ReconcilerOptions
	// threshold is the size in bytes at which the inventory moves to Secrets; 0 for the default.
	threshold int
	// others are objects that exist before the component.
	others []client.Object
	// changed is the key of the component's values that the test changes after the upgrade.
	changed string
}

func upgrades() []upgrade {
	maps := func(*testing.T) manifests.Generator { return manifests.GeneratorFunc(configMaps) }
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprintf("config-%02d", i)] = "1"
	}
	other := func(name string, annotations, labels map[string]string) client.Object {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "upgrade-adopted", Name: name, Annotations: annotations, Labels: labels},
			Data:       map[string]string{"value": "theirs", "more": "theirs"},
		}
	}
	return []upgrade{
		{name: "small", generator: maps, spec: widget.Spec{Values: map[string]string{"a": "1", "b": "2"}}, changed: "a"},
		{name: "hooks", generator: hookedChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{name: "spilled", generator: maps, spec: widget.Spec{Values: many}, threshold: 3000, changed: "config-07"},
		{name: "random", generator: randomChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{
			name: "adopted", generator: maps, spec: widget.Spec{Values: map[string]string{"of-helm": "1", "unowned": "1", "ours": "1"}},
			options: component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyAlways)}, changed: "unowned",
			others: []client.Object{
				other("unowned", nil, nil),
				other("of-helm", map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "upgrade-adopted"},
					map[string]string{"app.kubernetes.io/managed-by": "Helm"}),
			},
		},
	}
}

// randomChart has a random value and one of the time. Revisions before a9ce889 did not keep them.
func randomChart(t *testing.T) manifests.Generator {
	t.Helper()
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":            {Data: []byte("apiVersion: v2\nname: random\nversion: 1.0.0\n")},
		"values.yaml":           {Data: []byte("values: {value: none}\n")},
		"templates/own.yaml":    {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
		"templates/random.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: random}\ndata: {password: '{{ randAlphaNum 20 }}', at: '{{ now | unixEpoch }}'}\n")},
	}, ".", helm.Options{}))(t)
}

// hookedChart has Jobs that run before and after an installation, and before a deletion.
func hookedChart(t *testing.T) manifests.Generator {
	t.Helper()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {helm.sh/hook: '%s', helm.sh/hook-delete-policy: '%s'}\n" +
		"spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: work, image: registry.example.com/work:1}]}}}\n---\n"
	hooks := fmt.Sprintf(job, "before", "pre-install,pre-upgrade", "before-hook-creation") +
		fmt.Sprintf(job, "after", "post-install,post-upgrade", "before-hook-creation,hook-succeeded") +
		fmt.Sprintf(job, "end", "pre-delete", "before-hook-creation")
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: hooked\nversion: 1.0.0\n")},
		"values.yaml":          {Data: []byte("values: {value: none}\n")},
		"templates/hooks.yaml": {Data: []byte(hooks)},
		"templates/own.yaml":   {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
	}, ".", helm.Options{}))(t)
}

// TestAnUpgradeOfTheOperatorWritesNoDependent takes over components that earlier builds
// brought to Ready: dependents, Secrets and status are loaded from testdata/upgrade with
// the uids and the managed fields that they had.
func TestAnUpgradeOfTheOperatorWritesNoDependent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	e := env.New(t, env.Options{Cluster: *recordUpgrade != ""})
	must(envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"testdata/crds"}}))(t)
	c := must(client.New(e.Config(), client.Options{Scheme: newScheme(t)}))(t)
	for _, u := range upgrades() {
		for _, name := range []string{upgradeNamespace, u.namespace()} {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if err := client.IgnoreAlreadyExists(c.Create(t.Context(), namespace)); err != nil {
				t.Fatal(err)
			}
		}
		if *recordUpgrade != "" {
			u.revision = *recordUpgrade
			u.record(t, e, c)
			continue
		}
		for _, revision := range must(os.ReadDir(upgradeFolder))(t) {
			u.revision = revision.Name()
			if _, err := os.Stat(u.file()); errors.Is(err, os.ErrNotExist) {
				continue // the revision had no such thing
			}
			t.Run(u.name+" of "+u.revision, func(t *testing.T) {
				u.load(t, e, c)
				u.takeOver(t, e, c)
			})
		}
	}
}

func (u upgrade) namespace() string { return "upgrade-" + u.name }

// operatorName differs from case to case, so that each has a digest key of its own.
func (u upgrade) operatorName() string { return u.name + ".corbel.run" }

func (u upgrade) file() string { return filepath.Join(upgradeFolder, u.revision, u.name+".json") }

// start returns a reconciler with a manager that does not run, like that of a bed.
func (u upgrade) start(t *testing.T, e *env.Environment, wrap func(http.RoundTripper) http.RoundTripper) *component.Reconciler[*widget.Widget] {
	t.Helper()
	options := u.options
	options.OperatorNamespace, options.ClusterUID = new(upgradeNamespace), new("7d0ec2a4-1f0e-4b8e-9c39-4d3d1f6a2f10")
	reconciler := component.NewReconciler[*widget.Widget](u.operatorName(), u.generator(t), options)
	if u.threshold > 0 {
		component.SetInventoryThreshold(reconciler, u.threshold)
	}
	if err := reconciler.SetupWithManager(newManagerVia(t, e, "operator-"+u.name, wrap)); err != nil {
		t.Fatal(err)
	}
	return reconciler
}

func (u upgrade) key() client.ObjectKey {
	return client.ObjectKey{Namespace: u.namespace(), Name: "main"}
}

// until reconciles until the component has the state, or is gone if the state is empty.
func (u upgrade) until(t *testing.T, c client.Client, reconciler *component.Reconciler[*widget.Widget], state component.State) *widget.Widget {
	t.Helper()
	w := &widget.Widget{}
	for deadline := time.Now().Add(patience); ; {
		result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: u.key()})
		if getErr := c.Get(t.Context(), u.key(), w); getErr != nil {
			if client.IgnoreNotFound(getErr) == nil && state == "" {
				return nil
			}
			t.Fatal(getErr)
		}
		conditionstest.Check(t, conditions.For(w, &w.Status.Conditions))
		got, reason, message := w.Status.GetState()
		if got == state {
			return w
		}
		if time.Now().After(deadline) {
			t.Fatalf("the state is %s, %s: %s; the last reconcile returned %+v and %v", got, reason, message, result, err)
		}
		u.completeJobs(t, c)
		time.Sleep(min(result.RequeueAfter, 100*time.Millisecond))
	}
}

// completeJobs stands in for the Job controller, which runs only when states are recorded.
func (u upgrade) completeJobs(t *testing.T, c client.Client) {
	t.Helper()
	if *recordUpgrade != "" {
		return
	}
	for _, job := range u.list(t, c, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}) {
		if _, done, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "completionTime"); done {
			continue
		}
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(kind string) any {
			return map[string]any{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
		}
		job.Object["status"] = map[string]any{
			"startTime": now, "completionTime": now, "succeeded": int64(1), "uncountedTerminatedPods": map[string]any{},
			"conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")},
		}
		if err := c.Status().Update(t.Context(), &job); err != nil {
			t.Fatal(err)
		}
	}
}

func (u upgrade) list(t *testing.T, c client.Client, kind schema.GroupVersionKind, options ...client.ListOption) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(t.Context(), list, append(options, client.InNamespace(u.namespace()))...); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// upgradeKinds are the kinds of the objects that are recorded, with their keys in etcd.
var upgradeKinds = []struct {
	schema.GroupVersionKind
	etcd string
}{
	{schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"}, "test.corbel.run/widgets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"},
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "jobs"},
}

// state returns the component, its Secrets, the digest key and the dependents.
func (u upgrade) state(t *testing.T, c client.Client) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, kind := range upgradeKinds {
		objects = append(objects, u.list(t, c, kind.GroupVersionKind)...)
	}
	objects = slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool { return o.GetName() == "kube-root-ca.crt" })
	key := &unstructured.Unstructured{}
	key.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: upgradeNamespace, Name: u.operatorName() + "-digest-key"}, key); err != nil {
		t.Fatal(err)
	}
	return append(objects, *key)
}

// record brings the component to Ready by this build and writes its state.
func (u upgrade) record(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	for _, other := range u.others {
		if err := c.Create(t.Context(), other, client.FieldOwner("others")); err != nil {
			t.Fatal(err)
		}
	}
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace(), Name: "main"}, Spec: u.spec}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	reconciler := u.start(t, e, nil)
	u.until(t, c, reconciler, component.StateReady)
	u.until(t, c, reconciler, component.StateReady)
	objects := u.state(t, c)
	for i := range objects {
		objects[i].SetResourceVersion("")
	}
	content := must(json.MarshalIndent(objects, "", " "))(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(u.file()), 0o755), os.WriteFile(u.file(), append(content, '\n'), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// load puts the recorded state into etcd, and waits until the API server has it.
func (u upgrade) load(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	var objects []unstructured.Unstructured
	if err := json.Unmarshal(must(os.ReadFile(u.file()))(t), &objects); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		i := slices.IndexFunc(upgradeKinds, func(k struct {
			schema.GroupVersionKind
			etcd string
		}) bool {
			return k.GroupVersionKind == o.GroupVersionKind()
		})
		if err := e.Store(t.Context(), strings.Join([]string{upgradeKinds[i].etcd, o.GetNamespace(), o.GetName()}, "/"), o.Object); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(&o), live)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		live.SetResourceVersion("")
		if diff := cmp.Diff(o.Object, live.Object); diff != "" {
			t.Errorf("%s is not what was stored (-want +got):\n%s", o.GetName(), diff)
		}
	}
}

// writes records the requests that change something, but for events and reviews.
type writes struct {
	sync.Mutex
	requests []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/selfsubject") {
			w.Lock()
			w.requests = append(w.requests, r.Method+" "+r.URL.Path)
			w.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// take returns the writes since the last call.
func (w *writes) take() []string {
	w.Lock()
	defer w.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}

func (u upgrade) takeOver(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	before := &widget.Widget{}
	if err := c.Get(t.Context(), u.key(), before); err != nil {
		t.Fatal(err)
	}
	sent := &writes{}
	reconciler := u.start(t, e, sent.wrap)
	// A build may add to its own record. It writes nothing else, and that once.
	w := u.until(t, c, reconciler, component.StateReady)
	for _, request := range sent.take() {
		ofHistory := request == "POST /api/v1/namespaces/"+u.namespace()+"/secrets" || strings.Contains(request, "/secrets/main-revisions-")
		if !strings.HasSuffix(request, "/widgets/main/status") && !strings.Contains(request, "/secrets/main-inventory-") && !ofHistory {
			t.Errorf("the new build sends %s", request)
		}
	}
	for range 2 {
		w = u.until(t, c, reconciler, component.StateReady)
	}
	if requests := sent.take(); len(requests) > 0 {
		t.Errorf("the new build sends at rest %q", requests)
	}
	if w.Status.Revision != before.Status.Revision {
		t.Errorf("the revision is %d, was %d", w.Status.Revision, before.Status.Revision)
	}

	// What was taken over can be changed and deleted.
	w.Spec.Values[u.changed] = "changed"
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for w.Status.ObservedGeneration != w.Generation {
		u.until(t, c, reconciler, component.StateReady).DeepCopyInto(w)
	}
	changed := 0
	for _, o := range u.list(t, c, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		if value, _, _ := unstructured.NestedString(o.Object, "data", "value"); value == "changed" {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d ConfigMaps have the changed value, want 1; the writes are %q", changed, sent.take())
	}
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	u.until(t, c, reconciler, "")
	for _, o := range u.state(t, c) {
		// The garbage collector removes those of the history; none runs here.
		if o.GetNamespace() == u.namespace() && !strings.Contains(o.GetName(), "-revisions-") {
			t.Errorf("%s %s is left", o.GetKind(), o.GetName())
		}
	}
}
