// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/wire"
)

// store is a chart with what makes a take-over hard: random passwords and certificates, one that is looked up, checksums and dates in pod
// templates, the revision of the release, and hooks of all kinds.
func store(t testing.TB) manifests.Generator {
	t.Helper()
	const secret = `apiVersion: v1
kind: Secret
metadata: {name: core, labels: {app.kubernetes.io/managed-by: Helm}}
stringData:
  password: {{ randAlphaNum 20 | quote }}
  ca: {{ (genCAWithKey "store" 365 (genPrivateKey "ecdsa")).Cert | b64enc }}
  color: {{ .Values.values.color }}
data:
  token: {{ randAlphaNum 30 | b64enc }}
`
	const lookedUp = `{{- $found := lookup "v1" "Secret" .Release.Namespace "kept" }}
apiVersion: v1
kind: Secret
metadata: {name: kept}
data:
  password: {{ if $found }}{{ $found.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
`
	const workload = `apiVersion: v1
kind: PodTemplate
metadata: {name: web}
template:
  metadata:
    annotations:
      checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}
      checksum/kept: {{ include (print $.Template.BasePath "/kept.yaml") . | sha256sum }}
      rolled: {{ now | date "2006-01-02T15:04:05" | quote }}
      revision: {{ .Release.Revision | quote }}
      upgrade: {{ .Release.IsUpgrade | quote }}
  spec: {containers: [{name: main, image: "registry.example.com/web:1", env: [{name: ID, value: {{ uuidv4 | quote }}}]}]}
`
	hook := func(kind, name, when, policy, rest string) *fstest.MapFile {
		text := "apiVersion: " + map[string]string{"Job": "batch/v1", "ConfigMap": "v1", "ServiceAccount": "v1"}[kind] + "\nkind: " + kind + "\nmetadata:\n  name: " + name +
			"\n  annotations:\n    helm.sh/hook: " + when + "\n"
		if policy != "" {
			text += "    helm.sh/hook-delete-policy: " + policy + "\n"
		}
		return &fstest.MapFile{Data: []byte(text + rest)}
	}
	const job = "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"registry.example.com/job:1\"}]}}}\n"
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":              {Data: []byte("apiVersion: v2\nname: store\nversion: 1.0.0\n")},
		"values.yaml":             {Data: []byte("values: {color: none}\n")},
		"templates/secret.yaml":   {Data: []byte(secret)},
		"templates/kept.yaml":     {Data: []byte(lookedUp)},
		"templates/web.yaml":      {Data: []byte(workload)},
		"templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: {{ .Values.values.color }}}\n")},
		"templates/service.yaml":  {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n")},
		"templates/stays.yaml":    hook("Job", "migration", "pre-install,pre-upgrade", "", job),
		"templates/went.yaml":     hook("Job", "greeting", "post-install,post-upgrade", "hook-succeeded", job),
		"templates/first.yaml":    hook("Job", "first", "pre-install", "hook-succeeded", job),
		"templates/account.yaml":  hook("ServiceAccount", "migrator", "pre-install,pre-upgrade", "before-hook-creation,hook-succeeded", ""),
		"templates/defaults.yaml": hook("ConfigMap", "defaults", "pre-install", "", "data: {a: b}\n"),
	}, ".", helm.Options{}))(t)
}

// release is a Helm release of the chart of a bed, in its namespace.
type release struct {
	revision int
	// configMap: the record is a ConfigMap.
	configMap bool
	// flux: a HelmRelease of Flux has made it.
	flux bool
	// controller: a Helm operator has made it for this component.
	controller *widget.Widget
}

