// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/test/check"
)

var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// definition is the definition of the shop, with these fields of the status.
func definition(fields ...string) *unstructured.Unstructured {
	properties := map[string]any{}
	for _, field := range fields {
		properties[field] = map[string]any{"type": "string"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "shops.shop.example.com"},
		"spec": map[string]any{"versions": []any{map[string]any{
			"name": "v1", "served": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"status": map[string]any{"properties": properties}}}},
		}}},
		"status": map[string]any{"storedVersions": []any{"v1"}},
	}}
}

// current are all fields of a status.
var current = []string{
	"observedGeneration", "appliedGeneration", "revision", "installedRevision", "source", "history", "rollback", "approval", "adoptedRelease", "restoredFrom", "outputs", "secretOutputs", "outputsDigest", "reconciler", "ownerID", "state",
	"progress", "conditions", "lastAppliedAt", "processingSince", "processingDigest", "lastHandledReconcileAt", "inventory",
}

func leaseOf(namespace string, renewed time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop.example.com"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now.Add(-renewed))),
		},
	}
}

// reconciledBy is a component that an operator of a namespace reconciles.
func reconciledBy(name, namespace string) *unstructured.Unstructured {
	s := shop(map[string]any{"reconciler": "shop.example.com", "state": "Ready", "inventory": map[string]any{
		"operator": map[string]any{"key": "key-" + namespace, "namespace": namespace, "lease": namespace + "/shop.example.com"},
	}})
	s.SetName(name)
	return s
}

func TestCheckFindsWhatIsWrongWithAnOperator(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "shop-operator"}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}
	broken := deployment.DeepCopy()
	broken.Status.AvailableReplicas = 0
	unaccepted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "False"}}},
	}}
	unaccepted.SetName("queues.queue.example.com")
	unaccepted.SetLabels(map[string]string{"shop.example.com/shared": "true"})
	unserved := definition(current...)
	_ = unstructured.SetNestedStringSlice(unserved.Object, []string{"v0", "v1"}, "status", "storedVersions")
	ending := definition(current...)
	ending.SetDeletionTimestamp(&metav1.Time{Time: now.Add(-time.Minute)})
	ending.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	for name, test := range map[string]struct {
		objects []client.Object
		want    string // part of a problem; empty if there must be none
	}{
		"all is well":            {[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Second), deployment}, ""},
		"an outdated definition": {[]client.Object{definition(current[:13]...), reconciledBy("corner", "system"), leaseOf("system", time.Second)}, "it lacks status.reconciler"},
		"an unserved version":    {[]client.Object{unserved, reconciledBy("corner", "system"), leaseOf("system", time.Second)}, "stored in version v0"},
		"a definition that goes": {[]client.Object{ending, reconciledBy("corner", "system"), leaseOf("system", time.Second), deployment}, "and all components of the type with it"},
		"no definition":          {[]client.Object{reconciledBy("corner", "system"), leaseOf("system", time.Second)}, "does not exist"},
		"a dead operator":        {[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Hour)}, "was not renewed for 1h0m0s"},
		"no lease":               {[]client.Object{definition(current...), reconciledBy("corner", "system")}, "does not exist"},
		"a broken Deployment":    {[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Second), broken}, "has 0 of 1 replicas"},
		"a second operator": {
			[]client.Object{definition(current...), reconciledBy("a", "system"), reconciledBy("b", "other"), leaseOf("system", time.Second), leaseOf("other", time.Second)},
			"2 operators in different namespaces are alive",
		},
		"a second operator that sealed nothing": {
			[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Second), leaseOf("other", time.Second), deployment},
			"Lease other/shop.example.com is held as well as system/shop.example.com",
		},
		"a second operator that is gone": {
			[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Second), leaseOf("other", time.Hour), deployment}, "",
		},
		"a shared type without a name": {[]client.Object{definition(current...), reconciledBy("corner", "system"), leaseOf("system", time.Second), unaccepted}, "CustomResourceDefinition queues.queue.example.com: all components of shop.example.com share it, and it is Failed"},
		"never reconciled":             {[]client.Object{definition(current...), shop(nil)}, "1 of 1 were never reconciled"},
		"an unreadable state":          {[]client.Object{definition(current...), shop(map[string]any{"state": map[string]any{}})}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			findings := check.Must(newServer(test.objects...).Check(t.Context(), []Type{shopType}, "", now))(t)
			var problems []string
			for _, finding := range findings {
				if finding.Problem {
					problems = append(problems, finding.About+": "+finding.Text)
				}
			}
			found := slices.ContainsFunc(problems, func(text string) bool { return strings.Contains(text, test.want) })
			if test.want == "" && len(problems) > 0 || test.want != "" && !found {
				t.Errorf("%v", findings)
			}
		})
	}
}

