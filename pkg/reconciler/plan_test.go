// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// traffic counts the requests of an engine, and keeps those that were no dry runs, and those
// of them that the server accepted. A PATCH that creates an object counts as a POST.
type traffic struct {
	lock             sync.Mutex
	all              []string
	stored, accepted []string
}

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		body := ""
		if r.GetBody != nil {
			if reader, err := r.GetBody(); err == nil {
				content, _ := io.ReadAll(reader)
				body = string(content)
			}
		}
		dry := r.URL.Query().Get("dryRun") == "All" || r.Method == http.MethodDelete && strings.Contains(body, `"dryRun":["All"]`)
		name := r.Method + " " + r.URL.Path
		if r.Method == http.MethodPost {
			var object metav1.PartialObjectMetadata
			_ = json.Unmarshal([]byte(body), &object)
			name += "/" + object.Name
		}
		answer, err := next.RoundTrip(r)
		c.lock.Lock()
		defer c.lock.Unlock()
		c.all = append(c.all, name)
		if r.Method == http.MethodGet || dry {
			return answer, err
		}
		c.stored = append(c.stored, name)
		if err == nil && answer.StatusCode == http.StatusCreated {
			name = strings.Replace(name, http.MethodPatch, http.MethodPost, 1)
		}
		if err == nil && answer.StatusCode < http.StatusMultipleChoices {
			c.accepted = append(c.accepted, name)
		}
		return answer, err
	})
}

func (c *traffic) reset() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.all, c.stored, c.accepted = nil, nil, nil
}

func (c *traffic) total() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.all)
}

// newPlanBench returns a bench with an engine of which the requests are counted.
func newPlanBench(t *testing.T, options reconciler.ReconcilerOptions) (*bench, *traffic) {
	t.Helper()
	b, counted := newBench(t), &traffic{}
	config := rest.CopyConfig(env.Shared(t).Config())
	config.Wrap(counted.wrap)
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	if b.engine, err = reconciler.NewReconciler(engineName, target, keyed(options)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Close)
	return b, counted
}

// foresee plans, and fails if anything was stored.
func (b *bench) foresee(counted *traffic, request reconciler.ApplyRequest) report.Plan {
	b.t.Helper()
	counted.reset()
	request.Inventory = b.inventory
	plan, err := b.engine.Plan(b.t.Context(), request)
	return b.checked(counted, plan, err)
}

func (b *bench) foreseeDeletion(counted *traffic, request reconciler.DeleteRequest) report.Plan {
	b.t.Helper()
	counted.reset()
	request.Inventory = b.inventory
	plan, err := b.engine.PlanDeletion(b.t.Context(), request)
	return b.checked(counted, plan, err)
}

func (b *bench) checked(counted *traffic, plan report.Plan, err error) report.Plan {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	if len(counted.stored) > 0 {
		b.t.Errorf("the plan was executed: %v", counted.stored)
	}
	return plan
}

// changes returns the changes of a plan in a few words each.
func changes(p report.Plan) []string {
	var all []string
	for _, c := range p.Changes {
		text := fmt.Sprintf("%d %s %s %s", c.Batch, c.Class, c.Verb, c.Key.Kind+" "+c.Key.Name)
		for _, f := range c.Fields {
			text += fmt.Sprintf(" %s: %s -> %s", f.Path, f.Old, f.New)
		}
		all = append(all, text)
	}
	return all
}

func expectChanges(t *testing.T, p report.Plan, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, changes(p)); diff != "" {
		t.Errorf("-want +got:\n%s\nof the plan\n%s", diff, p)
	}
}

func TestAPlanHasAllWavesAndWritesNothing(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	got := b.foresee(counted, b.request(config("a", "1"), config("b", "1", "apply-order", "1"), plannedDeployment("web", "a:1", "apply-order", "2"), config("c", "1", "apply-order", "3")))
	expectChanges(t, got, "1 Create create ConfigMap a", "2 Create create ConfigMap b", "3 Create create Deployment web", "4 Create create ConfigMap c")
	if b.get("a") != nil {
		t.Error("the plan was executed")
	}
	if len(got.Until) != 1 || got.Until[0].Key.Kind != "Deployment" || got.Until[0].Batch != 4 {
		t.Errorf("waits for %v", got.Until)
	}
}

func plannedDeployment(name, image string, annotations ...string) *unstructured.Unstructured {
	object := config(name, "", annotations...)
	delete(object.Object, "data")
	object.Object["apiVersion"], object.Object["kind"] = "apps/v1", "Deployment"
	labels := map[string]any{"app": name}
	object.Object["spec"] = map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "api", "image": image}}},
		},
	}
	return object
}