// install makes the objects and the record as Helm does, and returns the objects.
func (b *bed) install(generator manifests.Generator, r release) []client.Object {
	b.Helper()
	b.auditOptions.AdoptsReleases = true
	ctx := manifests.Context{ReconcilerName: operatorName, Revision: int64(r.revision), Upgrade: r.revision > 1}.In(b.Context())
	ctx = renders.WithTime(ctx, time.Now().Add(-90*24*time.Hour))
	spec := &widget.Spec{Values: map[string]string{"color": "red"}}
	rendered, err := manifests.Generate(ctx, generator, b.namespace, "main", spec)
	b.check(err)
	var manifest strings.Builder
	var hooks []map[string]any
	var objects []client.Object
	for _, object := range rendered {
		u := object.(*unstructured.Unstructured)
		hook := u.GetAnnotations()["helm.sh/hook"] != ""
		annotations := u.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return strings.HasPrefix(key, operatorName+"/") || strings.HasPrefix(key, "helm.corbel.run/")
		})
		u.SetAnnotations(annotations)
		if r.flux {
			u.SetLabels(merged(u.GetLabels(), map[string]string{"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": b.namespace}))
		}
		text := must(yaml.Marshal(u.Object))(b)
		if hook {
			hooks = append(hooks, map[string]any{"path": "templates/" + u.GetName() + ".yaml", "manifest": string(text)})
			if strings.Contains(u.GetAnnotations()["helm.sh/hook-delete-policy"], "hook-succeeded") {
				continue
			}
		} else {
			fmt.Fprintf(&manifest, "---\n# Source: %s\n%s", u.GetName(), text)
			u.SetAnnotations(merged(u.GetAnnotations(), map[string]string{"meta.helm.sh/release-name": "main", "meta.helm.sh/release-namespace": b.namespace}))
			u.SetLabels(merged(u.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		}
		u.SetNamespace(b.namespace)
		if r.controller != nil {
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(r.controller, widget.GroupVersion.WithKind("Widget"))})
		}
		b.check(b.client.Create(b.Context(), u, client.FieldOwner("helm")))
		objects = append(objects, u)
	}
	text := base64.StdEncoding.EncodeToString(must(json.Marshal(map[string]any{
		"name": "main", "namespace": b.namespace, "version": r.revision, "manifest": manifest.String(), "hooks": hooks,
		"info":   map[string]any{"status": "deployed", "last_deployed": time.Now().Add(-90 * 24 * time.Hour).Format(time.RFC3339Nano)},
		"chart":  map[string]any{"metadata": map[string]any{"name": "store", "version": "1.0.0"}},
		"config": map[string]any{"values": map[string]any{"color": "red"}},
	}))(b))
	meta := metav1.ObjectMeta{
		Namespace: b.namespace, Name: fmt.Sprintf("sh.helm.release.v1.main.v%d", r.revision),
		Labels: map[string]string{"owner": "helm", "name": "main", "status": "deployed", "version": strconv.Itoa(r.revision)},
	}
	if r.configMap {
		b.check(b.client.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"release": text}}))
	} else {
		b.check(b.client.Create(b.Context(), &corev1.Secret{ObjectMeta: meta, Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte(text)}}))
	}
	return objects
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// withRelease makes the component that takes over a release.
func (b *bed) withRelease(reference string) {
	b.Helper()
	w := &widget.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main", Annotations: map[string]string{operatorName + "/adopt-helm-release": reference}},
		Spec:       widget.Spec{Values: map[string]string{"color": "red"}},
	}
	b.check(b.client.Create(b.Context(), w))
}

// helmOperatorFinalizer is the finalizer of operator-sdk's Helm operator.
const helmOperatorFinalizer = "helm.sdk.operatorframework.io/uninstall-release"

// replacesHelmOperator is the option to take over the components of a Helm operator.
var replacesHelmOperator = component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptHelmOperator: true}}

// underHelmOperator makes the component, and the objects and the record of its release, as a Helm operator does.
func (b *bed) underHelmOperator(generator manifests.Generator, revision int) []client.Object {
	b.Helper()
	w := &widget.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main", Finalizers: []string{helmOperatorFinalizer}},
		Spec:       widget.Spec{Values: map[string]string{"color": "red"}},
	}
	b.check(b.client.Create(b.Context(), w))
	w.Status.Conditions = []metav1.Condition{{Type: "Deployed", Status: "True", Reason: "InstallSuccessful", LastTransitionTime: metav1.Now()}}
	b.check(b.client.Status().Update(b.Context(), w))
	return b.install(generator, release{revision: revision, controller: w})
}

