// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
)

const testFinalizer = "example.com/notified"

var testKey = client.ObjectKey{Namespace: "ns", Name: "x"}

// stand is a runner without a server or a queue. The test is the cache: it says what
// appears, and makes the reconciles.
type stand struct {
	*testing.T
	*runner
	clock   time.Time
	version string // in which metadata is written
	refuse  error  // what the server answers to the next write
	calls   []ReconcileRequest
	gaveUp  []ReconcileAction // events
	// answer is what the reconciler does.
	answer func(ReconcileRequest) (ReconcileResult, error)
}

func newStand(t *testing.T, opinionated bool) *stand {
	s := &stand{T: t, clock: time.Unix(1000, 0), answer: func(ReconcileRequest) (ReconcileResult, error) { return ReconcileResult{}, nil }}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	server := interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			s.version = obj.GetObjectKind().GroupVersionKind().Version
			if s.refuse != nil {
				return s.refuse
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	finalizers, changed := ownFinalizers{}, AnythingChanged
	if opinionated {
		finalizers.finalizer, changed = testFinalizer, ContentChanged
	}
	s.runner = &runner{
		policy: FixedRetryPolicy(time.Second), memory: newMemory(changed, finalizers), limiter: newLimiter(),
		finalizers:  &finalizerWriter{ownFinalizers: finalizers, client: server, reader: server, kind: schema.GroupKind{Kind: "ConfigMap"}, owner: "test"},
		writeDelays: workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](writeRetryInitial, defaultRetryMax),
		gaveUp:      func(_ client.Object, action ReconcileAction) { s.gaveUp = append(s.gaveUp, action) },
		now:         func() time.Time { return s.clock }, random: func() float64 { return 0 },
	}
	s.runner.reconciler = reconcilerFunc(func(_ context.Context, req ReconcileRequest) (ReconcileResult, error) {
		s.calls = append(s.calls, req)
		return s.answer(req)
	})
	return s
}

type reconcilerFunc func(context.Context, ReconcileRequest) (ReconcileResult, error)

// Reconcile calls the function.
func (f reconcilerFunc) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	return f(ctx, req)
}

func configMap(uid, version, value string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: apitypes.UID(uid), ResourceVersion: version, Finalizers: finalizers},
		Data:       map[string]string{"value": value},
	}
}

// stored puts an object on the server, and returns it as it is there.
func (s *stand) stored(obj *corev1.ConfigMap) *corev1.ConfigMap {
	s.Helper()
	obj.ResourceVersion = ""
	check.NoError(s, s.finalizers.client.Create(s.Context(), obj))
	return obj
}

// reconcile makes a reconcile and returns the actions of its calls, and the delay and the error.
func (s *stand) reconcile() (actions []ReconcileAction, after time.Duration, err error) {
	s.Helper()
	before := len(s.calls)
	request := reconcile.Request{NamespacedName: testKey}
	result, err := s.runner.Reconcile(s.Context(), request)
	for _, call := range s.calls[before:] {
		actions = append(actions, call.Action)
	}
	if err != nil {
		return actions, s.limiter.When(request), err
	}
	return actions, result.RequeueAfter, nil
}

// last returns the last call.
func (s *stand) last() ReconcileRequest { return s.calls[len(s.calls)-1] }

func valueOf(obj client.Object) string {
	if obj == nil {
		return ""
	}
	return obj.(*corev1.ConfigMap).Data["value"]
}