// TestCheckFindsMissingObjectsAfterARestore has a Shop with a Secret and a ConfigMap, whose operator has a digest key.
func TestCheckFindsMissingObjectsAfterARestore(t *testing.T) {
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "shop.example.com-digest-key"}, Data: map[string][]byte{"key": []byte("a very secret key")}}
	other := key.DeepCopy()
	other.Data["key"] = []byte("another key")
	inventory := inventoryOf("v1 ConfigMap market/a", "v1 Secret market/s")
	inventory["operator"] = map[string]any{"key": digest.Hasher{Key: key.Data["key"]}.ID(), "namespace": "system", "lease": "system/shop.example.com"}
	recorded := shop(map[string]any{"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Ready", "inventory": inventory, "history": []any{map[string]any{"revision": int64(1)}}})
	revisionsOf := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: revisions.NewStore(revisions.Options{Name: "shop.example.com"}).KeyOf(revisions.Component{
		GroupVersionKind: shopKind, Namespace: "market", Name: "corner", UID: "shop-uid",
	}).Name}}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "here"}}
	elsewhere := recorded.DeepCopy()
	_ = unstructured.SetNestedField(elsewhere.Object, "there", "status", "inventory", "target")
	remote := elsewhere.DeepCopy()
	_ = unstructured.SetNestedField(remote.Object, map[string]any{"name": "kubeconfig"}, "spec", "kubeConfig")
	configMap, secret, held := dependent("ConfigMap", "a"), dependent("Secret", "s"), leaseOf("system", time.Second)
	const (
		noKey      = "problem: Secret system/shop.example.com-digest-key: it does not exist; restore the digest key of the backup before the operator starts: with another key there is no rollback to an earlier revision, and each object is written once more"
		noHistory  = "note: shops.shop.example.com: 1 of 1 lack the Secret of their revisions, as each component with a new uid does: there is no rollback to a revision from before the restore, and the operator takes random values from the live objects"
		runs       = "problem: Lease system/shop.example.com: it is held, so the operator runs while objects are missing: scale it to 0, restore them, and start it again"
		statusless = "shops.shop.example.com market: 1 have no status, "
	)
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"all is there":                         {[]client.Object{definition(current...), recorded, key, revisionsOf, configMap, secret}, nil},
		"all is there, and the operator runs":  {[]client.Object{definition(current...), recorded, key, revisionsOf, configMap, secret, held}, nil},
		"a new uid":                            {[]client.Object{definition(current...), recorded, key, configMap, secret}, []string{noHistory}},
		"no digest key":                        {[]client.Object{definition(current...), recorded, revisionsOf, configMap, secret}, []string{noKey}},
		"no digest key, and the operator runs": {[]client.Object{definition(current...), recorded, revisionsOf, configMap, secret, held}, []string{noKey, runs}},
		"another digest key":                   {[]client.Object{definition(current...), recorded, other, revisionsOf, configMap, secret}, []string{strings.Replace(noKey, "it does not exist", "it is not the key that components are recorded with", 1)}},
		"no objects": {[]client.Object{definition(current...), recorded, key, revisionsOf}, []string{
			"problem: Shop market/corner: 2 recorded objects do not exist, among them Secret market/s, ConfigMap market/a: restore them before the operator starts, which creates a Secret with new random values"}},
		"no status": {[]client.Object{definition(current...), shop(nil), secret}, []string{
			"note: " + statusless + "so their objects are not known here: the operator takes random values from the live objects, and from no Secret that is restored after it starts"}},
		"no status and no Secret, and the operator runs": {[]client.Object{definition(current...), shop(nil), held}, []string{
			"problem: " + statusless + "and their namespace has no Secret: restore the Secrets before the operator starts, or it creates them with new random values", runs}},
		"a status of another cluster": {[]client.Object{definition(current...), elsewhere, key, revisionsOf, configMap, secret, system}, []string{
			"problem: Shop market/corner: its status is that of another cluster, with which its operator changes nothing, for the reason TargetChanged: restore it without its status"}},
		"objects in another cluster": {[]client.Object{definition(current...), remote, key, revisionsOf, configMap, secret, system}, nil},
		"no status subresource": {[]client.Object{withoutSubresource(), recorded, key, revisionsOf, configMap, secret}, []string{
			"problem: CustomResourceDefinition shops.shop.example.com: version v1 has no status subresource: no operator that is built with Corbel can use it"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range check.Must(newServer(test.objects...).CheckRestore(t.Context(), []Type{shopType}, "market", now))(t) {
				got = append(got, map[bool]string{true: "problem: ", false: "note: "}[f.Problem]+f.About+": "+f.Text)
			}
			check.Equal(t, test.want, got)
		})
	}
}