// contents returns the objects as they are, without what says who owns and manages them.
func (b *bed) contents(objects []client.Object) map[string]any {
	b.Helper()
	all := map[string]any{}
	for _, object := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		b.check(b.client.Get(b.Context(), client.ObjectKeyFromObject(object), live))
		content := runtime.DeepCopyJSON(live.Object)
		content["metadata"] = map[string]any{"uid": string(live.GetUID()), "generation": live.GetGeneration()}
		delete(content, "status")
		all[live.GetKind()+" "+live.GetName()] = content
	}
	return all
}

func TestAHelmReleaseIsTakenOverWithOneWriteForEachObject(t *testing.T) {
	for _, r := range []release{
		{revision: 7},
		{revision: 1},
		{revision: 3, configMap: true},
		{revision: 4, flux: true},
	} {
		t.Run(fmt.Sprintf("revision %d", r.revision), func(t *testing.T) {
			b := newBed(t, store(t), takesReleases)
			objects := b.install(store(t), r)
			before := b.contents(objects)
			b.withRelease(fmt.Sprintf("%s/main/%d", b.namespace, r.revision))

			plan := b.plan(component.PlanRequest[*widget.Widget]{Key: b.key("main")})
			for _, change := range plan.Changes {
				if change.Class != report.ChangeAdopt {
					t.Errorf("planned: %s %s", change.Class, change.Key)
				}
				for _, field := range change.Fields {
					if !strings.HasPrefix(field.Path, "metadata.labels") && !strings.HasPrefix(field.Path, "metadata.annotations") {
						t.Errorf("planned: %s of %s, %q to %q", field.Path, change.Key, field.Old, field.New)
					}
				}
			}
			if len(plan.Changes) != len(objects) || plan.Revision != int64(r.revision) {
				t.Errorf("the plan of revision %d has %d changes of %d objects", plan.Revision, len(plan.Changes), len(objects))
			}

			b.resetRequests()
			w := b.until(v1alpha1.StateReady)
			want := []string{
				"create secrets main-revisions", "patch jobs migration", "update configmaps defaults", "update configmaps settings", "update podtemplates web",
				"update secrets core", "update secrets kept", "update services web",
			}
			if r.flux {
				want = slices.Insert(want, 1, "patch jobs migration") // an apply leaves the labels of others
			}
			if got := without(b.writes(), "widgets", "digest-key"); !slices.Equal(got, want) {
				t.Errorf("writes: %v, want %v", got, want)
			}
			if diff := cmp.Diff(before, b.contents(objects)); diff != "" {
				t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
			}
			adopted := &v1alpha1.AdoptedRelease{Namespace: b.namespace, Name: "main", Revision: int64(r.revision)}
			if diff := cmp.Diff(adopted, w.Status.AdoptedRelease); diff != "" || w.Status.Revision != int64(r.revision) {
				t.Errorf("revision %d, -want +got:\n%s", w.Status.Revision, diff)
			}

			if diff := cmp.Diff(&v1alpha1.Source{Generator: "helm", Chart: "store", Version: "1.0.0"}, w.Status.Source); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
			selected := &corev1.ConfigMapList{}
			b.check(b.client.List(t.Context(), selected, client.InNamespace(b.namespace), client.MatchingLabels{operatorName + "/owner-id": w.Status.OwnerID}))
			if !slices.ContainsFunc(selected.Items, func(c corev1.ConfigMap) bool { return c.Name == "settings" }) {
				t.Errorf("%d config maps have the label of owner id %q, but not settings", len(selected.Items), w.Status.OwnerID)
			}

			// The record is not needed any more. A restart changes nothing.
			b.check(b.client.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(b.namespace), client.MatchingLabels{"owner": "helm"}))
			b.resetRequests()
			for range 2 {
				b.restart(store(t))
				b.forward += 11 * time.Minute
				if w, _, err := b.reconcile(); !w.Status.IsReady() || err != nil {
					t.Fatalf("state %s, %v", w.Status.State, err)
				}
			}
			b.wantNoWrites("writes at rest")

			// The next revision is an upgrade: its hooks run.
			b.update(func(w *widget.Widget) { w.Spec.Values["color"] = "blue" })
			b.resetRequests()
			b.eventually("the hook of the upgrade runs", func() error {
				w, _, _ := b.reconcile()
				if writes := b.writes(); !slices.Contains(writes, "create jobs migration") {
					_, reason, message := w.Status.GetState()
					return fmt.Errorf("writes %v; %s: %s", writes, reason, message)
				}
				return nil
			})
			if got := b.get().Status.Revision; got != int64(r.revision)+1 {
				t.Errorf("revision %d after the upgrade", got)
			}
		})
	}
}

