// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// connect returns the server with the type of the widgets, and a client.
func connect(t *testing.T) (*rest.Config, client.Client) {
	t.Helper()
	config := env.Shared(t).Config()
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../component/testdata/crds"}}))(t)
	scheme := check.Must(widgets().Scheme())(t)
	c := check.Must(client.New(config, client.Options{Scheme: scheme}))(t)
	return config, c
}

// isReady returns an error as long as a component is not ready.
func isReady(ctx context.Context, c client.Client, w *widget.Widget) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		return err
	}
	if !w.Status.IsReady() {
		_, reason, message := w.Status.GetState()
		return fmt.Errorf("%s: %s", reason, message)
	}
	return nil
}

// freeAddress returns an address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func TestAProgramRunsItsKindsWithOneLockProbesAndMetrics(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	config, _ := connect(t)
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{gadgetDefinition()}}))(t)
	p := bothKinds()
	c := check.Must(client.New(config, client.Options{Scheme: check.Must(p.scheme())(t)}))(t)
	t.Setenv("POD_NAMESPACE", "kube-public")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := settings{metrics: freeAddress(t), probes: freeAddress(t), leaderElect: true, namespaces: []string{"default"}}
	go func() { ended <- p.run(ctx, config, s) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	probing := http.Client{Timeout: time.Minute}
	for _, address := range []string{s.probes + "/healthz", s.probes + "/readyz", s.metrics + "/metrics"} {
		env.Until(t, address, func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
			if err != nil {
				return err
			}
			response, err := probing.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return errors.New(response.Status)
			}
			return nil
		})
	}
	env.Until(t, "the lease", func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "kube-public", Name: p.name}, &coordinationv1.Lease{})
	})
	watched, other := named("default", "watched"), named("kube-node-lease", "other")
	second := &gadget{*named("default", "of-gadgets")}
	for _, w := range []client.Object{other, watched, second} {
		check.NoError(t, c.Create(t.Context(), w))
	}
	env.Until(t, "the component to be ready", func() error {
		if err := isReady(t.Context(), c, watched); err != nil {
			return err
		}
		return c.Get(t.Context(), client.ObjectKeyFromObject(watched), &corev1.ConfigMap{})
	})
	env.Until(t, "the component of the other kind", func() error {
		return c.Get(t.Context(), client.ObjectKeyFromObject(second), &corev1.ConfigMap{})
	})
	if len(watched.Finalizers) != 1 || watched.Finalizers[0] != "widgets.example.com/operator" {
		t.Errorf("the finalizers are %q", watched.Finalizers)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || len(other.Finalizers) > 0 {
		t.Errorf("a component of another namespace was touched: %v, %v", other.Finalizers, err)
	}
	if err := p.uninstall(t.Context(), c, []string{"default"}, false, t.Output()); err != nil {
		t.Error(err)
	}
	for _, w := range []client.Object{watched, second} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the ConfigMap %s is left over: %v", w.GetName(), err)
		}
	}
}

func TestOperatorsWithOtherSelectorsElectOtherLeaders(t *testing.T) {
	leases := map[string]bool{}
	for _, selector := range []string{"", "shard=a", "shard notin (a)", "shard in (b,c)"} {
		parsed, lease, err := programOf(widgets()).selected(selector)
		check.NoError(t, err)
		if selector == "" != (parsed == nil) || !strings.HasPrefix(lease, widgets().Name) || leases[lease] {
			t.Errorf("%q: selector %v, lease %s", selector, parsed, lease)
		}
		leases[lease] = true
	}
	if _, again, err := programOf(widgets()).selected("shard in (c, b)"); err != nil || !leases[again] {
		t.Errorf("the same selector in other words has the lease %s, error %v", again, err)
	}
	own := widgets()
	own.Reconciler.Controller.LabelSelector = &metav1.LabelSelector{}
	for want, refused := range map[string]func() (*metav1.LabelSelector, string, error){
		"selects its components by itself": func() (*metav1.LabelSelector, string, error) { return programOf(own).selected("a=b") },
		"key notin (value)":                func() (*metav1.LabelSelector, string, error) { return programOf(widgets()).selected("a!=b") },
	} {
		if _, _, err := refused(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAHookThatReadsASecretSendsOneGetAndWatchesNothing(t *testing.T) {
	content := map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "a", "namespace": "ns"}}
	for _, object := range []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}},
	} {
		recorder := wire.NewRecorder()
		for _, kind := range []string{"Secret", "ConfigMap"} {
			stored := (&unstructured.Unstructured{Object: content}).DeepCopy()
			stored.SetKind(kind)
			recorder.Put(stored)
		}
		options := managerOptions(scheme.Scheme)
		options.Metrics.BindAddress = "0"
		manager := check.Must(ctrl.NewManager(recorder.Config(), options))(t)
		if err := manager.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
		if sent := recorder.Sent(http.MethodGet); len(sent) != 1 || !strings.HasSuffix(sent[0].Path, "/a") || sent[0].Query.Has("watch") {
			t.Errorf("%T: sent %v", object, sent)
		}
	}
}
