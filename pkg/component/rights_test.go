// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestMissingRightsAreLoggedOnce(t *testing.T) {
	denied := &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}
	missing := rights.Missing{{Namespace: "shop", Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}},
	}}}
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	log := &logLines{}
	ctx, obj := logf.IntoContext(t.Context(), log.logger()), newWidget()
	// Rights that are held, and missing again, are named again.
	for i, want := range []int{1, 1, 1, 2} {
		engine.outcome, engine.err = reconciler.Outcome{Total: 1, Missing: missing}, denied
		if i == 2 {
			engine.outcome, engine.err = reconciler.Outcome{Total: 1, Settled: 1}, nil
		}
		if _, err := h.applier.createOrUpdate(ctx, obj, func(context.Context) error { return nil }); (err == nil) != (engine.err == nil) {
			t.Fatal(err)
		}
		named := 0
		for _, line := range log.lines {
			if strings.Contains(line, "rights are missing") && strings.Contains(line, "in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [delete]}]") {
				named++
			}
		}
		if named != want {
			t.Errorf("reconcile %d: log: %q", i, log.lines)
		}
	}
}

func TestAConditionNamesAsManyRulesAsFitAndTheLogAll(t *testing.T) {
	scope := rights.Missing{{Namespace: "shop"}}
	for i := range 60 {
		scope[0].Rules = append(scope[0].Rules, rbacv1.PolicyRule{APIGroups: []string{fmt.Sprintf("group-%02d.example.com", i)}, Resources: []string{"things"}, Verbs: []string{"get", "create"}})
	}
	denied := errors.Join(&reconciler.ForbiddenError{Object: "Thing shop/a", Message: "no"}, types.NewRetriableError(errors.New("a reference is missing"), nil))
	h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 60, Missing: scope}, err: denied})
	log := &logLines{}
	ctx := logf.IntoContext(t.Context(), log.logger())
	obj := newWidget()
	_, err := h.applier.createOrUpdate(ctx, obj, func(context.Context) error { return nil })
	_ = h.report(ctx, obj, session.Outcome{Phase: session.PhaseApply, Err: err})
	state, reason, message := obj.GetStatus().GetState()
	if state != v1alpha1.StateError || reason != vocabulary.ReasonForbidden {
		t.Errorf("%s, %s", state, reason)
	}
	for _, text := range []string{"60 rules, all of which are in the log of the operator: in namespace shop rules: [", "Thing shop/a: no"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message lacks %q: %s", text, message)
		}
	}
	if len(message) > 1024 || !strings.Contains(log.lines[0], "group-59.example.com") {
		t.Errorf("%d bytes: %s\nlog: %q", len(message), message, log.lines)
	}
}

func TestTheTimeoutPausesWhileARightIsMissing(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj := newWidget()
	start := h.now()
	report := func(after time.Duration, err error) (v1alpha1.State, string) {
		t.Helper()
		h.now = func() time.Time { return start.Add(after) }
		_ = h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseApply, Err: err})
		state, reason, _ := obj.GetStatus().GetState()
		return state, reason
	}
	timeout := intervalsOf(obj).Timeout
	waiting := &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: "Deployment shop/api: 0 of 1 updated", Fallback: time.Minute}}
	forbidden := &reconciler.ForbiddenError{Object: "Deployment shop/api", Message: "no"}
	for i, step := range []struct {
		after  time.Duration
		err    error
		reason string
	}{
		{0, waiting, vocabulary.ReasonProcessing},
		{timeout / 2, forbidden, vocabulary.ReasonForbidden},
		{3 * timeout, &verdict.UnfinishedError{Facts: verdict.Facts{Err: forbidden, Fallback: time.Minute}, Cause: forbidden}, vocabulary.ReasonForbidden},
		{3*timeout + time.Second, waiting, vocabulary.ReasonProcessing},
		{3*timeout + 2*time.Second, forbidden, vocabulary.ReasonForbidden},
		{3*timeout + 3*time.Second, waiting, vocabulary.ReasonProcessing},
		{3*timeout + timeout/2 + 2*time.Second, waiting, vocabulary.ReasonTimeout},
	} {
		if state, reason := report(step.after, step.err); reason != step.reason {
			t.Errorf("step %d: %s, %s; want %s", i, state, reason, step.reason)
		}
	}
}

func TestAForbiddenImpersonationNamesTheAccountAndTheRule(t *testing.T) {
	const answer = `User "op" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`
	for name, c := range map[string]struct{ account, answer, want string }{
		"a service account": {account: "deployer", answer: answer,
			want: `the operator cannot impersonate ServiceAccount shop/deployer, which the component names (serviceAccountName) or the option DefaultServiceAccount; ` +
				`it lacks rights: in namespace shop rules: [{apiGroups: [''], resources: [serviceaccounts], resourceNames: [deployer], verbs: [impersonate]}]; generator: `},
		"another right":    {account: "deployer", answer: `User "op" cannot get path "/version"`},
		"no impersonation": {answer: answer},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			obj.Namespace, obj.Spec.ServiceAccountName = "shop", c.account
			err := fmt.Errorf("generator: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, c.account, errors.New(c.answer)))
			_ = h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseApply, Err: err})
			_, reason, message := obj.GetStatus().GetState()
			if reason != vocabulary.ReasonForbidden || !strings.HasPrefix(message, c.want) || !strings.Contains(message, c.answer) {
				t.Errorf("%s: %s", reason, message)
			}
			if c.want == "" && strings.Contains(message, "lacks rights") {
				t.Errorf("names rights: %s", message)
			}
		})
	}
}
