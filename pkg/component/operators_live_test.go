// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

const secondName = "second.corbel.run"

// second returns a bed of the same component for an operator of another name.
func (b *bed) second(options component.ReconcilerOptions, wrap func(http.RoundTripper) http.RoundTripper) *bed {
	b.Helper()
	second := *b
	second.user += "-second"
	second.reconciler = component.NewReconciler[*widget.Widget](secondName, manifests.GeneratorFunc(configMaps), options)
	smallStatus(&second)
	b.check(second.reconciler.SetupWithManager(newManager(b.T, b.env, second.user, wrap)))
	second.resetRequests()
	return &second
}

func TestAnOperatorOfAnotherNameLeavesAClaimedComponentAlone(t *testing.T) {
	shared := "widgets.corbel.run/finalizer"
	for name, test := range map[string]struct {
		first, second component.ReconcilerOptions
	}{
		"with finalizers of their own": {},
		"with one finalizer":           {component.ReconcilerOptions{Finalizer: &shared}, component.ReconcilerOptions{Finalizer: &shared}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: map[string]string{"a": "1", "b": "1"}}, test.first)
			second := b.second(test.second, nil)
			second.reconcile()
			b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
			before := b.get()
			for range 2 {
				if _, result, err := second.reconcile(); !result.IsZero() || err != nil {
					t.Errorf("%+v, %v", result, err)
				}
			}
			if diff := cmp.Diff(before, b.get()); diff != "" || len(second.writes()) > 0 {
				t.Errorf("the second operator wrote %v (-before +after):\n%s", second.writes(), diff)
			}
			b.wantEvent(vocabulary.ReasonOwnerConflict, "operator "+operatorName+" has claimed it")
			b.wantEvent(vocabulary.ReasonOwnerConflict, "operator "+secondName+" leaves it alone")
			b.until(v1alpha1.StateReady)
			b.check(b.client.Delete(t.Context(), b.get()))
			second.reconcile()
			b.untilGone()
			b.wantNone("a", "b")
		})
	}
}

// The first operator is faster, after the second one has added its finalizer to the new component.
func TestOfTwoOperatorsThatClaimAComponentAtOnceOneLeavesIt(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	var once sync.Once
	second := b.second(component.ReconcilerOptions{}, func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/widgets/main/status") {
				once.Do(func() { b.until(v1alpha1.StateReady) })
			}
			return next.RoundTrip(r)
		})
	})
	second.reconcile()
	if got := b.get(); !slices.Contains(got.Finalizers, secondName) || got.Status.Reconciler != operatorName {
		t.Fatalf("finalizers %v, reconciler %s", got.Finalizers, got.Status.Reconciler)
	}
	second.reconcile()
	if got := b.get().Finalizers; !slices.Equal(got, []string{operatorName}) {
		t.Errorf("finalizers %v", got)
	}
	b.remove()
}

func TestARenamedOperatorTakesOverItsComponents(t *testing.T) {
	for name, test := range map[string]struct {
		values    map[string]string
		annotated bool
		update    component.ReconcilerOptions
		writes    int // of each object that changes hands; 0 means 1
	}{
		"by the annotation":             {values: many(0, 3), annotated: true},
		"by the option":                 {values: many(0, 3)},
		"with the inventory in Secrets": {values: many(0, 30), annotated: true},
		"with server-side apply":        {values: many(0, 3), annotated: true, update: component.ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicySsaMerge)}, writes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: test.values}, test.update, smallStatus)
			options := test.update
			if !test.annotated {
				options.Operator.AdoptOperator = operatorName
			}
			second := b.second(options, nil)
			if test.annotated {
				second.reconcile()
				b.annotate(map[string]string{secondName + "/adopt-operator": operatorName})
			}
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			second.until(v1alpha1.StateReady)
			if w := b.get(); !slices.Equal(w.Finalizers, []string{secondName}) || w.Status.Reconciler != secondName || w.Status.Revision != 2 {
				t.Errorf("finalizers %v, reconciler %s, revision %d", w.Finalizers, w.Status.Reconciler, w.Status.Revision)
			}
			writes := slices.DeleteFunc(second.writes(), func(write string) bool { return !strings.Contains(write, " configmaps ") })
			if want := max(test.writes, 1)*(len(test.values)-1) + 1; len(writes) != want || !slices.Contains(writes, "delete configmaps config-00") {
				t.Errorf("%d writes of dependents: %v", len(writes), writes)
			}
			if former, own := b.labelled(operatorName), b.labelled(secondName); len(former) > 0 || len(own) != len(test.values)-1 {
				t.Errorf("%d objects have the former label, and %d the label", len(former), len(own))
			}
			b.wantNoSecretOfTheFormer()
			b.resetRequests()
			b.reconcile()
			b.wantNoWrites("the former operator wrote")
			second.wantAllRemoved()
		})
	}
}

