// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// methods are the requests of the verbs. An update by server-side apply, a mark and an
// orphaning are all a PATCH.
var methods = map[string]string{
	"create": http.MethodPost, "replace": http.MethodPut, "merge": http.MethodPatch, "override": http.MethodPatch,
	"mark": http.MethodPatch, "delete": http.MethodDelete, "orphan": http.MethodPatch,
}

// writesOf returns the writes of a plan, by batch, in order of their names.
func writesOf(p report.Plan) (batches [][]string) {
	for _, c := range p.Changes {
		for len(batches) < c.Batch {
			batches = append(batches, nil)
		}
		if c.Class != report.ChangeRefused && c.Class != report.ChangeBlocked {
			batches[c.Batch-1] = append(batches[c.Batch-1], methods[c.Verb]+" "+c.Key.Name)
		}
	}
	for _, batch := range batches {
		slices.Sort(batch)
	}
	return batches
}

// follow calls the engine until it is done, with a cluster that does what a plan assumes, and
// expects the writes of the plan. The writes of one batch may have any order.
func (b *bench) follow(p report.Plan, call func() (reconciler.Outcome, error)) {
	b.t.Helper()
	b.traffic.requests("")
	deadline := time.Now().Add(2 * time.Minute)
	for {
		outcome, err := call()
		b.inventory = outcome.Inventory
		check.NoError(b.t, err)
		if outcome.Done() {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("not done: %v", outcome.Waiting)
		}
		b.finishWork()
	}
	done := b.traffic.writes()
	var got [][]string
	for _, batch := range writesOf(p) {
		n := min(len(batch), len(done))
		part := slices.Clone(done[:n])
		slices.Sort(part)
		got, done = append(got, part), done[n:]
	}
	if len(done) > 0 {
		got = append(got, done)
	}
	if diff := cmp.Diff(writesOf(p), got); diff != "" {
		b.t.Errorf("the plan is wrong (-said, +done):\n%s\n%+v", diff, p)
	}
}

// writes returns what the server stored, as method and name.
func (c *traffic) writes() (all []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, accepted := range c.accepted {
		method, where, _ := strings.Cut(accepted, " ")
		all = append(all, method+" "+path.Base(where))
	}
	return all
}

// finishWork does the work of the controllers: Deployments become available, Jobs complete,
// and terminating namespaces are finalized.
func (b *bench) finishWork() {
	b.t.Helper()
	ctx, in := b.t.Context(), client.InNamespace(b.namespace)
	deployments, jobs := &appsv1.DeploymentList{}, &batchv1.JobList{}
	namespaces := &corev1.NamespaceList{}
	for _, list := range []client.ObjectList{deployments, jobs} {
		check.NoError(b.t, b.List(ctx, list, in))
	}
	check.NoError(b.t, b.List(ctx, namespaces))
	for i := range deployments.Items {
		d := &deployments.Items[i]
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}}
		check.NoError(b.t, b.Status().Update(ctx, d))
	}
	now := metav1.Now()
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if j.Status.CompletionTime != nil {
			continue
		}
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
		check.NoError(b.t, b.Status().Update(ctx, j))
	}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		if ns.DeletionTimestamp != nil && strings.HasPrefix(ns.Name, b.namespace) {
			ns.Spec.Finalizers = nil
			if err := b.SubResource("finalize").Update(ctx, ns); client.IgnoreNotFound(err) != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// plannedJob is a Job.
func plannedJob(name string, annotations ...string) *unstructured.Unstructured {
	object := config(name, "", annotations...)
	delete(object.Object, "data")
	object.Object["apiVersion"], object.Object["kind"] = "batch/v1", "Job"
	object.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "job", "image": "a:1"}},
	}}}
	return object
}