func TestAHelmOperatorIsReplaced(t *testing.T) {
	b := newBed(t, store(t), replacesHelmOperator)
	objects := b.underHelmOperator(store(t), 2)
	before := b.contents(objects)
	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	want := []string{
		"create secrets main-revisions", "patch jobs migration", "patch jobs migration", // an apply leaves the references to the component
		"update configmaps defaults", "update configmaps settings", "update podtemplates web", "update secrets core", "update secrets kept", "update services web",
	}
	if got := without(b.writes(), "widgets", "digest-key"); !slices.Equal(got, want) {
		t.Errorf("writes: %v, want %v", got, want)
	}
	if diff := cmp.Diff(before, b.contents(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	for _, object := range objects {
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if references := object.GetOwnerReferences(); len(references) > 0 {
			t.Errorf("%s has the owner references %v", object.GetName(), references)
		}
	}
	if meta.IsStatusConditionTrue(w.Status.Conditions, "Deployed") || !slices.Equal(w.Finalizers, []string{operatorName}) || w.Status.Revision != 2 {
		t.Errorf("finalizers %v, revision %d, conditions %v", w.Finalizers, w.Status.Revision, w.Status.Conditions)
	}

	// While the Helm operator runs, nothing is written.
	b.update(func(w *widget.Widget) {
		w.Finalizers = append(w.Finalizers, helmOperatorFinalizer)
		w.Spec.Values["color"] = "blue"
	})
	b.resetRequests()
	b.reconcile()
	b.wantNoWrites("writes beside the Helm operator")
	b.wantEvent("OwnerConflict", "the finalizer "+helmOperatorFinalizer+" is back: stop that operator, and then remove this finalizer")
	b.patchFinalizers(operatorName)
	if b.reconcile(); len(without(b.writes(), "widgets")) == 0 {
		t.Error("the component is still left alone, although the Helm operator is stopped")
	}

	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	records := &corev1.SecretList{}
	b.check(b.client.List(t.Context(), records, client.InNamespace(b.namespace), client.MatchingLabels{"owner": "helm"}))
	if len(records.Items) > 0 {
		t.Errorf("%d records of the release are left", len(records.Items))
	}
}

func TestAHelmOperatorThatDeletesAComponentIsLeftAlone(t *testing.T) {
	b := newBed(t, store(t), replacesHelmOperator)
	b.underHelmOperator(store(t), 2)
	b.check(b.client.Delete(t.Context(), b.get()))
	b.resetRequests()
	b.reconcile()
	b.wantNoWrites("writes during a deletion of the Helm operator")
	b.wantEvent("OwnerConflict", "its deletion began under the Helm operator")
	b.patchFinalizers()
}

func TestTheRecordsOfAReleaseThatIsNotTakenOverStay(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), replacesHelmOperator)
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.install(store(t), release{revision: 1})
	b.patchStatus(fmt.Sprintf(`[{"op":"add","path":"/status/adoptedRelease","value":{"namespace":%q,"name":"main","revision":1}}]`, b.namespace)) // forged
	b.remove()
	b.check(b.client.Get(t.Context(), b.key("sh.helm.release.v1.main.v1"), &corev1.Secret{}))
}