func TestAPlanSaysWhatAnUpgradeChanges(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	service := func(port int64) *unstructured.Unstructured {
		object := config("svc", "", "update-policy", "recreate")
		delete(object.Object, "data")
		object.Object["kind"], object.Object["spec"] = "Service", map[string]any{"ports": []any{map[string]any{"port": port}}}
		return object
	}
	scaled := plannedDeployment("web", "a:2")
	scaled.Object["spec"].(map[string]any)["replicas"] = int64(2)
	replicas := plannedDeployment("scaled", "a:1")
	if _, err := b.apply(plannedDeployment("web", "a:1"), plannedDeployment("scaled", "a:1"), config("a", "1"), config("old", "1"), config("kept", "1", "delete-policy", "orphan"), service(80)); err != nil {
		t.Fatal(err)
	}
	replicas.Object["spec"].(map[string]any)["replicas"] = int64(3)
	if err := b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "there"}, Data: map[string]string{"value": "0"}}); err != nil {
		t.Fatal(err)
	}
	helm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "helm", Annotations: map[string]string{"meta.helm.sh/release-name": "x"}}}
	if err := b.Create(t.Context(), helm); err != nil {
		t.Fatal(err)
	}
	got := b.foresee(counted, b.request(scaled, replicas, config("a", "2"), config("new", "1"), config("there", "1"), service(81)))
	expectChanges(t, got,
		"1 Update replace ConfigMap a data.value: 1 -> 2",
		"1 Create create ConfigMap new",
		"1 Adopt replace ConfigMap there data.value: 0 -> 1 "+
			"metadata.annotations[engine.corbel.run/owner]:  -> example.com/Release/"+b.namespace+"/main/1 metadata.labels[engine.corbel.run/owner-id]:  -> "+ownerIDOf(t, got),
		"1 Update replace Deployment scaled spec.replicas: 1 -> 3",
		"1 RestartsPods replace Deployment web spec.replicas: 1 -> 2 spec.template.spec.containers[name=api].image: a:1 -> a:2",
		"2 Recreate delete Service svc", "3 Recreate create Service svc",
		"4 Orphan orphan ConfigMap kept", "4 Delete delete ConfigMap old",
	)
	if total := got.Total(report.ChangeRecreate); total != 1 {
		t.Errorf("%d objects are recreated, want 1", total)
	}
	got = b.foresee(counted, b.request(scaled, replicas, config("a", "1"), config("helm", "1"), service(80)))
	if blocked := got.Changes[len(got.Changes)-1]; blocked.Class != report.ChangeBlocked || blocked.Key.Name != "helm" || !strings.Contains(blocked.Message, "belongs to Helm release") {
		t.Errorf("got\n%s", got)
	}
}

