// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"net/http"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// counted returns a client that lists its writes, by method and last part of the path.
func counted(t *testing.T, writes *[]string) client.Client {
	t.Helper()
	config := env.Shared(t).Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				*writes = append(*writes, r.Method+" "+path.Base(r.URL.Path))
			}
			return next.RoundTrip(r)
		})
	})
	c, err := client.New(config, client.Options{Scheme: widget.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestServerSeesOneWriteOfStatusInAReconcile counts the writes of whole reconciles.
func TestServerSeesOneWriteOfStatusInAReconcile(t *testing.T) {
	direct := installed.On(t, env.Shared(t), nil)
	if err := direct.Create(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	var writes []string
	c := counted(t, &writes)
	for _, tc := range []struct {
		name   string
		change func(*widget.Widget)
		commit bool
		want   []string
	}{
		{"the first outcome", func(*widget.Widget) {}, false, []string{"PATCH status"}},
		{"nothing changed", func(*widget.Widget) {}, false, nil},
		{"nothing changed, and a commit", func(*widget.Widget) {}, true, nil},
		{"conditions and the rest of the status are one write", func(w *widget.Widget) {
			w.Status.Phase, w.Status.Record = "New", []widget.Item{{Name: "pump"}}
			conditions.MarkTrue(w, "Pumped", "Pumped", "")
		}, false, []string{"PATCH status"}},
		{"a commit is one of its own", func(w *widget.Widget) { w.Status.Phase = "Working" }, true, []string{"PATCH status"}},
		{"metadata and spec are one write, too", func(w *widget.Widget) {
			w.Labels, w.Annotations, w.Spec.Size = map[string]string{"a": "b"}, map[string]string{"c": "d"}, 7
		}, false, []string{"PATCH a", "PATCH status"}}, // the generation is another one
	} {
		w := &widget.Widget{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, w); err != nil {
			t.Fatal(err)
		}
		helper, err := patch.NewHelper(w, c)
		if err != nil {
			t.Fatal(err)
		}
		writes = nil
		tc.change(w)
		if tc.commit {
			if err := helper.Commit(t.Context(), w); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
		if _, err := summarize.NewHelper(nil, helper).SummarizeAndPatch(t.Context(), w,
			summarize.WithConditions(summarize.Conditions{Target: "Ready", Owned: []string{"Ready", "Reconciling", "Stalled"}}),
			summarize.WithReconcileResult(result.Success),
			summarize.WithResultBuilder(result.AlwaysRequeueResultBuilder{RequeueAfter: time.Minute}),
		); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := cmp.Diff(tc.want, writes, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
		conditionstest.Check(t, w)
	}
}