// TestATakeOverSurvivesACrashAtAnyRequest kills the operator before and after each request of a take-over, and replaces it.
func TestATakeOverSurvivesACrashAtAnyRequest(t *testing.T) {
	crashAtEachRequest(t, takeOver)
}

// takesReleases is the option to take over Helm releases.
var takesReleases = component.ReconcilerOptions{Users: component.UserOptions{AdoptHelmReleases: true}}

// takeOver takes a release over with an operator that is killed at a request, and returns how many requests it sent.
func takeOver(t *testing.T, at int, after bool) (requests int, crashed bool) {
	t.Helper()
	b := newBed(t, store(t), replacesHelmOperator)
	objects := b.underHelmOperator(store(t), 4)
	before := b.contents(objects)
	gate, until := b.crashing(store(t), replacesHelmOperator, at, after)
	until("the component is ready", func() bool { return b.get().Status.IsReady() })
	if diff := cmp.Diff(before, b.contents(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	if counts := b.takenOverBy(gate, ""); len(counts) != len(objects) {
		t.Errorf("writes of %d objects: %v", len(objects), counts)
	}
	return len(gate.Requests()), gate.HasCrashed()
}

// takenOverBy returns the writes of a take-over, and how often each was sent. It creates nothing, and deletes one object, if any.
func (b *bed) takenOverBy(gate *wire.Gate, dropped string) map[string]int {
	b.Helper()
	counts := map[string]int{}
	for _, write := range without(b.writes(), "widgets", "digest-key", "main-revisions") {
		// Whatever was under way at the crash may be sent again. An apply leaves owner references, so it takes two writes.
		counts[write]++
		expected := 1
		if strings.HasPrefix(write, "patch") {
			expected = 2
		}
		tooOften := counts[write] > expected+1 || counts[write] > expected && !gate.HasCrashed()
		deletes := strings.HasPrefix(write, "delete") && (dropped == "" || !strings.HasSuffix(write, " "+dropped))
		if tooOften || deletes || strings.HasPrefix(write, "create") {
			b.Errorf("it did %s, %d times", write, counts[write])
		}
	}
	return counts
}

// password returns the random password that is applied.
func (b *bed) password() string {
	b.Helper()
	secret := &corev1.Secret{}
	b.check(b.client.Get(b.Context(), b.key("core"), secret))
	return string(secret.Data["password"])
}

// passwords is a chart as many are: a Secret keeps its password by a lookup, and a workload has the checksum of
// another rendering of it.
func passwords(t *testing.T) manifests.Generator {
	t.Helper()
	const secret = `{{- $password := randAlphaNum 20 | b64enc }}
{{- with lookup "v1" "Secret" .Release.Namespace "core" }}{{ $password = .data.password }}{{ end }}
apiVersion: v1
kind: Secret
metadata: {name: core}
data: {password: {{ $password }}}
`
	const workload = `apiVersion: v1
kind: PodTemplate
metadata: {name: core}
template:
  metadata:
    annotations:
      checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}
      color: {{ .Values.values.color }}
  spec: {containers: [{name: main, image: "registry.example.com/core:1"}]}
`
	return must(helm.New(fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: passwords\nversion: 1.0.0\n")}, "values.yaml": {Data: []byte("values: {color: none}\n")},
		"templates/secret.yaml": {Data: []byte(secret)}, "templates/workload.yaml": {Data: []byte(workload)},
	}, ".", helm.Options{}))(t)
}

func TestWhatWasRandomStaysAlthoughItIsLookedUpLater(t *testing.T) {
	b := newReady(t, passwords(t), widget.Spec{Values: map[string]string{"color": "red"}}, component.ReconcilerOptions{})
	for _, restart := range []bool{false, true} {
		if restart {
			b.restart(passwords(t))
		}
		b.resetRequests()
		for range 3 {
			b.forward += 11 * time.Minute // the next full reconcile
			if w, _, err := b.reconcile(); !w.Status.IsReady() || err != nil {
				t.Fatalf("state %s, %v", w.Status.State, err)
			}
		}
		// That the values are looked up now is kept once.
		if got := without(b.writes(), "widgets", "digest-key", "main-revisions"); len(got) > 0 {
			t.Errorf("writes (restart: %t): %v", restart, got)
		}
	}
	password := b.password()
	b.setValues(map[string]string{"color": "blue"})
	if b.password() != password {
		t.Error("an upgrade has changed the password, which the chart looks up")
	}
}

// TestACrashMakesNoRandomValueAnew kills the operator at every request of an installation and of an upgrade of a chart with two objects, in
// two waves, that have the same random value. The next operator applies the value that the first one may have applied.
func TestACrashMakesNoRandomValueAnew(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {test.corbel.run/apply-order: %q}}\n" +
		"data: {random: {{ $random }}, value: {{ .Values.values.value }}}\n---\n"
	chart := must(helm.New(fstest.MapFS{
		"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: random\nversion: 1.0.0\n")},
		"templates/all.yaml": {Data: fmt.Appendf(nil, "{{- $random := randAlphaNum 10 | quote }}\n"+object+object, "a", "0", "b", "1")},
	}, ".", helm.Options{}))(t)
	next := map[string]string{"value": "new"}
	for name, upgrade := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			crashAtEachRequest(t, func(t *testing.T, at int, after bool) (requests int, crashed bool) {
				b := newBed(t, chart, component.ReconcilerOptions{})
				random := func() map[string]string {
					list, values := &corev1.ConfigMapList{}, map[string]string{}
					b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
					for _, object := range list.Items {
						if object.Data["value"] == "new" {
							values[object.Name] = object.Data["random"]
						}
					}
					return values
				}
				if upgrade {
					b.create(widget.Spec{Values: map[string]string{"value": "old"}})
					b.until(v1alpha1.StateReady)
					b.update(func(w *widget.Widget) { w.Spec.Values = next })
				} else {
					b.create(widget.Spec{Values: next})
				}
				gate, until := b.crashing(chart, component.ReconcilerOptions{}, at, after)
				var applied map[string]string // at the crash
				until("the component is ready", func() bool {
					if gate.HasCrashed() && applied == nil {
						applied = random()
					}
					w := b.get()
					return w.Status.IsReady() && w.Status.AppliedGeneration == w.Generation
				})
				values := random()
				if values["a"] == "" || values["a"] != values["b"] {
					t.Errorf("the objects have different values: %v", values)
				}
				for name, value := range applied {
					if value != values[name] {
						t.Errorf("%s had the value %s, and has %s", name, value, values[name])
					}
				}
				return len(gate.Requests()), gate.HasCrashed()
			})
		})
	}
}

