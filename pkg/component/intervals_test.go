// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// interval is how specs hold durations.
func interval(d time.Duration) *types.Duration { return &types.Duration{Duration: d} }

func TestAReadyComponentIsRequeuedAfterItsIntervalWhichIsTenMinutesByDefault(t *testing.T) {
	for name, test := range map[string]struct {
		spec component.RequeueSpec
		want time.Duration
	}{
		"by default":                     {component.RequeueSpec{}, 10 * time.Minute},
		"as the component says":          {component.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}, 3 * time.Minute},
		"less than a second is a second": {component.RequeueSpec{RequeueInterval: interval(time.Millisecond)}, time.Second},
		"zero is no interval of its own": {component.RequeueSpec{RequeueInterval: interval(0)}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{RequeueSpec: test.spec, Values: map[string]string{"a": "1"}})
			b.until(component.StateReady)
			_, result, err := b.reconcile()
			// The jitter is at most a tenth and makes it come early.
			if err != nil || result.RequeueAfter > test.want || result.RequeueAfter < test.want*9/10 {
				t.Errorf("comes again after %s, %v, want %s", result.RequeueAfter, err, test.want)
			}
		})
	}
}

func TestARetriableErrorRequeuesAfterItsDelayOrTheRetryIntervalOrTheRequeueInterval(t *testing.T) {
	retry := component.RetrySpec{RetryInterval: interval(2 * time.Minute)}
	requeue := component.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}
	for name, test := range map[string]struct {
		delay *time.Duration
		spec  widget.Spec
		want  time.Duration
	}{
		"the delay of the error":         {new(70 * time.Second), widget.Spec{RetrySpec: retry, RequeueSpec: requeue}, 70 * time.Second},
		"else the retry interval":        {nil, widget.Spec{RetrySpec: retry, RequeueSpec: requeue}, 2 * time.Minute},
		"else the requeue interval":      {nil, widget.Spec{RequeueSpec: requeue}, 3 * time.Minute},
		"which is 10 minutes unless set": {nil, widget.Spec{}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, failing(types.NewRetriableError(errors.New("not yet"), test.delay)), component.ReconcilerOptions{})
			b.create(test.spec)
			w, result, err := b.reconcile()
			state, reason, _ := w.Status.GetState()
			if err != nil || state != component.StatePending || reason != v1alpha1.ReasonRetrying || result.RequeueAfter != test.want {
				t.Errorf("%s, %s; comes again after %s, %v, want %s", state, reason, result.RequeueAfter, err, test.want)
			}
		})
	}
}

func failing(err error) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { return nil, err })
}

// expect runs a reconcile and looks at its verdict.
func (b *bed) expect(state component.State, reason string) *widget.Widget {
	b.Helper()
	w, _, _ := b.reconcile()
	if gotState, gotReason, message := w.Status.GetState(); gotState != state || gotReason != reason {
		b.Errorf("%s, %s: %s, want %s, %s", gotState, gotReason, message, state, reason)
	}
	return w
}