// labelled returns the config maps with the label of an operator.
func (b *bed) labelled(operator string) (names []string) {
	b.Helper()
	list := &corev1.ConfigMapList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace), client.HasLabels{operator + "/owner-id"}))
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	return names
}

// left returns what is left of the dependents, and of the Secrets of the inventory of both operators.
func (b *bed) left() []string {
	b.Helper()
	left := append(b.labelled(operatorName), b.labelled(secondName)...)
	for _, secret := range b.secrets() {
		if secret.Type != secondName+"/revisions" {
			left = append(left, secret.Name)
		}
	}
	return left
}

// wantNoSecretOfTheFormer checks that no Secret of the inventory is left under the former name.
func (b *bed) wantNoSecretOfTheFormer() {
	b.Helper()
	for _, secret := range b.secrets() {
		if strings.HasPrefix(string(secret.Type), operatorName) {
			b.Errorf("Secret %s of type %s is left", secret.Name, secret.Type)
		}
	}
}

// wantAllRemoved deletes the component, and checks that nothing is left of it.
func (b *bed) wantAllRemoved() {
	b.Helper()
	b.remove()
	if left := b.left(); len(left) > 0 {
		b.Errorf("left: %v", left)
	}
}

// No finalizer can be added to a component that is being deleted.
func TestARenamedOperatorEndsADeletion(t *testing.T) {
	for name, test := range map[string]struct {
		values int
		detach bool
	}{
		"that nobody has begun":         {values: 3},
		"with the inventory in Secrets": {values: 30},
		"that detaches":                 {values: 3, detach: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, test.values)}, component.ReconcilerOptions{}, smallStatus)
			if test.detach {
				b.annotate(map[string]string{secondName + "/management-policy": "detach-on-delete"})
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			b.second(component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}, nil).wantAllRemoved()
			if _, exists := b.configMap("config-01"); exists != test.detach {
				t.Errorf("an object exists: %t", exists)
			}
		})
	}
}

// The process ends after any of its writes, and another one goes on.
func TestARenamedOperatorCrashes(t *testing.T) {
	for last := range 12 {
		t.Run(strconv.Itoa(last), func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 30)}, component.ReconcilerOptions{}, smallStatus)
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			var sent atomic.Int32
			options := component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}
			b.second(options, func(next http.RoundTripper) http.RoundTripper {
				return wire.Through(next, func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet && int(sent.Add(1)) > last {
						return nil, errors.New("it has ended")
					}
					return next.RoundTrip(r)
				})
			}).reconcile()
			second := b.second(options, nil)
			w := second.until(v1alpha1.StateReady)
			if _, exists := b.configMap("config-00"); exists || w.Status.Inventory.Count() != 29 {
				t.Errorf("the object that is not desired exists: %t; %d are recorded", exists, w.Status.Inventory.Count())
			}
			b.wantNoEvent("InventoryRebuilt")
			b.wantNoSecretOfTheFormer()
			second.wantAllRemoved()
		})
	}
}

