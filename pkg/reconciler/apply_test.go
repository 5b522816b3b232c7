// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

func TestAFailingObjectHoldsBackOnlyWhatComesAfterIt(t *testing.T) {
	b := newBench(t)
	bad, worse := config("bad", "1"), config("worse", "1")
	bad.Object["data"], worse.Object["data"] = map[string]any{"not a key": "1"}, map[string]any{"not a key": "1"}
	_, err := b.apply(bad, worse, config("beside", "1"), config("before", "1", "apply-order", "-1"), config("after", "1", "apply-order", "1"))
	for _, name := range []string{"/bad", "/worse"} {
		if err == nil || !strings.Contains(err.Error(), "ConfigMap "+b.namespace+name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
	}
	if b.get("beside") == nil || b.get("before") == nil {
		t.Error("the failure held back an object beside or before it")
	}
	if b.get("after") != nil {
		t.Error("the next wave did not wait")
	}
}

func TestNoOutcomeOfACallWithAnErrorIsDone(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1", "update-policy", "recreate"))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, change := range map[string]func(*reconciler.ApplyRequest) context.Context{
		"an invalid object": func(r *reconciler.ApplyRequest) context.Context {
			r.Objects = append(r.Objects, r.Objects[0])
			return t.Context()
		},
		"no object":             func(r *reconciler.ApplyRequest) context.Context { r.Objects = nil; return t.Context() },
		"an owner without name": func(r *reconciler.ApplyRequest) context.Context { r.Owner.Name = ""; return t.Context() },
		"an unknown policy":     func(r *reconciler.ApplyRequest) context.Context { r.Policies.Update = "x"; return t.Context() },
		"a newer inventory":     func(r *reconciler.ApplyRequest) context.Context { r.Inventory.Format = 99; return t.Context() },
		"another cluster":       func(r *reconciler.ApplyRequest) context.Context { r.Inventory.Target = "x"; return t.Context() },
		"a cancelled context":   func(*reconciler.ApplyRequest) context.Context { return ended },
	} {
		request := b.request(config("a", "1", "update-policy", "recreate"))
		ctx := change(&request)
		if outcome, err := b.engine.Apply(ctx, request); err == nil || outcome.Done() {
			t.Errorf("apply with %s: %v, done: %t", name, err, outcome.Done())
		}
	}
	for name, request := range map[string]reconciler.DeleteRequest{
		"hooks that were not rendered": {Owner: b.owner(), Inventory: v1alpha1.Inventory{Items: b.inventory.Items, DeleteHooks: true}},
		"a newer inventory":            {Owner: b.owner(), Inventory: v1alpha1.Inventory{Format: v1alpha1.InventoryFormat + 1}},
		"an owner without kind":        {Owner: reconciler.Owner{Name: "main"}},
	} {
		if outcome, err := b.engine.Delete(t.Context(), request); err == nil || outcome.Done() {
			t.Errorf("delete with %s: %v, done: %t", name, err, outcome.Done())
		}
	}
	// A recreation that is cut short has deleted the object and has nothing left to wait for.
	ctx, cut := context.WithCancel(t.Context())
	happened := b.traffic.before("POST /api/v1/namespaces/"+b.namespace+"/configmaps", cut)
	if outcome, err := b.engine.Apply(ctx, b.request(config("a", "2", "update-policy", "recreate"))); err == nil || outcome.Done() || !happened() {
		t.Errorf("a cancelled recreation: %v, done: %t, waiting for %v", err, outcome.Done(), outcome.Waiting)
	}
}

func TestWhatANewerVersionRecordedSurvivesApply(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	whole, one := map[string]json.RawMessage{"shards": json.RawMessage(`["x"]`)}, map[string]json.RawMessage{"rank": json.RawMessage("7")}
	b.inventory.Unknown, b.inventory.Items[0].Unknown = whole, one
	b.mustApply(config("a", "2"))
	if got := b.get("a").Data["value"]; got != "2" {
		t.Fatalf("the object was not written: %s", got)
	}
	check.EqualNamed(t, "the inventory lost what it did not know", whole, b.inventory.Unknown)
	check.EqualNamed(t, "the item lost what it did not know", one, b.inventory.Items[0].Unknown)
}

