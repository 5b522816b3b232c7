// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// foresee plans, and fails if anything was stored.
func (b *bench) foresee(request reconciler.ApplyRequest) report.Plan {
	b.t.Helper()
	b.traffic.requests("")
	request.Inventory = b.inventory
	plan, err := b.engine.Plan(b.t.Context(), request)
	return b.checked(plan, err)
}

func (b *bench) foreseeDeletion(request reconciler.DeleteRequest) report.Plan {
	b.t.Helper()
	b.traffic.requests("")
	request.Inventory = b.inventory
	plan, err := b.engine.PlanDeletion(b.t.Context(), request)
	return b.checked(plan, err)
}

func (b *bench) checked(plan report.Plan, err error) report.Plan {
	b.t.Helper()
	check.NoError(b.t, err)
	if len(b.traffic.stored) > 0 {
		b.t.Errorf("the plan was executed: %v", b.traffic.stored)
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
		t.Errorf("-want +got:\n%s\nof the plan\n%+v", diff, p)
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
	b := newBench(t)
	service := func(port int64) *unstructured.Unstructured {
		object := config("svc", "", "update-policy", "recreate")
		delete(object.Object, "data")
		object.Object["kind"], object.Object["spec"] = "Service", map[string]any{"ports": []any{map[string]any{"port": port}}}
		return object
	}
	scaled := plannedDeployment("web", "a:2")
	scaled.Object["spec"].(map[string]any)["replicas"] = int64(2)
	replicas := plannedDeployment("scaled", "a:1")
	check.NoError(t, check.ErrorOf(b.apply(plannedDeployment("web", "a:1"), plannedDeployment("scaled", "a:1"), config("a", "1"), config("old", "1"), config("kept", "1", "delete-policy", "orphan"), service(80))))
	replicas.Object["spec"].(map[string]any)["replicas"] = int64(3)
	check.NoError(t, b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "there"}, Data: map[string]string{"value": "0"}}))
	helm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "helm", Annotations: map[string]string{"meta.helm.sh/release-name": "x"}}}
	check.NoError(t, b.Create(t.Context(), helm))
	got := b.foresee(b.request(scaled, replicas, config("a", "2"), config("new", "1"), config("there", "1"), service(81)))
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
	check.SameNamed(t, "objects are recreated", 1, got.Total(report.ChangeRecreate))
	got = b.foresee(b.request(scaled, replicas, config("a", "1"), config("helm", "1"), service(80)))
	if blocked := got.Changes[len(got.Changes)-1]; blocked.Class != report.ChangeBlocked || blocked.Key.Name != "helm" || !strings.Contains(blocked.Message, "belongs to Helm release") {
		t.Errorf("got %+v", got)
	}
}

