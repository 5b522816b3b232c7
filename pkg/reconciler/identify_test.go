// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// A record that knows its cluster by uid, and one that knows it by address, are compared
// with their like only.
func TestTheRecordedClusterIsComparedWithItsLike(t *testing.T) {
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	answered := answer(200, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"there"}}`)
	refusal := func(code int, reason string) http.HandlerFunc {
		return answer(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`, reason, code))
	}
	forbidden := refusal(403, "Forbidden")
	const address = "address of the server"
	for name, tc := range map[string]struct {
		answer   http.HandlerFunc
		recorded types.UID
		want     types.UID // empty: refused
		refused  string
	}{
		"nothing recorded, uid answered":        {answer: answered, want: "there"},
		"nothing recorded, uid not readable":    {answer: forbidden, want: address},
		"uid recorded and answered":             {answer: answered, recorded: "there", want: "there"},
		"another uid recorded":                  {answer: answered, recorded: "elsewhere", refused: "changed"},
		"uid recorded, not answered any more":   {answer: forbidden, recorded: "there", refused: "changed"},
		"address recorded, uid not answered":    {answer: forbidden, recorded: address, want: address},
		"address recorded, uid answered by now": {answer: answered, recorded: address, want: address},
		"another address, uid not answered":     {answer: forbidden, recorded: "https://elsewhere:443#00", refused: "changed"},
		"another address, uid answered":         {answer: answered, recorded: "https://elsewhere:443#00", refused: "changed"},
		"credentials that are not known":        {answer: refusal(401, "Unauthorized"), refused: "unidentified"},
		"no such namespace":                     {answer: refusal(404, "NotFound"), refused: "unidentified"},
		"no API server":                         {answer: answer(200, "<html>"), refused: "unidentified"},
		"an outage says nothing":                {answer: refusal(503, "ServiceUnavailable"), refused: "other"},
		"too many requests say nothing either":  {answer: refusal(429, "TooManyRequests"), refused: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			target, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{ByAddress: true})
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			if tc.recorded == address {
				tc.recorded = target.Address()
			}
			if tc.want == address {
				tc.want = target.Address()
			}
			r, err := reconciler.NewReconciler("corbel.example.com", reconciler.Target{Target: target}, reconciler.ReconcilerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			inventory := v1alpha1.Inventory{Format: 1, Target: tc.recorded, DeleteHooks: true, Items: []v1alpha1.InventoryItem{{Version: "v1", Kind: "ConfigMap", Name: "a", Namespace: "shop"}}}
			outcome, err := r.Delete(t.Context(), reconciler.DeleteRequest{
				Owner: reconciler.Owner{Kind: "Shop", Namespace: "shop", Name: "main"}, Inventory: inventory, SkipHooks: true,
			})
			_, changed := errors.AsType[*reconciler.TargetChangedError](err)
			_, unidentified := errors.AsType[*reconciler.UnidentifiedTargetError](err)
			got := map[bool]string{true: "other"}[err != nil]
			switch {
			case changed:
				got = "changed"
			case unidentified:
				got = "unidentified"
			}
			if tc.want != "" {
				// The server knows nothing of the object, but the cluster is that of the record.
				if changed || unidentified || outcome.Inventory.Target != tc.want {
					t.Errorf("got %v, cluster %s, want %s", err, outcome.Inventory.Target, tc.want)
				}
			} else if got != tc.refused {
				t.Errorf("got %q (%v), want %q", got, err, tc.refused)
			}
		})
	}
}
