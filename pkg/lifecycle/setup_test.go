// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

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
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// steady is a handler of a running manager. It counts deletions.
type steady struct{ deleted atomic.Int32 }

func (*steady) Claim(context.Context, *widget.Widget) error        { return nil }
func (*steady) UpdateStatus(context.Context, *widget.Widget) error { return nil }

func (*steady) CreateOrUpdate(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
	return result.Success, nil
}

func (s *steady) Delete(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
	s.deleted.Add(1)
	return result.Success, nil
}

// operate runs an operator until the test ends, and returns a client of a user.
func operate(t *testing.T, h lifecycle.Handler[*widget.Widget], options lifecycle.Options[*widget.Widget]) client.Client {
	t.Helper()
	e := env.Shared(t)
	installed.On(t, e, nil)
	cfg := e.Config()
	scheme := widget.Scheme()
	check.NoError(t, clientgoscheme.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	check.NoError(t, err)
	check.NoError(t, lifecycle.SetupWithManager(mgr, h, options))
	env.Run(t, mgr)
	user := check.Must(client.New(e.Config(), client.Options{Scheme: scheme}))(t)
	return user
}

// until polls the widget, which is nil when it is gone.
func until(t *testing.T, c client.Client, key client.ObjectKey, what string, is func(*widget.Widget) bool) {
	t.Helper()
	env.Until(t, what, func() error {
		w := &widget.Widget{}
		err := c.Get(t.Context(), key, w)
		if apierrors.IsNotFound(err) {
			w, err = nil, nil
		}
		check.NoError(t, err)
		if !is(w) {
			return fmt.Errorf("it is %+v", w)
		}
		if w != nil {
			conditionstest.Check(t, w)
		}
		return nil
	})
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
	check.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	var quoted string
	if quoted = "null"; value != "" {
		quoted = fmt.Sprintf("%q", value)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotation, quoted)
	check.NoError(t, c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", patch)))
}

func TestServerRequeuesTheObjectsOfANamespaceWhoseManagementPolicyChanges(t *testing.T) {
	h := &steady{}
	c := operate(t, h, lifecycle.Options[*widget.Widget]{Name: name, RequeueInterval: time.Hour})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lifecycle-", Annotations: map[string]string{policyMark: "skip"}}}
	check.NoError(t, c.Create(t.Context(), namespace))
	follows := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "follows"}}
	decides := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "decides", Annotations: map[string]string{policyMark: "manage"}}}
	for _, w := range []*widget.Widget{follows, decides} {
		check.NoError(t, c.Create(t.Context(), w))
	}
	key := client.ObjectKeyFromObject(follows)
	until(t, c, key, "rest", readyFor("Suspended"))
	until(t, c, client.ObjectKeyFromObject(decides), "Ready", readyFor("Ready"))
	for _, change := range []struct{ policy, reason string }{{"", "Ready"}, {"skip", "Suspended"}, {"manag", "SpecInvalid"}, {"detach-on-delete", "Ready"}} {
		setAnnotation(t, c, namespace, policyMark, change.policy)
		until(t, c, key, "what follows from the policy "+change.policy, readyFor(change.reason))
	}
	check.NoError(t, c.Delete(t.Context(), follows))
	until(t, c, key, "the end", func(w *widget.Widget) bool { return w == nil })
	check.SameNamed(t, "it was deleted although it was to be orphaned", 0, h.deleted.Load())
	setAnnotation(t, c, namespace, policyMark, "")
	check.NoError(t, c.Delete(t.Context(), decides))
	until(t, c, client.ObjectKeyFromObject(decides), "the end", func(w *widget.Widget) bool { return w == nil })
	check.SameNamed(t, "deletions", 1, h.deleted.Load())
}
