// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

// lead takes or renews the lease of a lock for so many seconds.
func (b *bed) lead(lock *component.LeaderLock, seconds int) {
	b.Helper()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: lock.Identity(), LeaseDurationSeconds: seconds, AcquireTime: metav1.Now(), RenewTime: metav1.Now(),
	}
	if _, _, err := lock.Get(b.Context()); err != nil {
		b.check(lock.Create(b.Context(), record))
	} else {
		b.check(lock.Update(b.Context(), record))
	}
}

func TestADeposedProcessWritesNothing(t *testing.T) {
	depositions := map[string]func(b *bed, ours, theirs *component.LeaderLock){
		"another client leads": func(b *bed, ours, theirs *component.LeaderLock) {
			b.lead(theirs, 15)
			_, _, err := ours.Get(b.Context()) // what an elector does every two seconds
			b.check(err)
		},
		"its lease is old": func(b *bed, ours, _ *component.LeaderLock) {
			b.lead(ours, 1)
			b.eventually("the lease to become old", func() error {
				if ours.Check() == nil {
					return errors.New("it is held")
				}
				return nil
			})
		},
	}
	for deposed, depose := range depositions {
		for _, during := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in the middle of a reconcile: %t", deposed, during), func(t *testing.T) {
				config := env.Shared(t).Config()
				lease := fmt.Sprintf("lease-%s", uuid.NewUUID())
				deposing := false
				ours := must(component.NewLeaderLock(config, "default", lease))(t)
				theirs := must(component.NewLeaderLock(config, "default", lease))(t)
				options := component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: ours}}
				b := newBed(t, manifests.GeneratorFunc(configMaps), options, func(b *bed) {
					b.reconciler.WithPostReadHook(func(context.Context, client.Client, *widget.Widget) error {
						if deposing {
							depose(b, ours, theirs)
							deposing = false
						}
						return nil
					})
				})
				b.lead(ours, 60)
				b.create(widget.Spec{Values: map[string]string{"changed": "1", "dropped": "1"}})
				b.until(v1alpha1.StateReady)
				b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"changed": "2", "new": "1"} })
				b.resetRequests()
				deposing = during
				if !during {
					depose(b, ours, theirs)
				}
				for range 3 {
					if result, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
						t.Errorf("the reconcile does not end quietly: %+v, %v", result, err)
					}
				}
				b.wantNoWrites("writes")
				b.lead(ours, 60)
				b.untilGeneration()
			})
		}
	}
}

func TestWhatIsRemovedIsReadAgainIfACreationMayBeUnderWay(t *testing.T) {
	const later = 76 * time.Second // longer than an API server takes for a request
	tests := []struct {
		name string
		// do is done with the component before its deletion, by the bed and a function that starts the next leader.
		do       func(b *bed, next func())
		unlocked bool
		readOnce bool
	}{
		{name: "this process has claimed the component", do: func(*bed, func()) {}},
		{name: "there is no lock", do: func(b *bed, _ func()) { b.forward += later }, unlocked: true, readOnce: true},
		{name: "another process led before", do: func(_ *bed, next func()) { next() }, readOnce: true},
		{name: "another process led a while ago", do: func(b *bed, next func()) {
			next()
			b.until(v1alpha1.StateReady)
			b.forward += later
		}},
		{name: "this process has not seen the component before", do: func(b *bed, next func()) {
			next()
			b.forward += later
		}, readOnce: true},
		{name: "a reconcile has failed", do: failOnce, readOnce: true},
		{name: "a reconcile failed a while ago", do: func(b *bed, next func()) {
			failOnce(b, next)
			b.forward += later
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			generator := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
				if p.(*widget.Spec).Values["fail"] != "" {
					return nil, errors.New("as the spec says")
				}
				return configMaps(ctx, namespace, name, p)
			})
			lease := fmt.Sprintf("lease-%s", uuid.NewUUID())
			lock := func() component.ReconcilerOptions {
				if test.unlocked {
					return component.ReconcilerOptions{}
				}
				return component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: must(component.NewLeaderLock(env.Shared(t).Config(), "default", lease))(t)}}
			}
			options := lock()
			b := newBed(t, generator, options)
			lead := func() {
				if !test.unlocked {
					b.lead(options.Controller.LeaderLock, 600)
				}
			}
			lead()
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.until(v1alpha1.StateReady)
			test.do(b, func() {
				options = lock()
				b.restartWith(generator, options)
				lead()
			})
			b.check(b.client.Delete(t.Context(), b.get()))
			b.resetRequests()
			b.untilGone()
			reads := 0
			for _, e := range b.events()[b.since:] {
				if e.User == b.user && e.Verb == "get" && e.Resource == "configmaps" {
					reads++
				}
			}
			if (reads == 1) != test.readOnce || reads > 1 {
				t.Errorf("the object was read %d times", reads)
			}
		})
	}
}

