// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

// ours creates a namespace of ours.
func (b *bench) ours(name string) *plan.Desired {
	b.t.Helper()
	d := b.desired(`{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`, v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, d, plan.Observation{}))
	return d
}

const (
	goneUID  = "11111111-2222-3333-4444-555555555555"
	ownedBy  = `, ownerReferences: [{apiVersion: KIND, name: owner, controller: true, uid: UID}]`
	aPod     = `{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: NS OWNER}, spec: {containers: [{name: c, image: i}]}}`
	aReplica = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: replicas, namespace: NS OWNER}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
)

func in(namespace, text string) string { return strings.ReplaceAll(text, "NS", namespace) }

func owned(text, kind, uid string) string {
	reference := ""
	if kind != "" {
		reference = strings.NewReplacer("KIND", kind, "UID", uid).Replace(ownedBy)
	}
	return strings.ReplaceAll(text, "OWNER", reference)
}

func TestANamespaceWithContentStays(t *testing.T) {
	for name, tc := range map[string]struct {
		content []string
		blocked string
	}{
		"an empty one goes": {},
		"noise does not count": {content: []string{
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: NS}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: NS}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: default-token-x, namespace: NS, annotations: {kubernetes.io/service-account.name: default}}}`,
			`{apiVersion: v1, kind: Event, metadata: {name: e, namespace: NS}, involvedObject: {namespace: NS}}`,
			`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: NS}}`,
			`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s, namespace: NS}, addressType: IPv4, endpoints: []}`,
			`{apiVersion: v1, kind: Endpoints, metadata: {name: s, namespace: NS}}`,
		}},
		"an object of somebody counts": {
			content: []string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: NS}}`},
			blocked: "1 object lives in it: ConfigMap theirs",
		},
		"a token that only looks like the default one counts": {
			content: []string{`{apiVersion: v1, kind: Secret, metadata: {name: default-token-x, namespace: NS}}`},
			blocked: "1 object lives in it: Secret default-token-x",
		},
		"a claim of a StatefulSet counts": {
			content: []string{`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: NS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`},
			blocked: "1 object lives in it: PersistentVolumeClaim data-db-0",
		},
		"what a deleted controller leaves goes by itself": {content: []string{
			owned(aReplica, "apps/v1, kind: Deployment", goneUID),
		}},
		"what an object of the whole cluster owns counts": {
			content: []string{owned(aPod, "v1, kind: Node", goneUID)},
			blocked: "1 object lives in it: Pod pod",
		},
		"what an unknown type owns counts": {
			content: []string{owned(aPod, "nowhere.example.com/v1, kind: Foo", goneUID)},
			blocked: "1 object lives in it: Pod pod",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			namespace := unique("content")
			d := b.ours(namespace)
			for _, text := range tc.content {
				b.create(in(namespace, text))
			}
			result := b.guarded(d, plan.GuardEmpty)
			if result.Blocked != tc.blocked || result.Err != nil {
				t.Fatalf("got %q, %v", result.Blocked, result.Err)
			}
			if deleting := !b.observe(d).Deleting.IsZero(); deleting != (tc.blocked == "") {
				t.Errorf("deleting is %v", deleting)
			}
		})
	}
}

func TestAChainOfControllersIsFollowed(t *testing.T) {
	b := newBench(t)
	namespace := unique("content")
	d := b.ours(namespace)
	replicas := b.create(in(namespace, owned(aReplica, "apps/v1, kind: Deployment", goneUID)))
	b.create(in(namespace, owned(aPod, "apps/v1, kind: ReplicaSet", string(replicas.GetUID()))))
	if result := b.guarded(d, plan.GuardEmpty); result.Blocked != "" || result.Err != nil {
		t.Errorf("got %q, %v", result.Blocked, result.Err)
	}

	namespace = unique("content")
	d = b.ours(namespace)
	replicas = b.create(in(namespace, owned(aReplica, "", "")))
	b.create(in(namespace, owned(aPod, "apps/v1, kind: ReplicaSet", string(replicas.GetUID()))))
	if result := b.guarded(d, plan.GuardEmpty); result.Blocked != "2 objects live in it: Pod pod, ReplicaSet replicas" {
		t.Errorf("got %q, %v", result.Blocked, result.Err)
	}
}

func TestANamespaceInUseThatWeCreatedIsReleased(t *testing.T) {
	b := newBench(t)
	namespace := unique("content")
	d := b.ours(namespace)
	b.create(in(namespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: NS}}`))
	result := b.guarded(d, plan.GuardEmptyOrRelease)
	if !result.Released || result.Blocked != "" || result.Err != nil {
		t.Fatalf("got %+v", result)
	}
	if live := b.observe(d); live.Marks.OwnerID != "" || !live.Deleting.IsZero() {
		t.Errorf("got %+v", live)
	}

	empty := b.ours(unique("content"))
	if result := b.guarded(empty, plan.GuardEmptyOrRelease); result.Released || result.Err != nil || b.observe(empty).Deleting.IsZero() {
		t.Errorf("an empty one: got %+v", result)
	}
}

func TestProtectedNamespacesAreNeverDeleted(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		d := b.desired(`{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`, v1alpha1.UpdatePolicyReplace)
		for _, guard := range []plan.Guard{plan.GuardNone, plan.GuardEmpty} {
			if result := b.guarded(d, guard); result.Blocked != "it is never deleted" {
				t.Errorf("%s, %q: got %+v", name, guard, result)
			}
		}
		if result := b.guarded(d, plan.GuardEmptyOrRelease); !result.Released || result.Err != nil {
			t.Errorf("%s: got %+v", name, result)
		}
		if live := b.observe(d); !live.Deleting.IsZero() {
			t.Fatalf("namespace %s is being deleted", name)
		}
	}
}

func TestATypeThatCannotBeReadCountsAsContent(t *testing.T) {
	admin := newBench(t)
	d := admin.ours(unique("content"))
	user := unique("jane")
	// May do everything with namespaces, and read nothing but ConfigMaps in them.
	admin.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + user + `}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: ["*"]}
- {apiGroups: [""], resources: [configmaps], verbs: [list]}`)
	admin.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + user + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + user + `}
subjects: [{kind: User, name: ` + user + `}]`)
	config, err := env.Shared(t).ConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	jane := benchOn(t, config)
	eventually(t, "the role is in force", func() bool { return jane.observe(d).Existence == plan.Present })
	result := jane.guarded(d, plan.GuardEmpty)
	if !strings.HasPrefix(result.Blocked, "types that may not be listed: ") || strings.Contains(result.Blocked, "configmaps") {
		t.Errorf("got %q, %v", result.Blocked, result.Err)
	}
	// What may not be read today may not be read tomorrow: there is nothing to wait for.
	if result := jane.guarded(d, plan.GuardEmptyOrRelease); !result.Released || len(result.Notes) != 1 || result.Notes[0].Warning != plan.WarnUnread {
		t.Errorf("got %+v", result)
	}
}
