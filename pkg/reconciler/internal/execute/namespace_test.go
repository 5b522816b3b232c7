// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/wire"
)

// unreadServer serves ConfigMaps, Secrets, and Widgets of an aggregated server. The
// namespace tenants is ours and holds nothing that can be seen. Some requests are
// answered by the function instead, which returns whether it did; those of the path
// down get no answer.
func unreadServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool, down string) (b *bench, writes func() []string) {
	t.Helper()
	namespace := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"tenants","uid":"u1","resourceVersion":"7","labels":{"%[1]s/owner-id":"me"}}}`, reconciler)
	const list = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9"},"items":[]}`
	resource := func(name, kind string, namespaced bool) string {
		return fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":%v,"verbs":["delete","get","list","patch"]}`, name, kind, namespaced)
	}
	answers := map[string]string{
		"GET /api":                 `{"kind":"APIVersions","versions":["v1"]}`,
		"GET /apis":                `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`,
		"GET /api/v1":              `{"kind":"APIResourceList","groupVersion":"v1","resources":[` + resource("namespaces", "Namespace", false) + "," + resource("configmaps", "ConfigMap", true) + "," + resource("secrets", "Secret", true) + `]}`,
		"GET /apis/example.com/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[` + resource("widgets", "Widget", true) + `]}`,
		"GET /api/v1/namespaces/tenants/configmaps":           list,
		"GET /api/v1/namespaces/tenants/secrets":              list,
		"GET /apis/example.com/v1/namespaces/tenants/widgets": list,
		"GET /api/v1/namespaces/tenants":                      namespace,
		"PATCH /api/v1/namespaces/tenants":                    namespace,
		"DELETE /api/v1/namespaces/tenants":                   `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"tenants","kind":"namespaces","uid":"u1"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer(w, r) {
			return
		}
		text, known := answers[r.Method+" "+r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == down {
				return nil, syscall.ECONNREFUSED
			}
			return next.RoundTrip(r)
		})
	})
	b = benchOn(t, config)
	return b, func() []string {
		return slices.DeleteFunc(slices.Clone(b.sent), func(request string) bool { return request[:4] == "GET " })
	}
}

func nothing(http.ResponseWriter, *http.Request) bool { return false }

// refusal answers requests of a path with a failure.
func refusal(path string, code int, reason string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
		return true
	}
}

func TestANamespaceIsNotOrphanedBecauseItsContentCannotBeReadForAMoment(t *testing.T) {
	const (
		widgets = "/apis/example.com/v1/namespaces/tenants/widgets"
		secrets = "/api/v1/namespaces/tenants/secrets"
		group   = "/apis/example.com/v1"
	)
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		down   string
		what   string // cannot be read
		final  bool
	}{
		"503 to a list":                     {answer: refusal(secrets, 503, "ServiceUnavailable"), what: "types that cannot be read: secrets (ServiceUnavailable)"},
		"429 to a list":                     {answer: refusal(secrets, 429, "TooManyRequests"), what: "types that cannot be read: secrets (TooManyRequests)"},
		"500 to a list":                     {answer: refusal(secrets, 500, "InternalError"), what: "types that cannot be read: secrets (InternalError)"},
		"504 of an aggregated server":       {answer: refusal(widgets, 504, "Timeout"), what: "types that cannot be read: widgets.example.com (Timeout)"},
		"no answer of an aggregated server": {answer: nothing, down: widgets, what: "types that cannot be read: widgets.example.com (its server does not answer)"},
		"failed discovery":                  {answer: refusal(group, 503, "ServiceUnavailable"), what: "types that cannot be read: example.com/v1 (ServiceUnavailable)"},
		"a missing right":                   {answer: refusal(widgets, 403, "Forbidden"), what: "types that may not be listed: widgets.example.com", final: true},
		"a missing right and an outage": {answer: func(w http.ResponseWriter, r *http.Request) bool {
			return refusal(widgets, 403, "Forbidden")(w, r) || refusal(secrets, 503, "ServiceUnavailable")(w, r)
		}, what: "types that cannot be read: secrets (ServiceUnavailable); types that may not be listed: widgets.example.com", final: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, writes := unreadServer(t, tc.answer, tc.down)
			step := plan.Step{Verb: plan.VerbDelete, Key: plan.Key{Kind: "Namespace", Name: "tenants"}, Version: "v1",
				UID: "u1", ResourceVersion: "7", Ownership: plan.Ownership{OwnerID: "me"}, Guard: plan.GuardEmptyElseOrphan}
			for _, guard := range []plan.Guard{plan.GuardEmptyElseOrphan, plan.GuardEmpty, plan.GuardKnownEmptyElseOrphan} {
				step.Guard = guard
				b.sent = nil
				result := b.run(step)
				released := guard == plan.GuardKnownEmptyElseOrphan || guard == plan.GuardEmptyElseOrphan && tc.final
				if result.Err != nil || result.Orphaned != released || !result.ContentUnknown || (result.Blocked == "") != released {
					t.Fatalf("%s: got %+v", guard, result)
				}
				switch {
				case released:
					want := plan.Note{Key: step.Key, Reason: report.WarnContentUnknown, Warning: true,
						Message: "is orphaned, because it is not known whether objects of others live in it: " + tc.what}
					if len(result.Notes) != 1 || result.Notes[0] != want || len(writes()) != 1 || writes()[0] != "PATCH /api/v1/namespaces/tenants" {
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
	t.Run("nothing fails", func(t *testing.T) {
		b, writes := unreadServer(t, nothing, "")
		result := b.run(plan.Step{Verb: plan.VerbDelete, Key: plan.Key{Kind: "Namespace", Name: "tenants"}, Version: "v1",
			UID: "u1", ResourceVersion: "7", Ownership: plan.Ownership{OwnerID: "me"}, Guard: plan.GuardEmptyElseOrphan})
		if result.Err != nil || result.Orphaned || len(writes()) != 1 {
			t.Errorf("got %+v, and sent %v", result, writes())
		}
	})
	t.Run("the server itself does not answer", func(t *testing.T) {
		b, _ := unreadServer(t, nothing, secrets)
		result := b.run(plan.Step{Verb: plan.VerbDelete, Key: plan.Key{Kind: "Namespace", Name: "tenants"}, Version: "v1",
			UID: "u1", ResourceVersion: "7", Ownership: plan.Ownership{OwnerID: "me"}, Guard: plan.GuardKnownEmptyElseOrphan})
		if result.Err == nil || result.Orphaned {
			t.Errorf("got %+v", result)
		}
	})
}
