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

func TestOtherErrorsOfTheGeneratorAreLeftToTheBackoffOfTheController(t *testing.T) {
	b := newBed(t, failing(errors.New("no template")), component.ReconcilerOptions{})
	b.create(widget.Spec{})
	w, result, err := b.reconcile()
	if state, reason, _ := w.Status.GetState(); err == nil || result.RequeueAfter != 0 || state != component.StateError || reason != v1alpha1.ReasonError {
		t.Errorf("%s, %s; %+v, %v, want an error for the rate limiter", state, reason, result, err)
	}
}

func failing(err error) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { return nil, err })
}

func TestProcessingBecomesAnErrorAfterTheTimeoutWhichStartsAnewWithEveryChange(t *testing.T) {
	for name, test := range map[string]struct {
		spec    widget.Spec
		timeout time.Duration
	}{
		"the component's timeout":        {widget.Spec{TimeoutSpec: component.TimeoutSpec{Timeout: interval(2 * time.Minute)}}, 2 * time.Minute},
		"else the requeue interval":      {widget.Spec{RequeueSpec: component.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}}, 3 * time.Minute},
		"which is 10 minutes unless set": {widget.Spec{}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never(), component.ReconcilerOptions{})
			test.spec.Values = map[string]string{"a": "1"}
			b.create(test.spec)
			b.until(component.StateProcessing)
			b.forward += test.timeout - 30*time.Second
			b.expect(component.StateProcessing, v1alpha1.ReasonProcessing)
			b.forward += time.Minute
			b.expect(component.StateError, v1alpha1.ReasonTimeout)
			b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
			b.expect(component.StateProcessing, v1alpha1.ReasonProcessing)
			b.forward += test.timeout + time.Second
			b.expect(component.StateError, v1alpha1.ReasonTimeout)
		})
	}
}

// never renders config maps that do not become ready.
func never() manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		objects, err := configMaps(ctx, namespace, name, parameters)
		for _, object := range objects {
			object.SetAnnotations(map[string]string{operatorName + "/ready-when": "false"})
		}
		return objects, err
	})
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
