// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// defined creates a definition of kind Foo in a group of its own, of ours.
func (b *bench) defined() (d *plan.Desired, group string) {
	b.t.Helper()
	group = unique("g") + ".example.com"
	d = b.desired(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Foo, plural: foos}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`, v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, d, plan.Observation{}))
	eventually(b.t, "the type is served", func() bool {
		kinds, err := b.target.Types().Kinds(b.t.Context(), schema.GroupVersion{Group: group, Version: "v1"})
		if err != nil || len(kinds) == 0 {
			return false
		}
		return b.observe(d).Status.Readiness == plan.Ready
	})
	return d, group
}

// foo creates an instance, as soon as the server is ready for it.
func (b *bench) foo(group, namespace, name, extra string) *plan.Desired {
	b.t.Helper()
	d := b.desired(`{apiVersion: `+group+`/v1, kind: Foo, metadata: {namespace: `+namespace+`, name: `+name+extra+`}}`, v1alpha1.UpdatePolicyReplace)
	eventually(b.t, "an instance is created", func() bool { return b.run(step(plan.VerbCreate, d, plan.Observation{})).Err == nil })
	return d
}

// guarded is the deletion of an object with a guard.
func (b *bench) guarded(d *plan.Desired, guard plan.Guard) plan.Result {
	b.t.Helper()
	s := step(plan.VerbDelete, d, b.observe(d))
	s.Guard, s.Desired = guard, nil
	return b.run(s)
}

func TestATypeWaitsForItsInstancesAndSeparatesForeignOnes(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	definition, group := b.defined()
	foreign := b.foo(group, namespace, "z-theirs", "")
	ours := b.foo(group, namespace, "ours", ", finalizers: [example.com/f]")
	blocked := func() string {
		t.Helper()
		b.requests()
		s := step(plan.VerbDelete, definition, b.observe(definition))
		s.Guard, s.Desired, s.OwnInstances, s.Owner.Ref.Namespace = plan.GuardNoInstances, nil, []plan.Key{ours.Key}, namespace
		result := b.run(s)
		if result.Err != nil {
			t.Error(result.Err)
		}
		return result.Blocked
	}
	want := "1 foreign instance: Foo " + namespace + "/z-theirs; 1 instance of ours that must go first: Foo " + namespace + "/ours"
	if got := blocked(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.must(step(plan.VerbDelete, foreign, b.observe(foreign)))
	b.must(step(plan.VerbDelete, ours, b.observe(ours)))
	if got := blocked(); got != "1 instance of ours still being deleted: Foo "+namespace+"/ours" {
		t.Errorf("got %q", got)
	}
	b.otherClient(ours, `metadata: {finalizers: null}`)
	if got := blocked(); got != "" {
		t.Errorf("got %q", got)
	}
	// What let the deletion pass was one small read right before it.
	sent := b.requests()
	at := slices.Index(sent, "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos."+group)
	if at < 1 || !strings.HasSuffix(sent[at-1], "/foos") {
		t.Errorf("got %v", sent)
	}
}

func TestATypeIsGuardedAgainBeforeEachDeletion(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	definition, group := b.defined()
	s := step(plan.VerbDelete, definition, b.observe(definition))
	s.Guard, s.Desired = plan.GuardNoInstances, nil
	b.beforeEach("DELETE", func(int) {
		b.otherClient(definition, `metadata: {labels: {changed: "1"}}`)
		b.foo(group, namespace, "foo", "")
	})
	if result := b.run(s); !strings.HasPrefix(result.Blocked, "1 foreign instance ") {
		t.Errorf("got %+v", result)
	}
	if live := b.observe(definition); !live.DeletionTimestamp.IsZero() {
		t.Error("the type is being deleted")
	}
}

func TestATypeThatWasNeverEstablishedIsDeleted(t *testing.T) {
	b := newBench(t)
	_, group := b.defined()
	// The same kind once more: the server does not accept the names.
	d := b.desired(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: doubles.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: Foo, plural: doubles}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`, v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, d, plan.Observation{}))
	eventually(t, "the names are refused", func() bool { return b.observe(d).Status.Readiness == plan.Failed })
	if result := b.guarded(d, plan.GuardNoInstances); result.Err != nil || result.Blocked != "" {
		t.Errorf("got %+v", result)
	}
}

func TestATypeThatIsServedInNoVersionIsNotDeleted(t *testing.T) {
	b := newBench(t)
	definition, _ := b.defined()
	b.otherClient(definition, `spec: {versions: [{name: v1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}]}`)
	eventually(t, "the type is blocked", func() bool {
		result := b.guarded(definition, plan.GuardNoInstances)
		return strings.Contains(result.Blocked, "no version of it is served")
	})
}

func TestAnAPIServiceIsDeletedIfItsServerIsGone(t *testing.T) {
	b := newBench(t)
	group := unique("g") + ".example.com"
	d := b.desired(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}`,
		v1alpha1.UpdatePolicyReplace)
	b.must(step(plan.VerbCreate, d, plan.Observation{}))
	eventually(t, "it is gone", func() bool {
		result := b.guarded(d, plan.GuardNoInstances)
		if result.Blocked != "" {
			t.Fatalf("got %q", result.Blocked)
		}
		return result.Err == nil && result.Observation.Existence == plan.Absent
	})
}