// The server can be asked about the apply only, and not about the fields of a one-off manager that go after it.
func TestAPlanWarnsOfPodsThatAreReplacedUnderServerSideApplyAndOfReplicasThatFall(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	web := func(replicas int64, value string) *unstructured.Unstructured {
		object := plannedDeployment("web", "a:1", "update-policy", "ssa-override", "apply-order", value)
		object.Object["spec"].(map[string]any)["replicas"] = replicas
		return object
	}
	if _, err := b.apply(web(5, "0")); err != nil {
		t.Fatal(err)
	}
	live := web(5, "0")
	live.SetNamespace(b.namespace)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"example.com/by-hand":"1"}}}}}`))
	if err := b.Patch(t.Context(), live, patch, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	got := b.foresee(counted, b.request(web(1, "1")))
	if len(got.Changes) != 1 || got.Changes[0].Class != report.ChangeRestartsPods || !strings.Contains(got.Changes[0].DependsOnCluster, "a later one removes .spec.template.metadata.annotations.example.com/by-hand") {
		t.Errorf("got\n%s", got)
	}
	if len(got.Notes) != 1 || !got.Notes[0].Warning || got.Notes[0].Message != "the number of replicas falls from 5 to 1" {
		t.Errorf("notes: %v", got.Notes)
	}
}

// ownerIDOf returns the id that an adopted object gets.
func ownerIDOf(t *testing.T, p report.Plan) string {
	t.Helper()
	for _, c := range p.Changes {
		for _, f := range c.Fields {
			if strings.HasSuffix(f.Path, "owner-id]") {
				return f.New
			}
		}
	}
	t.Errorf("no object gets our label:\n%s", p)
	return ""
}

func TestARefusedChangeHoldsBackWhatComesAfterIt(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	if err := b.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}},
	}); err != nil {
		t.Fatal(err)
	}
	b.countQuota()
	b.forbidValue("forbidden")
	secret := config("s", "")
	secret.Object["kind"], secret.Object["data"] = "Secret", map[string]any{}
	invalid := config("UPPER", "1")
	got := b.foresee(counted, b.request(config("a", "1"), secret, invalid, config("f", "forbidden"), config("b", "1", "apply-order", "1")))
	expectChanges(t, got, "1 Refused create ConfigMap UPPER", "1 Create create ConfigMap a", "1 Refused create ConfigMap f", "1 Refused create Secret s")
	if text := got.String(); !strings.Contains(text, "exceeded quota") || !strings.Contains(text, "this value is not allowed") || !strings.Contains(text, "waits ConfigMap "+b.namespace+"/b: Order") {
		t.Errorf("got\n%s", text)
	}
}

// forbidValue denies ConfigMaps of the bench with a value, by a policy.
func (b *bench) forbidValue(value string) {
	b.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}},
		},
		Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.data.value != %q", value), Message: "this value is not allowed"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	for _, object := range []client.Object{policy, binding} {
		if err := b.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"}, Data: map[string]string{"value": value}}
		if err := b.Create(b.t.Context(), probe, client.DryRunAll); err != nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the policy does not become active")
		}
	}
}

// countQuota does the work of the controller that counts what the quota limits.
func (b *bench) countQuota() {
	b.t.Helper()
	quota := &corev1.ResourceQuota{}
	if err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "few"}, quota); err != nil {
		b.t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/secrets": resource.MustParse("0")}}
	if err := b.Status().Update(b.t.Context(), quota); err != nil {
		b.t.Fatal(err)
	}
}

func TestWhatAPlanItselfCreatesCannotBeAskedAbout(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	inside := config("inside", "1")
	inside.SetNamespace(b.namespace + "-new")
	crd, instance := fooDefinition(b), fooInstance(b)
	got := b.foresee(counted, b.request(inside, crd, instance))
	expectChanges(t, got, "1 Create create Namespace "+b.namespace+"-new", "1 Create create CustomResourceDefinition "+crd.GetName(),
		"1 Create create ConfigMap inside", "2 Create create "+instance.GetKind()+" x")
	said := map[string]string{}
	for _, c := range got.Changes {
		said[c.Key.Kind] = c.DependsOnCluster
	}
	want := map[string]string{"ConfigMap": "its namespace does not exist yet", instance.GetKind(): "its type is not served yet", "CustomResourceDefinition": "", "Namespace": ""}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// fooDefinition defines a type that only this bench has.
func fooDefinition(b *bench) *unstructured.Unstructured {
	kind := "Foo" + strings.ReplaceAll(strings.TrimPrefix(b.namespace, "engine-"), "-", "")
	plural := strings.ToLower(kind) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".plan.example.com"},
		"spec": map[string]any{
			"group": "plan.example.com", "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
}

func fooInstance(b *bench) *unstructured.Unstructured {
	kind, _, _ := unstructured.NestedString(fooDefinition(b).Object, "spec", "names", "kind")
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "plan.example.com/v1", "kind": kind, "metadata": map[string]any{"name": "x"}}}
}

func TestAPlanHandsAnObjectOverToAnOwnerThatWaitsForItAsApplyDoes(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("shared", "1"), config("mine", "1"))
	b.letOtherWait()
	request := b.request(config("mine", "1"))
	request.Inventory = b.inventory
	got, err := b.engine.Plan(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	expectChanges(t, got, "1 Orphan orphan ConfigMap shared")
	if want := "handed over to Release " + b.namespace + "/other, which waits for it"; !strings.Contains(got.String(), want) {
		t.Errorf("got\n%s", got)
	}
}

func TestAPlanNotesOrphans(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	b.inventory = v1alpha1.Inventory{}
	if got := b.foresee(counted, b.request(config("a", "1"))); !strings.Contains(got.String(), "found: it has the ownership label and annotation of this component") {
		t.Errorf("got\n%s", got)
	}
}

// No value of a Secret is in a plan, nor that of another object if a Secret was read for the manifests.
func TestAPlanHoldsNoSecrets(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	const before, after = "correct-horse-battery-staple", "wrong-horse-battery-staple"
	b.confidential = true
	secret := func(value string) *unstructured.Unstructured {
		object := config("credentials", "")
		object.Object["kind"], object.Object["stringData"] = "Secret", map[string]any{"password": value}
		delete(object.Object, "data")
		object.SetAnnotations(map[string]string{"copy": value})
		return object
	}
	b.mustApply(secret(before), config("copied", before), config("a", "1"))
	if err := b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: "helm", Annotations: map[string]string{"meta.helm.sh/release-name": "shop"},
	}}); err != nil {
		t.Fatal(err)
	}
	got := b.foresee(counted, b.request(secret(after), config("copied", after), config("a", before), config("helm", "1")))
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(encoded), got.String(), fmt.Sprintf("%+v", got)} {
		for _, value := range []string{before, after, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ", "d3JvbmctaG9yc2UtYmF0dGVyeS1zdGFwbGU"} {
			if strings.Contains(text, value) {
				t.Errorf("%s is in\n%s", value, text)
			}
		}
	}
	if !strings.Contains(got.String(), `data.password: "***" -> "***"`) || !strings.Contains(got.String(), "OwnerConflict") {
		t.Errorf("got\n%s", got)
	}
}

func TestWhatAPlanCosts(t *testing.T) {
	const total = 1000
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	objects := func(changed int) []client.Object {
		all := make([]client.Object, total)
		for i := range all {
			value := "1"
			if i < changed {
				value = "2"
			}
			all[i] = config(fmt.Sprintf("c%04d", i), value)
		}
		return all
	}
	expect := func(what string, changed int, objects []client.Object) {
		t.Helper()
		start := time.Now()
		got := b.foresee(counted, b.request(objects...))
		t.Logf("%s: %d changes, %d requests, %s", what, len(got.Changes), counted.total(), time.Since(start).Round(time.Millisecond))
		if len(got.Changes) != changed || counted.total() > changed+10 {
			t.Errorf("%s: %d changes, %d requests, want %d changes and at most 10 requests more", what, len(got.Changes), counted.total(), changed)
		}
	}
	expect("install", total, objects(0))
	b.mustApply(objects(0)...)
	expect("nothing changed", 0, objects(0))
	expect("one changed", 1, objects(1))
	expect("all changed", total, objects(total))
	counted.reset()
	request := reconciler.DeleteRequest{Owner: b.owner()}
	got := b.foreseeDeletion(counted, request)
	t.Logf("deletion: %d changes, %d requests", len(got.Changes), counted.total())
	if len(got.Changes) != total || counted.total() > total+10 {
		t.Errorf("deletion: %d changes, %d requests", len(got.Changes), counted.total())
	}
}

// A plan is the same as long as nothing changes, and JSON keeps it.
func TestAPlanIsStable(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"), config("b", "1"), config("c", "1"))
	request := b.request(config("c", "2"), config("a", "2"), config("d", "1", "apply-order", "1"))
	first := b.foresee(counted, request)
	slices.Reverse(request.Objects)
	second := b.foresee(counted, request)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	encoded, err := json.Marshal(first)
	var decoded report.Plan
	if err := errors.Join(err, json.Unmarshal(encoded, &decoded)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, decoded); diff != "" {
		t.Error(diff)
	}
	if first.Version != report.PlanVersion || first.Total(report.ChangeUpdate) != 2 {
		t.Errorf("got %+v", first)
	}
}

func TestAPlanStartsNoWatch(t *testing.T) {
	b, counted := newPlanBench(t, reconciler.ReconcilerOptions{Changed: func(reconciler.Owner, reconciler.Change) {}})
	b.mustApply(config("a", "1"))
	b.engine.StopWatching(b.owner())
	expectChanges(t, b.foresee(counted, b.request(config("a", "2"))), "1 Update replace ConfigMap a data.value: 1 -> 2")
	if b.engine.IsWatching() {
		t.Error("the plan has started a watch")
	}
	if got := b.mustApply(config("a", "2")); got.Steps["replace"] != 1 {
		t.Errorf("after the plan Apply did %v", got.Steps)
	}
	expectChanges(t, b.foresee(counted, b.request(config("a", "2"))))
}

func TestAPlanNamesMissingRights(t *testing.T) {
	b, _ := newPlanBench(t, reconciler.ReconcilerOptions{})
	reader := "plan-reader-" + b.namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: reader}}}
	everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: everywhere.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader}, Subjects: binding.Subjects}
	for _, object := range []client.Object{role, binding, everywhere, all} {
		if err := b.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	as := rest.CopyConfig(env.Shared(t).Config())
	as.Impersonate.UserName = reader
	target, err := cluster.New(as, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	engine, err := reconciler.NewReconciler(engineName, target, keyed(reconciler.ReconcilerOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		got, err := engine.Plan(t.Context(), b.request(config("a", "1")))
		if err != nil && time.Now().Before(deadline) {
			continue // the rights are not known to the server yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Changes) == 1 && got.Changes[0].Class == report.ChangeBlocked && strings.Contains(got.Changes[0].Message, "cannot create resource") {
			want := "in namespace " + b.namespace + " rules: [{apiGroups: [''], resources: [configmaps], verbs: [create]}]"
			if got.MissingRights != want {
				t.Errorf("the missing rights are %q, want %q", got.MissingRights, want)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got\n%s", got)
		}
	}
}
