// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// elected starts a process of the operator that leads only while it has the lease. The function that it returns
// ends the process, which gives up its lease.
func (b *bed) elected() (manager ctrl.Manager, end func()) {
	b.Helper()
	restConfig := must(b.env.ConfigFor(b.user, "system:masters"))(b.T)
	lock := must(component.NewLeaderLock(restConfig, b.namespace, "standby"))(b.T)
	manager = must(ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: newScheme(b.T), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true, RetryPeriod: new(200 * time.Millisecond),
	}))(b.T)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{LeaderLock: lock})
	b.check(r.SetupWithManager(manager))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return manager, func() {
		cancel()
		b.check(<-ended)
	}
}

func TestAProcessThatStandsByAnswersWhatNoneHasAnswered(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	leader, end := b.elected()
	<-leader.Elected()
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.comesToBeReady()
	standby, endStandby := b.elected()
	defer endStandby()
	if plan, _ := b.ask(b.question()); len(plan.Changes) > 0 {
		t.Errorf("the leader plans %v", changes(plan))
	}
	select {
	case <-standby.Elected():
		t.Fatal("two processes lead")
	default:
	}
	end()
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	if plan, _ := b.ask(b.edited("a", "3")); len(plan.Changes) != 1 {
		t.Errorf("the process that stood by plans %v", changes(plan))
	}
	b.comesToBeReady()
	if value, _ := b.configMap("a"); value != "2" {
		t.Errorf("the value is %q", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.comesTo(func() (string, bool) {
		w := &widget.Widget{}
		err := b.client.Get(t.Context(), b.key("main"), w)
		return string(w.Status.State), apierrors.IsNotFound(err)
	})
}
