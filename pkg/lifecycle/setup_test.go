// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
	"github.com/corbel-run/corbel/test/wire"
)

func init() { ctrl.SetLogger(logr.Discard()) }

// steady is a handler of a running manager: it commits what it is about to do.
type steady struct {
	mu         sync.Mutex
	reconciles int
	deleted    int
	fail       error
}

func (*steady) Claim(context.Context, *widget.Widget) error        { return nil }
func (*steady) UpdateStatus(context.Context, *widget.Widget) error { return nil }

func (s *steady) CreateOrUpdate(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciles++
	w.Status.Record = []widget.Item{{Name: fmt.Sprint(w.Spec.Size)}}
	if err := commit(ctx); err != nil {
		return result.Empty, err
	}
	w.Status.Phase = "Done"
	return result.Success, s.fail
}

func (s *steady) Delete(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted++
	return result.Success, nil
}

func (s *steady) done() (reconciles, deleted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconciles, s.deleted
}

// writes are the writes of the operator to widgets.
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/widgets") {
			what := "main"
			if strings.HasSuffix(r.URL.Path, "/status") {
				what = "status"
			}
			w.mu.Lock()
			w.list = append(w.list, what)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.list
	w.list = nil
	return taken
}

// operate runs an operator until the test ends, and returns a client of a user.
func operate(t *testing.T, h lifecycle.Handler[*widget.Widget], options lifecycle.Options[*widget.Widget], sent *writes) client.Client {
	t.Helper()
	e := env.Shared(t)
	installed.On(t, e, nil)
	cfg := e.Config()
	cfg.Wrap(sent.wrap)
	scheme := widget.Scheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.SetupWithManager(mgr, h, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	user, err := client.New(e.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// until polls the widget.
func until(t *testing.T, c client.Client, key client.ObjectKey, what string, is func(*widget.Widget) bool) *widget.Widget {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		w := &widget.Widget{}
		err := c.Get(t.Context(), key, w)
		if apierrors.IsNotFound(err) {
			w, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if is(w) {
			if w != nil {
				conditionstest.Check(t, w)
			}
			return w
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain: %+v", what, w)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func readyFor(reason string) func(*widget.Widget) bool {
	return func(w *widget.Widget) bool {
		ready := conditions.Get(w, "Ready")
		return ready != nil && ready.Reason == reason && ready.ObservedGeneration == w.Generation
	}
}

// setAnnotation changes an annotation of any object; empty means to remove it.
func setAnnotation(t *testing.T, c client.Client, obj client.Object, annotation, value string) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	var quoted string
	if quoted = "null"; value != "" {
		quoted = fmt.Sprintf("%q", value)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotation, quoted)
	if err := c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

func TestServerSeesAtMostOneStatusWriteForEachReconcileBesideItsCommits(t *testing.T) {
	h, sent := &steady{}, &writes{}
	c := operate(t, h, lifecycle.Options[*widget.Widget]{Name: name, RequeueInterval: 300 * time.Millisecond}, sent)
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "counted"}, Spec: widget.Spec{Size: 5}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(w)
	until(t, c, key, "Ready", readyFor("Ready"))
	if diff := cmp.Diff([]string{"main", "status", "status"}, sent.take()); diff != "" {
		t.Errorf("the first reconcile: claim, Commit and outcome (-want +got):\n%s", diff)
	}
	before, _ := h.done()
	until(t, c, key, "three reconciles more", func(*widget.Widget) bool { reconciles, _ := h.done(); return reconciles >= before+3 })
	if list := sent.take(); len(list) != 0 {
		t.Errorf("reconciles without a change wrote %v", list)
	}
	if err := c.Get(t.Context(), key, w); err != nil {
		t.Fatal(err)
	}
	w.Spec.Size = 6
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	until(t, c, key, "the new generation", func(w *widget.Widget) bool { return w.Status.ObservedGeneration == w.Generation })
	if diff := cmp.Diff([]string{"status", "status"}, sent.take()); diff != "" {
		t.Errorf("a change: Commit and outcome (-want +got):\n%s", diff)
	}
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	until(t, c, key, "the end", func(w *widget.Widget) bool { return w == nil })
	if diff := cmp.Diff([]string{"main"}, sent.take()); diff != "" {
		t.Errorf("the deletion (-want +got):\n%s", diff)
	}
}

func TestServerRequeuesTheObjectsOfANamespaceWhoseManagementPolicyChanges(t *testing.T) {
	h, sent := &steady{}, &writes{}
	c := operate(t, h, lifecycle.Options[*widget.Widget]{Name: name, RequeueInterval: time.Hour}, sent)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lifecycle-", Annotations: map[string]string{policyMark: "skip"}}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	follows := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "follows"}}
	decides := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "decides", Annotations: map[string]string{policyMark: "manage"}}}
	for _, w := range []*widget.Widget{follows, decides} {
		if err := c.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKeyFromObject(follows)
	until(t, c, key, "rest", readyFor("Suspended"))
	until(t, c, client.ObjectKeyFromObject(decides), "Ready", readyFor("Ready"))
	for _, change := range []struct{ policy, reason string }{{"", "Ready"}, {"skip", "Suspended"}, {"manag", "SpecInvalid"}, {"detach-on-delete", "Ready"}} {
		setAnnotation(t, c, namespace, policyMark, change.policy)
		until(t, c, key, "what follows from the policy "+change.policy, readyFor(change.reason))
	}
	if err := c.Delete(t.Context(), follows); err != nil {
		t.Fatal(err)
	}
	until(t, c, key, "the end", func(w *widget.Widget) bool { return w == nil })
	if _, deleted := h.done(); deleted != 0 {
		t.Error("it was deleted although it was to be orphaned")
	}
	setAnnotation(t, c, namespace, policyMark, "")
	if err := c.Delete(t.Context(), decides); err != nil {
		t.Fatal(err)
	}
	until(t, c, client.ObjectKeyFromObject(decides), "the end", func(w *widget.Widget) bool { return w == nil })
	if _, deleted := h.done(); deleted != 1 {
		t.Errorf("%d deletions", deleted)
	}
}

func TestSetupMistakesAreErrors(t *testing.T) {
	type options = lifecycle.Options[*widget.Widget]
	if err := lifecycle.SetupWithManager(nil, &handler{}, options{}); err == nil || !strings.Contains(err.Error(), "the manager is nil") {
		t.Errorf("error %v", err)
	}
	if err := lifecycle.SetupWithManagerAndBuilder(nil, nil, &handler{}, options{}); err == nil || !strings.Contains(err.Error(), "the manager or the builder is nil") {
		t.Errorf("error %v", err)
	}
}
