// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const (
	finalizer = "changes.example.com/notified"
	pending   = finalizer + "-pending"
	patience  = 30 * time.Second
)

// bed is a namespace and its user.
type bed struct {
	*testing.T
	client    client.Client // of the user
	namespace string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	c := check.Must(client.New(env.Shared(t).Config(), client.Options{Scheme: newScheme(t)}))(t)
	b := &bed{T: t, client: c}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "changes-"}}
	check.NoError(b, c.Create(t.Context(), namespace))
	b.namespace = namespace.Name
	return b
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, widget.AddToScheme} {
		check.NoError(t, add(scheme))
	}
	return scheme
}

// until waits for a condition, which may describe what it sees.
func (b *bed) until(what string, condition func() (bool, string)) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s; %s", what, seen)
		}
	}
}

func (b *bed) create(name, value string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	b.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: map[string]string{"value": value}}
	for _, f := range change {
		f(obj)
	}
	check.NoError(b, b.client.Create(b.Context(), obj))
	return obj
}

// get returns the object, or nil if it is gone.
func (b *bed) get(name string) *corev1.ConfigMap {
	b.Helper()
	obj := &corev1.ConfigMap{}
	err := b.client.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	check.NoError(b, err)
	return obj
}

// edit changes an object as it is, if it is there, and reports whether it was.
func (b *bed) edit(name string, change func(*corev1.ConfigMap)) bool {
	b.Helper()
	for {
		obj := b.get(name)
		if obj == nil {
			return false
		}
		change(obj)
		err := b.client.Update(b.Context(), obj)
		if apierrors.IsNotFound(err) {
			return false
		}
		if !apierrors.IsConflict(err) {
			check.NoError(b, err)
			return true
		}
	}
}

func (b *bed) delete(name string) {
	b.Helper()
	check.NoError(b, client.IgnoreNotFound(b.client.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}})))
}

func (b *bed) untilGone(name string) {
	b.Helper()
	b.until(name+" is gone", func() (bool, string) {
		obj := b.get(name)
		return obj == nil, fmt.Sprintf("it is %+v", obj)
	})
}

// newManager makes a manager with requests that go through a wrapper.
func (b *bed) newManager(wrap func(http.RoundTripper) http.RoundTripper) ctrl.Manager {
	b.Helper()
	restConfig := env.Shared(b.T).Config()
	if wrap != nil {
		restConfig.Wrap(wrap)
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:     newScheme(b.T),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	check.NoError(b, err)
	return mgr
}

// start starts an operator. The function ends it, as a process ends: nothing is said,
// and it is over when the function returns.
func (b *bed) start(wrap func(http.RoundTripper) http.RoundTripper, kind client.Object, r changes.Reconciler, options changes.Options) (stop func()) {
	b.Helper()
	mgr := b.newManager(wrap)
	check.NoError(b, changes.NewController(strings.ToLower(b.namespace), kind, r, options).SetupWithManager(mgr))
	return b.run(mgr)
}

func (b *bed) run(mgr ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		<-ended // it complains about a server that it does not reach
	}
	b.Cleanup(stop)
	return stop
}