func TestARenamedOperatorFindsWhatWasLostUnderTheFormerName(t *testing.T) {
	for name, lose := range map[string]func(b *bed){
		"Secrets of the inventory": (*bed).destroy,
		"the status":               func(b *bed) { b.patchStatus(statusEmptied) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 30)}, component.ReconcilerOptions{}, smallStatus)
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			lose(b)
			second := b.second(component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}, nil)
			second.until(v1alpha1.StateReady)
			b.wantNone("config-00")
			b.wantEvent("InventoryRebuilt", "were found again")
		})
	}
}

func TestAnotherDigestKeyRecreatesNothing(t *testing.T) {
	options := component.ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicyRecreate)}
	b := newBed(t, manifests.GeneratorFunc(configMaps), options)
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	first, before := b.until(v1alpha1.StateReady), b.uids("a", "b")
	options.Operator.OperatorNamespace = &b.namespace
	for i, test := range []struct {
		what string
		lost bool
		b    string // value of config map b
	}{{"a release in another namespace takes over", false, "1"}, {"the key is lost", true, "1"}, {"the key is lost while the spec changes", true, "2"}} {
		if test.lost {
			b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object(operatorName + "-digest-key")}))
		}
		b.update(func(w *widget.Widget) { w.Spec.Values["b"] = test.b })
		b.restartWith(manifests.GeneratorFunc(configMaps), options)
		b.resetRequests()
		w, revision := b.untilGeneration(), first.Status.Revision+int64(i/2)
		if after := b.uids("a", "b"); !slices.Equal(after, before) || w.Status.Revision != revision {
			t.Errorf("%s: revision %d, want %d; uids %v were %v", test.what, w.Status.Revision, revision, after, before)
		}
		if writes := without(b.writes(), "widgets", "digest-key", "-revisions"); !slices.Equal(writes, []string{"update configmaps a", "update configmaps b"}) {
			t.Errorf("%s: writes %v", test.what, writes)
		}
		if w.Status.Inventory.Operator.Key == first.Status.Inventory.Operator.Key {
			t.Errorf("%s: the key is the one of before", test.what)
		}
		for _, item := range w.Status.Inventory.Items {
			if strings.HasPrefix(item.Digest, "?") {
				t.Errorf("%s: the digest of %s %s is %s", test.what, item.Kind, item.Name, item.Digest)
			}
		}
		b.resetRequests()
		b.reconcile()
		b.wantNoWrites(test.what + ": writes at rest")
	}
	if value, _ := b.configMap("b"); value != "2" {
		t.Errorf("config map b is %q", value)
	}
	b.setValues(map[string]string{"a": "1", "b": "3"})
	if after := b.uids("a", "b"); after[0] != before[0] || after[1] == before[1] {
		t.Errorf("after a change of a manifest: %v, before %v", after, before)
	}
}

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
	config, lease := env.Shared(t).Config(), fmt.Sprintf("lease-%s", uuid.NewUUID())
	ours, theirs := must(component.NewLeaderLock(config, "default", lease))(t), must(component.NewLeaderLock(config, "default", lease))(t)
	deposing := false
	options := component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: ours}}
	b := newBed(t, manifests.GeneratorFunc(configMaps), options, func(b *bed) {
		b.reconciler.WithPostReadHook(func(context.Context, client.Client, *widget.Widget) error {
			if deposing { // in the middle of a reconcile, so that the next one finds the process deposed
				b.lead(theirs, 15)
				_, _, err := ours.Get(b.Context()) // what an elector does every two seconds
				b.check(err)
			}
			return nil
		})
	})
	b.lead(ours, 60)
	b.create(widget.Spec{Values: map[string]string{"changed": "1", "dropped": "1"}})
	b.until(v1alpha1.StateReady)
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"changed": "2", "new": "1"} })
	b.resetRequests()
	deposing = true
	for range 3 {
		if result, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
			t.Errorf("the reconcile does not end quietly: %+v, %v", result, err)
		}
	}
	b.wantNoWrites("writes")
	deposing = false
	b.lead(ours, 60)
	b.untilGeneration()
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