// The server can be asked about the apply only, and not about the fields of a one-off manager that go after it.
func TestAPlanWarnsOfPodsThatAreReplacedUnderServerSideApplyAndOfReplicasThatFall(t *testing.T) {
	b := newBench(t)
	web := func(replicas int64, value string) *unstructured.Unstructured {
		object := plannedDeployment("web", "a:1", "update-policy", "ssa-override", "apply-order", value)
		object.Object["spec"].(map[string]any)["replicas"] = replicas
		return object
	}
	check.NoError(t, check.ErrorOf(b.apply(web(5, "0"))))
	live := web(5, "0")
	live.SetNamespace(b.namespace)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"example.com/by-hand":"1"}}}}}`))
	check.NoError(t, b.Patch(t.Context(), live, patch, client.FieldOwner("kubectl-edit")))
	got := b.foresee(b.request(web(1, "1")))
	if len(got.Changes) != 1 || got.Changes[0].Class != report.ChangeRestartsPods || !strings.Contains(got.Changes[0].DependsOnCluster, "a later one removes .spec.template.metadata.annotations.example.com/by-hand") {
		t.Errorf("got %+v", got)
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
	t.Errorf("no object gets our label: %+v", p)
	return ""
}

// fooDefinition defines a type that only this bench has.
func fooDefinition(b *bench) *unstructured.Unstructured {
	kind := "Foo" + strings.ReplaceAll(strings.TrimPrefix(b.namespace, "engine-"), "-", "")
	return definition(strings.ToLower(kind)+"s", kind)
}

func fooInstance(b *bench) *unstructured.Unstructured {
	kind, _, _ := unstructured.NestedString(fooDefinition(b).Object, "spec", "names", "kind")
	return instance(kind, "x")
}

func TestAPlanHandsAnObjectOverToAnOwnerThatWaitsForItAsApplyDoes(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("shared", "1"), config("mine", "1"))
	b.letOtherWait()
	got := check.Must(b.engine.Plan(t.Context(), b.request(config("mine", "1"))))(t)
	expectChanges(t, got, "1 Orphan orphan ConfigMap shared")
	if want := "handed over to Release " + b.namespace + "/other, which waits for it"; !strings.Contains(fmt.Sprintf("%+v", got), want) {
		t.Errorf("got %+v", got)
	}
}

func TestAPlanNotesOrphans(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	b.inventory = v1alpha1.Inventory{}
	if got := b.foresee(b.request(config("a", "1"))); !strings.Contains(fmt.Sprint(got.Notes), "found: it has the ownership label and annotation of this component") {
		t.Errorf("got %+v", got)
	}
}

// No value of a Secret is in a plan, nor that of another object if a Secret was read for the manifests.
func TestAPlanHoldsNoSecrets(t *testing.T) {
	b := newBench(t)
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
	got := b.foresee(b.request(secret(after), config("copied", after), config("a", before), config("helm", "1")))
	encoded := check.Must(json.Marshal(got))(t)
	for _, text := range []string{string(encoded), fmt.Sprintf("%+v", got)} {
		for _, value := range []string{before, after, "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ", "d3JvbmctaG9yc2UtYmF0dGVyeS1zdGFwbGU"} {
			if strings.Contains(text, value) {
				t.Errorf("%s is in\n%s", value, text)
			}
		}
	}
	if text := string(encoded); !strings.Contains(text, `{"path":"data.password","old":"***","new":"***"}`) || !strings.Contains(text, "OwnerConflict") {
		t.Errorf("got %+v", got)
	}
}

// dryRuns lets a recorder answer dry runs as a server does, and stores nothing. The refusals are by the names of objects.
func dryRuns(recorder *wire.Recorder, refusals map[string]metav1.Status) {
	recorder.Answer = func(sent wire.Sent) (int, any) {
		if sent.Query.Get("dryRun") != "All" && sent.Method != http.MethodDelete {
			return 0, nil
		}
		object := (&unstructured.Unstructured{Object: sent.Body}).DeepCopy()
		if refusal, refused := refusals[object.GetName()]; refused {
			return int(refusal.Code), refusal
		}
		if sent.Method == http.MethodDelete {
			uid := types.UID(sent.Field("preconditions", "uid"))
			return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: path.Base(sent.Path), Kind: "configmaps", UID: uid}}
		}
		if object.GetUID() == "" {
			object.SetUID("dry")
		}
		return http.StatusOK, object.Object
	}
}

func TestARefusedChangeHoldsBackWhatComesAfterIt(t *testing.T) {
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	refused := func(code int, reason metav1.StatusReason, message string) metav1.Status {
		status := wire.Failure(code, reason, nil)
		status.Message = message
		return status
	}
	dryRuns(recorder, map[string]metav1.Status{
		"quota":   refused(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota: few, requested: count/configmaps=1"),
		"policy":  refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: this value is not allowed"),
		"invalid": refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "data: Invalid value"),
		"right":   refused(http.StatusForbidden, metav1.StatusReasonForbidden, `configmaps is forbidden: User "op" cannot create resource "configmaps" in API group "" in the namespace "shop"`),
	})
	got := check.Must(b.engine.Plan(t.Context(), b.request(config("a", "1"), config("invalid", "1"), config("policy", "1"), config("quota", "1"), config("right", "1"), config("b", "1", "apply-order", "1"))))(t)
	expectChanges(t, got, "1 Create create ConfigMap a", "1 Refused create ConfigMap invalid", "1 Refused create ConfigMap policy", "1 Refused create ConfigMap quota", "1 Blocked create ConfigMap right")
	check.Contains(t, fmt.Sprintf("%+v", got), "exceeded quota", "this value is not allowed", "Key:ConfigMap shop/b Reason:Order")
	if want := "in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [create]}]"; got.MissingRights != want {
		t.Errorf("the missing rights are %q, want %q", got.MissingRights, want)
	}
}

func TestWhatAPlanCosts(t *testing.T) {
	const total = 1000
	b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{})
	dryRuns(recorder, nil)
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
	expect := func(what string, changed int, plan func() (report.Plan, error)) {
		t.Helper()
		before := len(recorder.Sent())
		got, err := plan()
		if sent := len(recorder.Sent()) - before; err != nil || len(got.Changes) != changed || sent > changed+10 {
			t.Errorf("%s: %d changes, %d requests, want %d changes and at most 10 requests more; %v", what, len(got.Changes), sent, changed, err)
		}
	}
	apply := func(changed int) func() (report.Plan, error) {
		return func() (report.Plan, error) { return b.engine.Plan(t.Context(), b.request(objects(changed)...)) }
	}
	expect("install", total, apply(0))
	b.mustApply(objects(0)...)
	expect("nothing changed", 0, apply(0))
	expect("one changed", 1, apply(1))
	expect("all changed", total, apply(total))
	expect("deletion", total, func() (report.Plan, error) {
		return b.engine.PlanDeletion(t.Context(), reconciler.DeleteRequest{Owner: b.owner(), Inventory: b.inventory})
	})
}

// A plan is the same as long as nothing changes, and JSON keeps it.
func TestAPlanIsStable(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("b", "1"), config("c", "1"))
	request := b.request(config("c", "2"), config("a", "2"), config("d", "1", "apply-order", "1"))
	first := b.foresee(request)
	slices.Reverse(request.Objects)
	second := b.foresee(request)
	check.Equal(t, first, second)
	encoded, err := json.Marshal(first)
	var decoded report.Plan
	check.NoError(t, errors.Join(err, json.Unmarshal(encoded, &decoded)))
	check.Equal(t, first, decoded)
	if first.Version != report.PlanVersion || first.Total(report.ChangeUpdate) != 2 {
		t.Errorf("got %+v", first)
	}
}

func TestAPlanStartsNoWatch(t *testing.T) {
	b := newBench(t)
	b.interpose(t, reconciler.ReconcilerOptions{Changed: func(reconciler.Owner, reconciler.Change) {}})
	b.mustApply(config("a", "1"))
	b.engine.StopWatching(b.owner())
	expectChanges(t, b.foresee(b.request(config("a", "2"))), "1 Update replace ConfigMap a data.value: 1 -> 2")
	if b.engine.IsWatching() {
		t.Error("the plan has started a watch")
	}
	if got := b.mustApply(config("a", "2")); got.Steps["replace"] != 1 {
		t.Errorf("after the plan Apply did %v", got.Steps)
	}
	expectChanges(t, b.foresee(b.request(config("a", "2"))))
}
