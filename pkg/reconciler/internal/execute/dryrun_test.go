// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// What the server says to a dry run decides whether an object is deleted to be
// created again.
func TestTheAnswerToADryRunDecidesAboutARecreation(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int
		reason  string
		message string
		fails   string // what the error says; empty if the object may be recreated
		class   execute.Class
		note    string
	}{
		"it may be created":          {code: 201},
		"nothing but the name":       {code: 409, reason: "AlreadyExists", message: `configmaps "a" already exists`},
		"invalid":                    {code: 422, reason: "Invalid", message: "data[a b]: a valid config key", fails: "the live object stays, because the server refuses the new one", class: execute.Invalid},
		"immutable is no reason":     {code: 422, reason: "Invalid", message: "spec is immutable", fails: "the live object stays", class: execute.Invalid},
		"not allowed":                {code: 403, reason: "Forbidden", message: "cannot create resource", fails: "the live object stays", class: execute.Forbidden},
		"a webhook":                  {code: 400, reason: "BadRequest", message: `admission webhook "x" denied the request: no`, fails: "the live object stays", class: execute.Denied},
		"a quota":                    {code: 403, reason: "Forbidden", message: "exceeded quota: q, requested: count/configmaps=1", fails: "the quota counts it and the new object together", class: execute.Forbidden},
		"a conflict":                 {code: 409, reason: "Conflict", message: "on resourcequotas", fails: "the live object stays", class: execute.Conflict},
		"the server is busy":         {code: 503, reason: "ServiceUnavailable", message: "later", fails: "the live object stays", class: execute.Failed},
		"a webhook without dry runs": {code: 400, reason: "BadRequest", message: `admission webhook "old" does not support dry run`, note: `admission webhook "old" does not support dry run`},
	} {
		t.Run(name, func(t *testing.T) {
			b := benchOn(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.Query().Get("dryRun") != "All" {
					t.Errorf("sent %s %s", r.Method, r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				if tc.code == http.StatusCreated {
					_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"new"}}`)
					return
				}
				_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q,"details":{"causes":[{"field":"f","message":%[3]q}]}}`, tc.reason, tc.code, tc.message)
			}))
			d := b.desired(configMap("shop", "a"), v1alpha1.UpdatePolicyRecreate)
			s := step(plan.VerbDryRun, d, plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: "1"})
			result := b.run(s)
			if (result.Err != nil) != (tc.fails != "") {
				t.Fatalf("got %v", result.Err)
			}
			if err, ok := result.Err.(*execute.Error); ok && (err.Class != tc.class || !strings.Contains(err.Error(), tc.fails) || !strings.Contains(err.Error(), tc.message)) {
				t.Errorf("got %s %v", err.Class, err)
			}
			if said := fmt.Sprint(result.Notes); (len(result.Notes) > 0) != (tc.note != "") || !strings.Contains(said, tc.note) {
				t.Errorf("noted %s", said)
			}
		})
	}
}

func TestARecreationOrphansDependentsIfItsPropagationSaysSo(t *testing.T) {
	for _, tc := range []struct {
		because     plan.Reason
		propagation policy.Propagation
		want        string
	}{
		{plan.ReasonRecreate, "", "Background"},
		{plan.ReasonRecreate, policy.PropagationBackground, "Background"},
		{plan.ReasonRecreate, policy.PropagationOrphan, "Orphan"},
		{plan.ReasonPurged, policy.PropagationOrphan, "Background"},
	} {
		var body string
		b := benchOn(t, fake(t, func(w http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			body = string(sent)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"a","kind":"configmaps","uid":"u"}}`)
		}))
		d := b.desired(configMap("shop", "a"), v1alpha1.UpdatePolicyRecreate)
		d.Policies.RecreatePropagation = tc.propagation
		s := step(plan.VerbDelete, d, plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: "1"})
		s.Reason = tc.because
		if result := b.run(s); result.Err != nil || !strings.Contains(body, `"propagationPolicy":"`+tc.want+`"`) {
			t.Errorf("%s, %s: %v, sent %s", tc.because, tc.propagation, result.Err, body)
		}
	}
}