// withoutSubresource is a definition that an older client has restored.
func withoutSubresource() *unstructured.Unstructured {
	crd := definition(current...)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	delete(versions[0].(map[string]any), "subresources")
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	return crd
}

func TestOperatorsOutsideOfTheClusterAreOneNote(t *testing.T) {
	outside := reconciledBy("b", "default")
	unstructured.RemoveNestedField(outside.Object, "status", "inventory", "operator", "lease")
	unsealed := shop(map[string]any{"reconciler": "shop.example.com", "state": "Ready"})
	findings := check.Must(newServer(definition(current...), outside, unsealed).Check(t.Context(), []Type{shopType, shopType}, "", now))(t)
	if len(findings) != 1 || findings[0].Problem || findings[0].About != "shop.example.com" {
		t.Errorf("without a Lease: %v", findings)
	}
	inside := []client.Object{definition(current...), unsealed, reconciledBy("b", "system"), leaseOf("system", time.Second)}
	if findings := check.Must(newServer(inside...).Check(t.Context(), []Type{shopType}, "", now))(t); len(findings) > 0 {
		t.Errorf("with a Lease: %v", findings)
	}
}

func TestAnOperatorOfSeveralTypesIsCheckedOnce(t *testing.T) {
	s := newServer(definition(current...), reconciledBy("a", "system"), reconciledBy("b", "system"), leaseOf("system", time.Second))
	check.Must(s.Check(t.Context(), []Type{shopType, shopType, shopType}, "", now))(t)
	if len(s.requests) != 10 { // three definitions, three lists, the shared types, one lease, those of its name and the Deployments beside it
		t.Errorf("%d requests:\n%s", len(s.requests), strings.Join(s.requests, "\n"))
	}
}

// reviews answers reviews.
type reviews func(object client.Object)

func (r reviews) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	r(object)
	return nil
}

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	all := reviews(func(object client.Object) {
		review := object.(*authorizationv1.SelfSubjectRulesReview)
		review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	})
	if findings, err := CheckRights(t.Context(), all, []Type{shopType}, "market"); err != nil || len(findings) > 0 {
		t.Errorf("%v %v", findings, err)
	}
	some := reviews(func(object client.Object) {
		review := object.(*authorizationv1.SelfSubjectRulesReview)
		review.Status.ResourceRules = []authorizationv1.ResourceRule{
			{Verbs: []string{"get", "list", "patch"}, APIGroups: []string{"shop.example.com"}, Resources: []string{"shops"}},
			{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods", "events"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one"}},
		}
	})
	findings, err := CheckRights(t.Context(), some, []Type{shopType}, "market")
	if err != nil || len(findings) != 2 || !strings.Contains(findings[0].Text, "get secrets") || !strings.Contains(findings[1].Text, "list replicasets.apps") {
		t.Errorf("%v %v", findings, err)
	}
}

func TestRulesFollowFromTheInventory(t *testing.T) {
	item := func(kind, namespace, name string) v1alpha1.InventoryItem {
		return v1alpha1.InventoryItem{Version: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	rules, err := (&newServer().Reader).Rules(v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{
		item("ConfigMap", "b", "x"), item("ConfigMap", "b", "y"), item("Service", "b", "x"), item("Namespace", "", "b"), item("Gone", "b", "x"),
	}})
	check.Fails(t, err, "does not serve Gone any more")
	if len(rules) != 2 || rules[0].Rules[0].Resources[0] != "namespaces" || !slices.Equal(rules[1].Rules[0].Resources, []string{"configmaps", "services"}) {
		t.Errorf("%+v", rules)
	}
	denied := reviews(func(object client.Object) {
		review := object.(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = review.Spec.ResourceAttributes.Verb != "delete" || review.Spec.ResourceAttributes.Resource != "services"
	})
	lacking, err := Lacking(t.Context(), denied, "system/operator", []Rules{{Namespace: "b", Rules: []rbacv1.PolicyRule{rules[1].Rules[0]}}})
	if err != nil || !slices.Equal(lacking, []string{"delete services in namespace b"}) {
		t.Errorf("%q %v", lacking, err)
	}

	// What is allowed in all namespaces is asked for once, not again for each of them.
	var many []Rules
	for i := range 20 {
		many = append(many, Rules{Namespace: fmt.Sprintf("n%d", i), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: verbs}}})
	}
	asked := 0
	counting := reviews(func(object client.Object) {
		asked++
		denied(object)
	})
	lacking, err = Lacking(t.Context(), counting, "system/operator", many)
	if err != nil || len(lacking) != 20 || asked != 2*len(verbs)+20 {
		t.Errorf("%d requests: %q %v", asked, lacking, err)
	}
}
