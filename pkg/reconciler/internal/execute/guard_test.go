// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
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

// guarded is the deletion of an object with a guard.
func (b *bench) guarded(d *plan.Desired, guard plan.Guard) plan.Result {
	b.t.Helper()
	s := step(plan.VerbDelete, d, b.observe(d))
	s.Guard, s.Desired = guard, nil
	return b.run(s)
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
