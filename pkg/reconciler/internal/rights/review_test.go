// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// authority answers reviews: what it lists, and what it allows without listing it.
type authority struct {
	mu      sync.Mutex
	listed  map[string][]authorizationv1.ResourceRule // by namespace
	allowed map[string]bool                           // verb resource name
	broken  bool
	// complete: what is listed is all.
	complete bool
	asked    []string
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if a.broken {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
		return
	}
	w.WriteHeader(http.StatusCreated)
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" {
		var review authorizationv1.SelfSubjectRulesReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a.asked = append(a.asked, "list "+review.Spec.Namespace)
		review.Status.ResourceRules = slices.Concat(a.listed[""], a.listed[review.Spec.Namespace])
		review.Status.Incomplete = !a.complete
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	var review authorizationv1.SelfSubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	asked := fmt.Sprintf("%s %s %s", review.Spec.ResourceAttributes.Verb, review.Spec.ResourceAttributes.Resource, review.Spec.ResourceAttributes.Name)
	a.asked = append(a.asked, "may "+asked)
	review.Status.Allowed = a.allowed[asked]
	_ = json.NewEncoder(w).Encode(review)
}

func (a *authority) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	slices.Sort(asked)
	return asked
}

func TestOnlyWhatIsNotKnownIsAsked(t *testing.T) {
	rule := func(resource string, names []string, verbs ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	a := &authority{allowed: map[string]bool{}, listed: map[string][]authorizationv1.ResourceRule{
		"": {rule("services", nil, "*")}, "shop": {rule("pods", nil, "get"), rule("secrets", []string{"one"}, "get")},
	}}
	server := httptest.NewServer(a)
	defer server.Close()
	target, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	now := time.Unix(1000, 0)
	reviewer := NewReviewer(target.Objects(), func() time.Time { return now })
	need := func(namespace, resource, verb string, required bool) Needs {
		right := Right{Resource: resource, Namespace: namespace, Verb: verb}
		names := Right{Resource: resource, Namespace: namespace}
		return Needs{Rights: map[Right]bool{right: required}, Names: map[Right][]string{names: {"one", "two"}}}
	}
	grant := Needs{Grants: []Grant{{
		Right: Right{Group: rbacv1.GroupName, Resource: "roles", Namespace: "shop", Verb: "escalate", Name: "x"}, Namespace: "shop",
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}}}
	steps := []struct {
		name    string
		needs   Needs
		refused bool
		after   time.Duration
		asked   []string
		missing string
	}{
		{name: "what holds everywhere takes one request", needs: need("shop", "services", "get", true), asked: []string{"list -"}},
		{name: "and none in another namespace", needs: need("other", "services", "get", true)},
		{name: "what holds in the namespace takes two", needs: need("shop", "pods", "get", true), asked: []string{"list -", "list shop"}},
		{name: "then none", needs: need("shop", "pods", "get", true)},
		{name: "what is not listed is asked", needs: need("shop", "pods", "create", true), asked: []string{"list -", "list shop", "may create pods "},
			missing: `in namespace shop rules: [{apiGroups: [''], resources: [pods], verbs: [create]}]`},
		{name: "a denial is remembered", needs: need("shop", "pods", "create", true),
			missing: `in namespace shop rules: [{apiGroups: [''], resources: [pods], verbs: [create]}]`},
		{name: "for a second", after: 2 * time.Second, needs: need("shop", "pods", "create", true), asked: []string{"list -", "list shop", "may create pods "},
			missing: `in namespace shop rules: [{apiGroups: [''], resources: [pods], verbs: [create]}]`},
		{name: "what was refused is asked again", refused: true, after: 10 * time.Second, needs: need("shop", "services", "get", true), asked: []string{"list -"}},
		{name: "a right to some objects only", needs: need("shop", "secrets", "get", true), asked: []string{"list -", "list shop", "may get secrets two"},
			missing: `in namespace shop rules: [{apiGroups: [''], resources: [secrets], resourceNames: [two], verbs: [get]}]`},
		{name: "what nothing fails without is not named alone", needs: need("shop", "pods", "watch", false), asked: []string{"list -", "list shop", "may watch pods "}},
		{name: "a role with rules that are held", needs: grant, asked: []string{"list -", "list shop"}},
	}
	for _, step := range steps {
		now = now.Add(step.after)
		missing, err := reviewer.Missing(t.Context(), step.needs, step.refused)
		if got := missing.String(); err != nil || got != step.missing {
			t.Errorf("%s: %v; missing %s", step.name, err, got)
		}
		if got := a.take(); !slices.Equal(got, step.asked) {
			t.Errorf("%s: asked %q, want %q", step.name, got, step.asked)
		}
	}
	grant.Grants[0].Rules[0].Verbs = []string{"delete"}
	grant.Grants[0].Right.Name = "other"
	if missing, err := reviewer.Missing(t.Context(), grant, false); err != nil ||
		missing.String() != `in namespace shop rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}]` {
		t.Errorf("%v; missing %s", err, missing)
	}
	// What was denied and is granted now is not reported.
	a.allowed["create pods "], now = true, now.Add(2*time.Second)
	if missing, err := reviewer.Missing(t.Context(), need("shop", "pods", "create", true), false); err != nil || missing.Count() > 0 {
		t.Errorf("a right that was granted since: %v; missing %s", err, missing)
	}
	a.complete = true
	_ = a.take()
	missing, err := reviewer.Missing(t.Context(), need("shop", "pods", "patch", true), false)
	if got, want := missing.String(), `in namespace shop rules: [{apiGroups: [''], resources: [pods], verbs: [patch]}]`; err != nil || got != want {
		t.Errorf("a complete list: %v; missing %s", err, got)
	}
	if got := a.take(); !slices.Equal(got, []string{"list -", "list shop"}) {
		t.Errorf("a complete list: asked %q", got)
	}
	a.broken = true
	if missing, err := reviewer.Missing(t.Context(), need("third", "pods", "get", true), false); err == nil || missing.Count() > 0 {
		t.Errorf("a server that answers no review: %v; missing %s", err, missing)
	}
}

func TestTheAnswersThatAreRememberedAreBounded(t *testing.T) {
	r := NewReviewer(nil, time.Now)
	for i := range 2*maxKnown + 1 {
		right := Right{Resource: "configmaps", Namespace: fmt.Sprint("shop-", i), Verb: "get"}
		r.remember(right, true)
		if allowed, known := r.known(right, false); !allowed || !known || len(r.answers) > maxKnown {
			t.Fatalf("after %d answers %d are remembered, the last one: %v", i+1, len(r.answers), known)
		}
	}
}