// The namespace was looked at before, and was fine.
func TestACreateThatMeetsATerminatingNamespaceWaitsForIt(t *testing.T) {
	b := newBench(t)
	happened := b.traffic.before("POST /api/v1/namespaces/"+b.namespace+"/configmaps", func() {
		if err := b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
			t.Error(err)
		}
	})
	outcome, err := b.apply(config("a", "1"))
	if err != nil || !happened() {
		t.Fatalf("got %v, the namespace was deleted: %v", err, happened())
	}
	if len(outcome.Waiting) != 1 || outcome.Waiting[0].Reason != report.WaitNamespaceGone {
		t.Errorf("waiting for %v, want the namespace to be gone", outcome.Waiting)
	}
}

func TestAComponentDoesNotListTheObjectsOfAWholeFleetAtItsEnd(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("b", "1"), config("c", "1"))
	for i := range 100 {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprint("other-", i)}}
		check.NoError(t, b.Create(t.Context(), other))
	}
	b.traffic.requests("")
	b.mustDelete()
	path := "/api/v1/namespaces/" + b.namespace + "/configmaps"
	// Each is read once at the start and once at the end, and one page shows that there are many.
	if gets := b.traffic.requests("GET " + path); len(gets) != 7 {
		t.Errorf("%d reads: %v", len(gets), gets)
	}
}

func TestAllDigestsInAnInventoryDependOnTheDigestKey(t *testing.T) {
	b := newBench(t)
	b.interpose(t, reconciler.ReconcilerOptions{DigestKey: []byte{}})
	b.mustApply(config("a", "1"))
	plain := b.inventory.Items[0]
	if plain.Seal != "" {
		t.Errorf("sealed without a key: %+v", plain)
	}
	if plain.Digest == "" || plain.ObservedHash == "" || plain.AppliedHash == "" {
		t.Fatalf("a digest is missing: %+v", plain)
	}
	b.interpose(t, reconciler.ReconcilerOptions{DigestKey: []byte("0123456789abcdef")})
	outcome := b.mustApply(config("a", "1"))
	keyed := b.inventory.Items[0]
	if keyed.Digest == plain.Digest || keyed.ObservedHash == plain.ObservedHash || keyed.AppliedHash == plain.AppliedHash {
		t.Errorf("a digest does not depend on the key:\n%+v\n%+v", plain, keyed)
	}
	if keyed.Seal == "" {
		t.Errorf("not sealed: %+v", keyed)
	}
	if outcome = b.mustApply(config("a", "1")); len(outcome.Steps) > 0 {
		t.Errorf("steps at rest: %v", outcome.Steps)
	}
}

func TestAnUrgentCallDoesNotWaitForTheListsOfItsTypes(t *testing.T) {
	for name, test := range map[string]struct {
		objects  int
		urgent   bool
		deadline time.Duration // less than a call waits otherwise
		want     map[string]int
	}{
		"urgent":     {16, true, 5 * time.Second, map[string]int{"GET": 16, "PUT": 1}},
		"not urgent": {16, false, time.Second, map[string]int{}},
		"too many":   {17, true, time.Second, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(configs(test.objects, "1")...)
			b.interpose(t, reconciler.ReconcilerOptions{Changed: func(reconciler.Owner, reconciler.Change) {}})
			ended := make(chan struct{})
			b.traffic.before("GET /api/v1/configmaps", func() { <-ended })
			defer close(ended)
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			request := b.request(append(configs(test.objects, "1")[1:], config("c00", "2"))...)
			request.Urgent = test.urgent
			outcome, err := b.engine.Apply(ctx, request)
			if done := err == nil && outcome.Done(); done != (len(test.want) > 0) {
				t.Errorf("apply: %v, waiting for %v", err, outcome.Waiting)
			}
			sent := map[string]int{}
			for _, request := range b.traffic.requests("") {
				method, path, _ := strings.Cut(request, " ")
				if strings.Contains(path, "/configmaps") && path != "/api/v1/configmaps" {
					sent[method]++
				}
			}
			check.EqualNamed(t, "requests", test.want, sent)
		})
	}
}

func configs(n int, value string) []client.Object {
	var objects []client.Object
	for i := range n {
		objects = append(objects, config(fmt.Sprintf("c%02d", i), value))
	}
	return objects
}