// backedUp makes a component with its objects, and then deletes the component, and what is kept of it, without its objects: so are objects that
// are restored from a backup without the Secret of the revisions. It returns the objects and the uid of the component.
func (b *bed) backedUp(generator manifests.Generator) ([]client.Object, types.UID) {
	b.Helper()
	b.restartWith(generator, replacesHelmOperator)
	objects := b.underHelmOperator(generator, 1)
	w := b.until(v1alpha1.StateReady)
	b.check(b.client.DeleteAllOf(b.Context(), &corev1.Secret{}, client.InNamespace(b.namespace), client.MatchingLabels{"owner": "helm"}))
	b.check(b.client.Delete(b.Context(), b.kept()))
	b.patchFinalizers()
	b.check(b.client.Delete(b.Context(), b.get()))
	b.create(widget.Spec{Values: map[string]string{"color": "red"}})
	return objects, w.UID
}

// restored returns the contents of objects, without the variable of a pod template that is drawn anew.
func (b *bed) restored(objects []client.Object) map[string]any {
	b.Helper()
	all := b.contents(objects)
	containers, _, _ := unstructured.NestedSlice(all["PodTemplate web"].(map[string]any), "template", "spec", "containers")
	delete(containers[0].(map[string]any), "env")
	web := all["PodTemplate web"].(map[string]any)
	b.check(unstructured.SetNestedSlice(web, containers, "template", "spec", "containers"))
	delete(web["metadata"].(map[string]any), "generation")
	return all
}