// failOnce lets a reconcile fail.
func failOnce(b *bed, _ func()) {
	b.update(func(w *widget.Widget) { w.Spec.Values["fail"] = "1" })
	if _, _, err := b.reconcile(); err == nil {
		b.Fatal("the reconcile does not fail")
	}
	b.update(func(w *widget.Widget) { delete(w.Spec.Values, "fail") })
	b.until(v1alpha1.StateReady)
}

// elected starts a process of the operator that leads only while it has the lease. The function that it returns
// ends the process, calls beforeRelease when the process works no more, and gives up the lease.
func (b *bed) elected() (manager ctrl.Manager, end func(beforeRelease func())) {
	b.Helper()
	restConfig := must(b.env.ConfigFor(b.user, "system:masters"))(b.T)
	leaderLock := must(component.NewLeaderLock(restConfig, b.namespace, "standby"))(b.T)
	lock := &heldLock{Interface: leaderLock, asked: make(chan struct{}), allowed: make(chan struct{})}
	manager = must(ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: newScheme(b.T), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true, RetryPeriod: new(200 * time.Millisecond),
	}))(b.T)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: leaderLock}})
	b.check(r.SetupWithManager(manager))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return manager, func(beforeRelease func()) {
		b.Helper()
		cancel()
		select {
		case <-lock.asked:
			func() {
				defer close(lock.allowed)
				beforeRelease()
			}()
			b.check(<-ended)
		case err := <-ended:
			b.Errorf("the process ended without a lease to give up: %v", err)
		}
	}
}

// heldLock is a lock that is given up when the test allows it.
type heldLock struct {
	resourcelock.Interface
	once           sync.Once
	asked, allowed chan struct{}
}

func (l *heldLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		l.once.Do(func() { close(l.asked) })
		<-l.allowed
	}
	return l.Interface.Update(ctx, record)
}

func TestAProcessThatStandsByBeginsWithWhatNoneHasHandled(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	_, end := b.elected()
	const others = 12 // more than are reconciled at a time, and before the edited one by name
	for i := range others {
		w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("a%d", i)}}
		b.check(b.client.Create(t.Context(), w))
	}
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.comesToBeReady()
	standby, endStandby := b.elected()
	defer endStandby(func() {})
	b.comesTo(func() (string, bool) { // it watches: edits from now on are edits for it
		seen := &metav1.PartialObjectMetadataList{}
		seen.SetGroupVersionKind(widget.GroupVersion.WithKind("WidgetList"))
		err := standby.GetClient().List(t.Context(), seen, client.InNamespace(b.namespace))
		return fmt.Sprintf("the process that stands by has seen %d components: %v", len(seen.Items), err), len(seen.Items) == others+1
	})
	if plan, _ := b.ask(b.question()); len(plan.Changes) > 0 {
		t.Errorf("the leader plans %v", changes(plan))
	}
	b.comesTo(func() (string, bool) { // the rest of the answer
		_, annotated := b.get().Annotations[previewOf]
		return "the annotation is there", annotated
	})
	select {
	case <-standby.Elected():
		t.Fatal("two processes lead")
	default:
	}
	b.resetRequests()
	end(func() {
		b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
		b.comesTo(func() (string, bool) {
			seen := &metav1.PartialObjectMetadata{} // as the controller watches it
			seen.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
			b.check(standby.GetClient().Get(t.Context(), b.key("main"), seen))
			return fmt.Sprintf("the process that stands by has seen generation %d", seen.Generation), seen.Generation == b.get().Generation
		})
	})
	if plan, _ := b.ask(b.edited("a", "3")); len(plan.Changes) != 1 {
		t.Errorf("the process that stood by plans %v", changes(plan))
	}
	b.comesToBeReady()
	if value, _ := b.configMap("a"); value != "2" {
		t.Errorf("the value is %q", value)
	}
	var read []string
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Verb == "get" && e.Resource == "widgets" && !slices.Contains(read, e.Name) {
			read = append(read, e.Name)
		}
	}
	if at := slices.Index(read, "main"); at < 0 || at >= 5 {
		t.Errorf("the component with the edit was read as number %d of %v", at+1, read)
	}
	for i := range others {
		b.check(b.client.Delete(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("a%d", i)}}))
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.comesTo(func() (string, bool) {
		list := &widget.WidgetList{}
		b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
		return fmt.Sprintf("%d components", len(list.Items)), len(list.Items) == 0
	})
}
