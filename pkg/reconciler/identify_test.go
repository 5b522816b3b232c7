// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// A record that knows its cluster by uid, and one that knows it by address, are compared
// with their like only.
func TestTheRecordedClusterIsComparedWithItsLike(t *testing.T) {
	const address = "address of the server"
	for name, tc := range map[string]struct {
		code     int // of the refusal; 0 if the uid is answered
		reason   metav1.StatusReason
		recorded types.UID
		want     types.UID // empty: refused
		refused  string
	}{
		"nothing recorded, uid answered":        {want: wire.ClusterUID},
		"nothing recorded, uid not readable":    {code: 403, reason: "Forbidden", want: address},
		"uid recorded and answered":             {recorded: wire.ClusterUID, want: wire.ClusterUID},
		"another uid recorded":                  {recorded: "elsewhere", refused: "changed"},
		"uid recorded, not answered any more":   {code: 403, reason: "Forbidden", recorded: wire.ClusterUID, refused: "changed"},
		"address recorded, uid not answered":    {code: 403, reason: "Forbidden", recorded: address, want: address},
		"address recorded, uid answered by now": {recorded: address, want: address},
		"another address, uid not answered":     {code: 403, reason: "Forbidden", recorded: "https://elsewhere:443#00", refused: "changed"},
		"another address, uid answered":         {recorded: "https://elsewhere:443#00", refused: "changed"},
		"credentials that are not known":        {code: 401, reason: "Unauthorized", refused: "unidentified"},
		"no such namespace":                     {code: 404, reason: "NotFound", refused: "unidentified"},
		"no API server":                         {code: 200, refused: "unidentified"},
		"an outage says nothing":                {code: 503, reason: "ServiceUnavailable", refused: "other"},
		"too many requests say nothing either":  {code: 429, reason: "TooManyRequests", refused: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(sent wire.Sent) (int, any) {
				switch {
				case !strings.HasSuffix(sent.Path, "/kube-system"): // it knows nothing of the object
					return http.StatusInternalServerError, wire.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, nil)
				case tc.code == 0:
					return 0, nil
				case tc.reason == "":
					return tc.code, "<html>"
				}
				return tc.code, wire.Failure(tc.code, tc.reason, nil)
			}
			target := check.Must(cluster.New(recorder.Config(), cluster.Options{ByAddress: true}))(t)
			defer target.Close()
			if tc.recorded == address {
				tc.recorded = target.Address()
			}
			if tc.want == address {
				tc.want = target.Address()
			}
			r := check.Must(reconciler.NewReconciler("corbel.example.com", reconciler.Target{Target: target}, reconciler.ReconcilerOptions{}))(t)
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
				// The cluster is that of the record.
				if changed || unidentified || outcome.Inventory.Target != tc.want {
					t.Errorf("got %v, cluster %s, want %s", err, outcome.Inventory.Target, tc.want)
				}
			} else if got != tc.refused {
				t.Errorf("got %q (%v), want %q", got, err, tc.refused)
			}
		})
	}
}
