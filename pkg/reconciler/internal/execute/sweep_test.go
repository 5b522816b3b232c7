// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

// Whoever may not look for fences now may do so later, and has to look then.
func TestAFenceIsLookedForUntilSomebodyMayTell(t *testing.T) {
	admin, user := newBench(t), unique("sweeper")
	config, err := env.Shared(t).ConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	jane := benchOn(t, config)
	jane.executor = execute.New(jane.target, jane.observer, execute.Options{Name: reconciler, FieldOwner: "corbel", TypeFence: true})
	owner := plan.Owner{ID: user}
	recorded := []v1alpha1.InventoryItem{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	policy := admin.create(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: corbel-fence-` + user + `, labels: {` + strings.Replace(execute.FenceSelector(reconciler, owner), "=", ": ", 1) + `}}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], resources: [nothings], operations: [CREATE]}]}
  validations: [{expression: "false"}]`)
	d := admin.desired(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: `+policy.GetName()+`}}`, v1alpha1.UpdatePolicyReplace)
	if err := jane.executor.Sweep(t.Context(), owner, recorded); err != nil {
		t.Fatal(err)
	}
	if admin.observe(d).Existence != plan.Present {
		t.Fatal("the fence is gone, and nobody may take it down")
	}
	admin.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + user + `}
rules:
- {apiGroups: [admissionregistration.k8s.io], resources: [validatingadmissionpolicies, validatingadmissionpolicybindings], verbs: [get, list, delete]}`)
	admin.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + user + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + user + `}
subjects: [{kind: User, name: ` + user + `}]`)
	eventually(t, "the fence is taken down", func() bool {
		if err := jane.executor.Sweep(t.Context(), owner, recorded); err != nil {
			t.Fatal(err)
		}
		return admin.observe(d).Existence == plan.Absent
	})
	jane.requests()
	if err := jane.executor.Sweep(t.Context(), owner, recorded); err != nil || len(jane.requests()) > 0 {
		t.Errorf("what is known is asked again (%v)", err)
	}
}
