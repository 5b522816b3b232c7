// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// oneAtATime is the option of the operators that roll out.
var oneAtATime = &component.Rollout{MaxUnavailable: intstr.FromInt32(1)}

// upgradable renders the manifests of a Bundle. Its second version writes "second" for "first".
type upgradable struct{ *fixture }

func (u upgradable) Digest() string {
	if u.upgraded.Load() {
		return "second"
	}
	return "first"
}

func (u upgradable) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	text := valueOf(parameters, "manifests")
	if u.upgraded.Load() {
		text = strings.ReplaceAll(text, "first", "second")
	}
	return bundleManifests(ctx, namespace, name, values{"manifests": text})
}

// upgrade makes the operators, and their successors, those of the second version.
func upgrade(t testing.TB, f *fixture) {
	t.Helper()
	f.upgraded.Store(true)
	f.reconcileAll(t)
}

// reconcileAll asks for a reconcile of all Bundles, as the start of an operator does.
func (f *fixture) reconcileAll(t testing.TB) {
	t.Helper()
	list := &BundleList{}
	if err := f.List(t.Context(), list, client.InNamespace(f.namespace)); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"%s/%s":"%s"}}}`, reconcilerName, vocabulary.AnnotationReconcileAt, time.Now().UTC().Format(time.RFC3339Nano))
	for i := range list.Items {
		if err := f.Patch(t.Context(), &list.Items[i], client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
}

// watchRollout expects, until it ends, that no more components are unavailable at the same time than may be.
func (f *fixture) watchRollout(t testing.TB) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			list, unavailable := &BundleList{}, []string{}
			if err := f.List(ctx, list, client.InNamespace(f.namespace)); err == nil {
				for i := range list.Items {
					history := list.Items[i].Status.History
					if len(history) > 1 && history[0].Generator != history[1].Generator && history[0].Result != v1alpha1.RevisionReady {
						unavailable = append(unavailable, list.Items[i].Name)
					}
				}
			}
			if len(unavailable) > 1 {
				t.Errorf("these are unavailable at the same time: %v", unavailable)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// fleetOf are the manifests of three components.
func fleetOf(version string, annotations ...string) map[string][]string {
	return map[string][]string{
		"main":  {configMap("a", version, annotations...)},
		"other": {configMap("b", version), configMap("c", version, "apply-order", "1")},
		"third": {configMap("d", version)},
	}
}

var ownedByFleet = []string{"ConfigMap $NS/a", "ConfigMap $NS/b", "ConfigMap $NS/c", "ConfigMap $NS/d"}

// rolloutScenarios are upgrades of an operator with several components.
var rolloutScenarios = []*scenario{
	{
		name:      "roll out another version",
		rollsOut:  true,
		installed: fleetOf("first"),
		desired:   fleetOf("second"),
		act:       upgrade,
		history:   upgraded.history,
		owned:     ownedByFleet,
	},
	{
		name:      "roll out a version that breaks",
		rollsOut:  true,
		installed: fleetOf("first", "ready-when", "self.data.version.startsWith('f')"),
		settings:  func(_ string, spec *BundleSpec) { spec.Timeout = &types.Duration{Duration: 2 * time.Second} },
		desired: map[string][]string{
			"main": {configMap("a", "second")}, "other": fleetOf("first")["other"], "third": fleetOf("first")["third"],
		},
		act:   upgrade,
		ends:  map[string]string{"main": vocabulary.ReasonTimeout},
		owned: ownedByFleet,
	},
}

// TestTwoLeadersOfARollout lets an operator stand still before every request of a roll-out, while another
// one is elected and brings the roll-out to its end. Never are more components unavailable than may be.
func TestTwoLeadersOfARollout(t *testing.T) {
	t.Parallel()
	stopAtEachRequest(t, 0, nil, func(t *testing.T, b *barrier, _ *watchFault) int { return rolloutScenarios[0].playTwoLeaders(t, b) })
}

// playTwoLeaders returns the number of requests of the first operator.
func (s *scenario) playTwoLeaders(t *testing.T, b *barrier) int {
	t.Helper()
	f := newFixture(t)
	newCast(t, f, f.objects(t, s.texts()))
	f.rollout, f.mayBeIdle = oneAtATime, true
	one := f.startWith(t, s.generator(t, f), func(next http.RoundTripper) http.RoundTripper { return b.wrap(next) })
	s.prepare(t, f)
	defer f.watchRollout(t)()
	b.arm()
	s.proceed(t, f)
	eventually(t, "the first operator to stop or to be done", func(ctx context.Context) error {
		if b.isDown() {
			return nil
		}
		return s.isRolledOut(ctx, f)
	})
	total := b.requests()
	two := f.startWith(t, s.generator(t, f), nil)
	defer two.stop(t)
	eventually(t, "the end of the roll-out", func(ctx context.Context) error { return s.isRolledOut(ctx, f) })
	close(b.resume)
	b.await(t)
	one.stop(t)
	f.reconcileAll(t)
	eventually(t, "the roll-out to stay at its end", func(ctx context.Context) error {
		return errors.Join(s.isRolledOut(ctx, f), s.content(ctx, t, f))
	})
	return total
}

// isRolledOut returns an error as long as a component has not exactly one revision of the second version, which is ready.
func (s *scenario) isRolledOut(ctx context.Context, f *fixture) error {
	for _, name := range s.names() {
		bundle := f.named(name)
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if got := historyOf(bundle); !bundle.Status.IsReady() || strings.Join(got, ", ") != strings.Join(s.history, ", ") {
			_, reason, message := bundle.Status.GetState()
			return fmt.Errorf("component %s: %q, %s: %s", name, got, reason, message)
		}
	}
	return nil
}
