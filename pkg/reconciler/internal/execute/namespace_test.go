// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/wire"
)

// refusals are the answers to requests of some paths; a path with the code 0 gets no answer.
type refusals map[string]struct {
	code   int
	reason metav1.StatusReason
}

// unread returns a bench with a namespace of ours, which holds nothing that can be seen, the deletion of the namespace, and what
// was written.
func unread(t *testing.T, refused refusals) (b *bench, deletion plan.Step, writes func() []wire.Sent) {
	t.Helper()
	recorder := wire.NewRecorder()
	namespace := recorder.Put(parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: tenants, labels: {`+reconciler+`/owner-id: me}}}`))
	config := recorder.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			refusal, ok := refused[r.URL.Path]
			switch {
			case !ok:
				return next.RoundTrip(r)
			case refusal.code == 0:
				return nil, syscall.ECONNREFUSED
			}
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			answer.WriteHeader(refusal.code)
			err := json.NewEncoder(answer).Encode(wire.Failure(refusal.code, refusal.reason, nil))
			return answer.Result(), err
		})
	})
	deletion = plan.Step{
		Verb: plan.VerbDelete, Key: plan.Key{Kind: "Namespace", Name: "tenants"}, Version: "v1", UID: namespace.GetUID(),
		ResourceVersion: namespace.GetResourceVersion(), Ownership: plan.Ownership{OwnerID: "me"}, Guard: plan.GuardEmptyElseOrphan,
	}
	return benchOn(t, config), deletion, recorder.Writes
}

func TestANamespaceIsNotOrphanedBecauseItsContentCannotBeReadForAMoment(t *testing.T) {
	const (
		foos    = "/apis/example.com/v1/namespaces/tenants/foos"
		secrets = "/api/v1/namespaces/tenants/secrets"
		group   = "/apis/example.com/v1"
	)
	for name, tc := range map[string]struct {
		refused refusals
		what    string // cannot be read
		final   bool
	}{
		"503 to a list":                     {refusals{secrets: {503, "ServiceUnavailable"}}, "types that cannot be read: secrets (ServiceUnavailable)", false},
		"429 to a list":                     {refusals{secrets: {429, "TooManyRequests"}}, "types that cannot be read: secrets (TooManyRequests)", false},
		"500 to a list":                     {refusals{secrets: {500, "InternalError"}}, "types that cannot be read: secrets (InternalError)", false},
		"504 of an aggregated server":       {refusals{foos: {504, "Timeout"}}, "types that cannot be read: foos.example.com (Timeout)", false},
		"no answer of an aggregated server": {refusals{foos: {}}, "types that cannot be read: foos.example.com (its server does not answer)", false},
		"failed discovery":                  {refusals{group: {503, "ServiceUnavailable"}}, "types that cannot be read: example.com/v1 (ServiceUnavailable)", false},
		"a missing right":                   {refusals{foos: {403, "Forbidden"}}, "types that may not be listed: foos.example.com", true},
		"a missing right and an outage": {refusals{foos: {403, "Forbidden"}, secrets: {503, "ServiceUnavailable"}},
			"types that cannot be read: secrets (ServiceUnavailable); types that may not be listed: foos.example.com", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, guard := range []plan.Guard{plan.GuardEmptyElseOrphan, plan.GuardEmpty, plan.GuardKnownEmptyElseOrphan} {
				b, step, writes := unread(t, tc.refused)
				step.Guard = guard
				result := b.run(step)
				released := guard == plan.GuardKnownEmptyElseOrphan || guard == plan.GuardEmptyElseOrphan && tc.final
				if result.Err != nil || result.Orphaned != released || !result.ContentUnknown || (result.Blocked == "") != released {
					t.Fatalf("%s: got %+v", guard, result)
				}
				switch {
				case released:
					want := plan.Note{Key: step.Key, Reason: report.WarnContentUnknown, Warning: true,
						Message: "is orphaned, because it is not known whether objects of others live in it: " + tc.what}
					if len(result.Notes) != 1 || result.Notes[0] != want || len(writes()) != 1 || writes()[0].String() != "PATCH /api/v1/namespaces/tenants" {
						t.Errorf("%s: got %+v, and sent %v", guard, result.Notes, writes())
					}
				case guard == plan.GuardEmpty && result.Blocked != tc.what, guard != plan.GuardEmpty && result.Blocked != "whether objects live in it is not known: "+tc.what:
					t.Errorf("%s: got %q", guard, result.Blocked)
				case len(writes()) != 0:
					t.Errorf("%s: sent %v", guard, writes())
				}
			}
		})
	}
	b, step, writes := unread(t, nil)
	if result := b.run(step); result.Err != nil || result.Orphaned || len(writes()) != 1 {
		t.Errorf("nothing fails: got %+v, and sent %v", result, writes())
	}
	b, step, _ = unread(t, refusals{secrets: {}})
	step.Guard = plan.GuardKnownEmptyElseOrphan
	if result := b.run(step); result.Err == nil || result.Orphaned {
		t.Errorf("the server itself does not answer: got %+v", result)
	}
}