// What a plan says is what Apply and Delete do.
func TestAPlanIsWhatHappens(t *testing.T) {
	b := newBench(t)
	inside := config("inside", "1")
	inside.SetNamespace(b.namespace + "-new")
	crd, instance := fooDefinition(b), fooInstance(b)
	changed := func(object *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
		object = object.DeepCopy()
		check.NoError(t, unstructured.SetNestedField(object.Object, "2", path...))
		return object
	}
	job := plannedJob("migrate", "apply-order", "1", "update-policy", "recreate")
	install := []client.Object{
		inside, crd, instance, config("a", "1"), config("gone", "1"), plannedDeployment("db", "a:1"), plannedDeployment("api", "a:1", "apply-order", "2"),
		job, plannedJob("once", "apply-order", "1", "purge-order", "1"), config("ssa", "1", "update-policy", "ssa-override"),
		config("merged", "1", "update-policy", "ssa-merge"), config("drifting", "1"), config("orphan", "1", "delete-policy", "orphan"),
	}
	hooks := []client.Object{plannedJob("backup", "run-on", "pre-delete"), plannedJob("last", "run-on", "post-delete")}
	upgrade := []client.Object{
		inside, crd, changed(instance, "value"), config("a", "2"), config("new", "1"), plannedDeployment("db", "a:2"), plannedDeployment("api", "a:2", "apply-order", "2"),
		changed(job, "metadata", "labels", "of"), config("ssa", "2", "update-policy", "ssa-override"), config("there", "1"),
		config("merged", "2", "update-policy", "ssa-merge"), config("drifting", "1"),
	}
	check.NoError(t, b.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "there"}}))
	versions := map[string][]client.Object{"1 install": append(install, hooks...), "2 upgrade": append(upgrade, hooks...), "3 rollback": append(install, hooks...)}
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		t.Run(version, func(t *testing.T) {
			b.t = t
			request := b.request(versions[version]...)
			switch version {
			case "2 upgrade":
				b.change("drifting", func(live *corev1.ConfigMap) { live.Data["value"] = "drifted" })
			case "3 rollback":
				request.Retain = []report.Key{{Kind: "ConfigMap", Namespace: b.namespace, Name: "new"}}
			}
			p := b.foresee(request)
			if version == "1 install" {
				checkInstallation(t, p, crd.GetName(), instance.GetKind())
			}
			b.follow(p, func() (reconciler.Outcome, error) {
				request.Inventory = b.inventory
				return b.engine.Apply(t.Context(), request)
			})
			if rest := b.foresee(request); len(rest.Changes)+len(rest.Waiting) > 0 {
				t.Errorf("done, but the plan is %+v", rest)
			}
		})
	}
	t.Run("4 deletion", func(t *testing.T) {
		b.t = t
		request := reconciler.DeleteRequest{Owner: b.owner(), Objects: hooks, Namespace: b.namespace, Record: b.record}
		p := b.foreseeDeletion(request)
		b.follow(p, func() (reconciler.Outcome, error) {
			request.Inventory = b.inventory
			return b.engine.Delete(t.Context(), request)
		})
	})
}

// checkInstallation checks for what a plan waits, and of which objects it says that the server could not be asked about them, because
// the plan itself creates their namespace or type.
func checkInstallation(t *testing.T, p report.Plan, definition, kind string) {
	t.Helper()
	unasked := map[string]string{}
	for _, c := range p.Changes {
		if c.DependsOnCluster != "" {
			unasked[c.Key.Kind+" "+c.Key.Name] = c.DependsOnCluster
		}
	}
	want := map[string]string{"ConfigMap inside": "its namespace does not exist yet", kind + " x": "its type is not served yet"}
	check.Equal(t, want, unasked)
	var until []string
	for _, wait := range p.Until {
		until = append(until, fmt.Sprintf("%d %s %s", wait.Batch, wait.Key.Kind, wait.Key.Name))
	}
	waits := []string{"2 CustomResourceDefinition " + definition, "2 Deployment db", "3 " + kind + " x", "4 Job migrate", "4 Job once", "6 Deployment api"}
	check.EqualNamed(t, "waits", waits, until)
}

// Instances and objects of others block the deletion of a type and a namespace; those that
// the plan removes itself do not.
func TestAPlanOfADeletionNamesWhatBlocksIt(t *testing.T) {
	b := newBench(t)
	crd, instance := fooDefinition(b), fooInstance(b)
	namespace := namespaceOf(b.namespace + "-own")
	inside := config("inside", "1")
	inside.SetNamespace(namespace.GetName())
	request := b.request(crd, instance, namespace, inside)
	b.follow(b.foresee(request), func() (reconciler.Outcome, error) {
		request.Inventory = b.inventory
		return b.engine.Apply(t.Context(), request)
	})
	deletion := reconciler.DeleteRequest{Owner: b.owner()}
	expectChanges(t, b.foreseeDeletion(deletion),
		"1 Delete delete "+instance.GetKind()+" x", "2 Delete delete ConfigMap inside",
		"3 Delete delete CustomResourceDefinition "+crd.GetName(), "4 Delete delete Namespace "+namespace.GetName())

	foreign, theirs := fooInstance(b), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.GetName(), Name: "theirs"}}
	foreign.SetName("foreign")
	foreign.SetNamespace(b.namespace)
	for _, object := range []client.Object{foreign, theirs} {
		check.NoError(t, b.Create(t.Context(), object))
	}
	got := b.foreseeDeletion(deletion)
	expectChanges(t, got, "1 Delete delete "+instance.GetKind()+" x", "2 Delete delete ConfigMap inside", "3 Blocked delete CustomResourceDefinition "+crd.GetName())
	check.Contains(t, fmt.Sprintf("%+v", got), "1 foreign instance: "+instance.GetKind()+" "+b.namespace+"/foreign")
	check.NoError(t, b.Delete(t.Context(), foreign))
	got = b.foreseeDeletion(deletion)
	expectChanges(t, got, "1 Delete delete "+instance.GetKind()+" x", "2 Delete delete ConfigMap inside",
		"3 Delete delete CustomResourceDefinition "+crd.GetName(), "4 Blocked delete Namespace "+namespace.GetName())
}
