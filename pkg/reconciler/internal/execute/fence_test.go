// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

// A user that may not list fences now may do so later, and has to list them then.
func TestFencesAreListedUntilTheUserMayListThem(t *testing.T) {
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
	if err := jane.executor.RemoveLeftoverFences(t.Context(), owner, recorded); err != nil {
		t.Fatal(err)
	}
	if admin.observe(d).Existence != plan.Present {
		t.Fatal("the fence is gone, although the user may not remove it")
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
	eventually(t, "the fence is removed", func() bool {
		if err := jane.executor.RemoveLeftoverFences(t.Context(), owner, recorded); err != nil {
			t.Fatal(err)
		}
		return admin.observe(d).Existence == plan.Absent
	})
	jane.requests()
	if err := jane.executor.RemoveLeftoverFences(t.Context(), owner, recorded); err != nil || len(jane.requests()) > 0 {
		t.Errorf("what is known is asked again (%v)", err)
	}
}

// heedless is an empty server that stores every fence and enforces none.
// Probed is closed when the server is asked for that.
func heedless(t *testing.T) (config *rest.Config, probed chan struct{}) {
	t.Helper()
	probed = make(chan struct{})
	found := sync.OnceFunc(func() { close(probed) })
	const fences = "/apis/admissionregistration.k8s.io/v1"
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"admissionregistration.k8s.io","versions":[{"groupVersion":"admissionregistration.k8s.io/v1","version":"v1"}]}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["delete","get"]},{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["create","get","list","delete"]}]}`,
		fences: `{"kind":"APIResourceList","groupVersion":"admissionregistration.k8s.io/v1","resources":[
			{"name":"validatingadmissionpolicies","kind":"ValidatingAdmissionPolicy","verbs":["create","get","delete"]},
			{"name":"validatingadmissionpolicybindings","kind":"ValidatingAdmissionPolicyBinding","verbs":["create","get","delete"]}]}`,
		"/api/v1/namespaces/shop/configmaps": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		switch {
		case r.Method == http.MethodPost:
			if r.URL.Query().Has("dryRun") {
				found()
			}
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(strings.Replace(string(body), `"metadata":{`, `"metadata":{"uid":"u","resourceVersion":"2",`, 1)))
		case known:
			_, _ = io.WriteString(w, answer)
		default:
			name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			kind := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, fences+"/"), "/"+name)
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"`+name+`","kind":"`+kind+`","group":"admissionregistration.k8s.io"}}`)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, probed
}

func TestADeletionThatWaitsForItsFenceHoldsUpNoOtherCall(t *testing.T) {
	config, probed := heedless(t)
	b := benchOn(t, config)
	executor := execute.New(b.target, b.observer, execute.Options{Name: reconciler, FieldOwner: "corbel", TypeFence: true, Parallelism: 1})
	namespace := b.desired(`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`, v1alpha1.UpdatePolicyReplace)
	deletion := step(plan.VerbDelete, namespace, plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: "1"})
	deletion.Guard = plan.GuardEmpty
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		// As many as may be under way at all wait, and some more.
		for _, result := range executor.Run(ctx, []plan.Step{deletion, deletion, deletion, deletion, deletion, deletion}) {
			if result.Err == nil {
				t.Errorf("deleted without a fence: %+v", result)
			}
		}
	})
	<-probed
	others := make(chan []plan.Result, 1)
	group.Go(func() { others <- executor.Run(t.Context(), b.creates("shop", 0, 0)) })
	select {
	case results := <-others:
		for _, result := range results {
			if result.Err != nil {
				t.Error(result.Err)
			}
		}
	case <-time.After(15 * time.Second): // the timeout of a fence is 20
		t.Error("others wait for the fence")
	}
	cancel()
	group.Wait()
}