// The process ends at any request of a handover. Then the component is deleted by another one, which does not know who waits.
func TestACrashInAHandoverKeepsWhatIsGivenAway(t *testing.T) {
	for name, crash := range map[string]struct {
		at       string // the first request that is not sent; empty if the record is not made durable
		recorded bool
	}{
		"before the record is durable": {},
		"before the request":           {at: "PATCH", recorded: true},
		"before the answer is used":    {at: "never", recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(config("shared", "1"), config("mine", "1"))
			b.letOtherWait()
			durable := b.inventory
			b.traffic.before(crash.at+" /api/v1/namespaces/"+b.namespace+"/configmaps/shared", func() { b.traffic.dead.Store(true) })
			request := b.request(config("mine", "1"))
			request.Record = func(_ context.Context, inventory v1alpha1.Inventory) error {
				if crash.at == "" {
					return errors.New("it has ended")
				}
				durable = inventory
				return nil
			}
			_, _ = b.engine.Apply(t.Context(), request)
			b.interpose(t, reconciler.ReconcilerOptions{})
			b.inventory = durable
			for {
				outcome := check.Must(b.delete())(t)
				if outcome.Done() {
					break
				}
			}
			if kept := b.get("shared") != nil; kept != crash.recorded || b.get("mine") != nil {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

// requestOfOther is the request of another owner, which keeps its own record.
func (b *bench) requestOfOther(objects ...client.Object) *reconciler.ApplyRequest {
	other := b.request(objects...)
	other.Owner.Name, other.Owner.UID, other.Inventory = "other", "2", v1alpha1.Inventory{}
	other.Record = func(_ context.Context, inventory v1alpha1.Inventory) error {
		other.Inventory = inventory
		return nil
	}
	return &other
}

// letOtherWait lets another owner wait for the object shared, which is ours.
func (b *bench) letOtherWait() {
	b.t.Helper()
	other := b.requestOfOther(config("shared", "2"))
	if _, err := b.engine.Apply(b.t.Context(), *other); err == nil {
		b.t.Error("the other owner adopted it")
	}
}

// Creations are confirmed unless they were just recorded. A batch may take long; a creation in one of its later stages is as dangerous
// as the first.
func TestCreationsAreConfirmedUnlessTheyWereJustRecorded(t *testing.T) {
	taken := errors.New("another process leads")
	for name, tc := range map[string]struct {
		recorded bool // the keys are on record already
		slow     bool // the first stage takes longer than a confirmation is good for; then it is refused
		want     int
	}{
		"recorded before this call": {recorded: true, want: 1},
		"recorded in this call":     {},
		"in the middle of a batch":  {slow: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var clock atomic.Int64
			b, recorder := ownsRecorded(t, reconciler.ReconcilerOptions{Now: func() time.Time { return time.Unix(3600+clock.Load(), 0) }})
			recorder.Answer = func(sent wire.Sent) (int, any) {
				if tc.slow && sent.String() == "POST /api/v1/namespaces/shop/configmaps" {
					clock.Add(6)
				}
				return 0, nil
			}
			request := b.request(config("a", "1"), parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}]}}`))
			if tc.recorded {
				request.Inventory = b.mustRecord(request)
			}
			confirmed := 0
			request.Confirm = func(context.Context) error {
				confirmed++
				if tc.slow {
					return taken
				}
				return nil
			}
			_, err := b.engine.Apply(t.Context(), request)
			_, superseded := errors.AsType[*reconciler.SupersededError](err)
			var created []string
			for _, sent := range recorder.Writes() {
				created = append(created, path.Base(sent.Path))
			}
			want := []string{"configmaps", "pods"}
			if tc.slow {
				want = want[:1]
			}
			if superseded != tc.slow || err != nil && !superseded || confirmed != tc.want || !slices.Equal(created, want) {
				t.Errorf("%v, confirmed %d times, created %v", err, confirmed, created)
			}
		})
	}
}

// What is written must be kept, or the call gives up: here the label and annotation of an
// earlier incarnation are among the fields that are never written.
func TestACallEndsIfTheServerDoesNotKeepWhatIsWritten(t *testing.T) {
	b := newBench(t)
	stubborn := config("a", "1", "ignore-fields", "/metadata/annotations")
	earlier := b.request(stubborn)
	earlier.Owner.UID = "0"
	check.NoError(t, check.ErrorOf(b.engine.Apply(t.Context(), earlier)))
	b.inventory = v1alpha1.Inventory{}
	check.Fails(t, check.ErrorOf(b.apply(stubborn)), "ConfigMap "+b.namespace+"/a", "does not keep")
}