func TestARestoredComponentKeepsTheSecretsOfThePreviousOne(t *testing.T) {
	b := newBed(t, store(t), replacesHelmOperator)
	objects, uid := b.backedUp(store(t))
	before := b.restored(objects)
	b.restart(store(t))
	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	if diff := cmp.Diff(before, b.restored(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	for _, write := range without(b.writes(), "widgets", "digest-key", "main-revisions") {
		if !strings.HasPrefix(write, "update") && write != "patch jobs migration" {
			t.Errorf("it did %s", write)
		}
	}
	if w.Status.RestoredFrom != uid || w.Status.Revision != 1 {
		t.Errorf("restored from %q, want %q; revision %d", w.Status.RestoredFrom, uid, w.Status.Revision)
	}

	// The record is lost once more, and the operator restarts: the component's own Secrets have the values.
	b.check(b.client.Delete(t.Context(), b.kept()))
	b.restart(store(t))
	b.reconcile()
	if diff := cmp.Diff(before, b.restored(objects)); diff != "" {
		t.Errorf("the objects are not as they were after the record was lost (-before +after):\n%s", diff)
	}
}

func TestHooksRunInARestoreIfTheOperatorSaysSo(t *testing.T) {
	b := newBed(t, store(t), replacesHelmOperator)
	b.backedUp(store(t))
	b.restartWith(store(t), component.ReconcilerOptions{Revisions: component.RevisionOptions{HooksOnRestore: true}})
	b.eventually("the hook of the installation runs", func() error {
		if b.reconcile(); !slices.Contains(b.writes(), "create jobs first") {
			return fmt.Errorf("writes %v", b.writes())
		}
		return nil
	})
}

// TestARestoreSurvivesACrashAtAnyRequest kills the operator before and after each request after a restore, and replaces it.
func TestARestoreSurvivesACrashAtAnyRequest(t *testing.T) {
	crashAtEachRequest(t, func(t *testing.T, at int, after bool) (requests int, crashed bool) {
		b := newBed(t, store(t), replacesHelmOperator)
		objects, _ := b.backedUp(store(t))
		before := b.restored(objects)
		gate, until := b.crashing(store(t), component.ReconcilerOptions{}, at, after)
		until("the component is ready", func() bool { return b.get().Status.IsReady() })
		if diff := cmp.Diff(before, b.restored(objects)); diff != "" {
			t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
		}
		for _, write := range without(b.writes(), "widgets", "digest-key", "main-revisions") {
			if strings.HasPrefix(write, "create") || strings.HasPrefix(write, "delete") {
				t.Errorf("it did %s", write)
			}
		}
		return len(gate.Requests()), gate.HasCrashed()
	})
}

// A revision that waits for its approval is rendered before it starts, and its objects show the previous component only then.
func TestARestoredComponentThatWaitsForItsApprovalRunsNoHook(t *testing.T) {
	b := newBed(t, store(t), replacesHelmOperator)
	objects, uid := b.backedUp(store(t))
	before := b.restored(objects)
	b.restartWith(store(t), component.ReconcilerOptions{Revisions: component.RevisionOptions{RequireApproval: true}})
	b.reconcile()
	pending := b.get().Status.Approval
	if pending == nil {
		t.Fatalf("nothing waits: %+v", b.get().Status.Conditions)
	}
	b.annotate(map[string]string{operatorName + "/approve": pending.Hash})
	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	if w.Status.RestoredFrom != uid {
		t.Errorf("restored from %q, want %q", w.Status.RestoredFrom, uid)
	}
	if diff := cmp.Diff(before, b.restored(objects)); diff != "" {
		t.Errorf("the objects are not as they were (-before +after):\n%s", diff)
	}
	for _, write := range without(b.writes(), "widgets", "digest-key", "main-revisions") {
		if strings.HasPrefix(write, "create") {
			t.Errorf("it did %s", write)
		}
	}
}
