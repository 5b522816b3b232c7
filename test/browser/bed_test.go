// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/cmd/corbel/ui"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/env"
)

var screenshots = flag.String("screenshots", "", "the folder for screenshots of the page")

const (
	operatorName      = "shop.example.com"
	operatorNamespace = "shop-system"
	market            = "market" // the namespace of the shops
	shopType          = "shops.shop.example.com"
	patience          = time.Minute
	token             = "a token of these tests"
	repository        = "../.."
)

// bed is what all tests share: a control plane, an operator in this process, and a browser.
type bed struct {
	env     *env.Environment
	client  client.WithWatch
	browser context.Context
	end     []func() error // in reverse order
	fleet   func() error   // creates the fleet once
}

var shared struct {
	sync.Once
	*bed
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if shared.bed != nil {
		if code != 0 && shared.env != nil {
			shared.env.KeepLogs()
		}
		for i := len(shared.end) - 1; i >= 0; i-- {
			if err := shared.end[i](); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

// open returns the bed, or skips the test if there is no browser.
func open(t testing.TB) *bed {
	t.Helper()
	program := browserProgram()
	if program == "" {
		t.Skip("there is no browser: install chromium, or name its program by the variable CHROMIUM")
	}
	if testing.Short() {
		t.Skip("needs a control plane, which is left out with -short")
	}
	shared.Do(func() {
		shared.bed = &bed{}
		shared.fleet = sync.OnceValue(shared.bed.createBranches)
		shared.err = shared.start(program)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.bed
}

func browserProgram() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// start starts all, with one Shop.
func (b *bed) start(program string) (err error) {
	ctx := context.Background()
	if b.env, err = env.Start(ctx, env.Options{Cluster: true}); err != nil {
		return err
	}
	b.end = append(b.end, b.env.Stop)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		return err
	}
	config := b.env.Config()
	config.QPS, config.Burst = -1, -1
	if b.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := b.startOperator(ctx); err != nil {
		return err
	}
	b.startBrowser(ctx, program)
	return b.createShop(ctx, "corner")
}

func (b *bed) startOperator(ctx context.Context) error {
	if _, err := envtest.InstallCRDs(b.env.Config(), envtest.CRDInstallOptions{Paths: []string{repository + "/examples/shop/config/crd"}}); err != nil {
		return err
	}
	for _, namespace := range []string{market, operatorNamespace} {
		if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	lock, err := component.NewLeaderLock(b.env.Config(), operatorNamespace, operatorName)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(b.env.Config(), ctrl.Options{
		Scheme: b.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(time.Minute), RenewDeadline: new(50 * time.Second), // the API server goes away for a while
	})
	if err != nil {
		return err
	}
	generator, err := helm.New(os.DirFS(repository+"/examples/shop"), "chart", helm.Options{})
	if err != nil {
		return err
	}
	shops := component.NewReconciler[*shopv1alpha1.Shop](operatorName, generator, component.ReconcilerOptions{Controller: component.ControllerOptions{LeaderLock: lock}, Operator: component.OperatorOptions{OperatorNamespace: new(operatorNamespace)}})
	if err := shops.SetupWithManager(manager); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	b.end = append(b.end, func() error { cancel(); return <-ended })
	return nil
}

func (b *bed) startBrowser(ctx context.Context, program string) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU)
	for _, flag := range []string{"disable-quic", "disable-component-update", "force-color-profile=srgb"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(ctx, options...)
	// The protocol of a newer browser has events that the client does not know.
	b.browser, _ = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	b.end = append(b.end, func() error {
		err := chromedp.Cancel(b.browser)
		cancel()
		if errors.Is(err, context.Canceled) || errors.Is(err, chromedp.ErrInvalidContext) {
			return nil
		}
		return err
	})
}

func shop(name string) *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name},
		Spec: shopv1alpha1.ShopSpec{ShopValues: shopv1alpha1.ShopValues{
			Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: name + "-database",
			Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
		}},
	}
}

// createShop creates a Shop, and waits until it is Ready.
func (b *bed) createShop(ctx context.Context, name string) error {
	err := errors.Join(b.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name + "-database"}, StringData: map[string]string{"password": "a very secret canary"},
	}), b.client.Create(ctx, shop(name)))
	if err != nil {
		return err
	}
	return b.untilReady(ctx, name)
}

func (b *bed) untilReady(ctx context.Context, name string) error {
	return poll(ctx, func() error {
		s := shop(name)
		if err := b.client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if s.Status.IsReady() && s.Status.ObservedGeneration == s.Generation {
			return nil
		}
		state, reason, message := s.Status.GetState()
		return fmt.Errorf("the Shop is %s (%s: %s)", state, reason, message)
	})
}

// poll calls the check until it is content, or patience ends.
func poll(ctx context.Context, check func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := check()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checkConditions checks the conditions of a Shop.
func (b *bed) checkConditions(t testing.TB, name string) {
	t.Helper()
	s := shop(name)
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	conditionstest.Check(t, conditions.For(s, &s.Status.Conditions))
}

// patch changes a Shop as its user does, or another object as another client does.
func (b *bed) patch(t testing.TB, object client.Object, manager string, patch client.Patch) {
	t.Helper()
	if err := b.client.Patch(t.Context(), object, patch, client.FieldOwner(cmp.Or(manager, "kubectl-edit"))); err != nil {
		t.Fatal(err)
	}
}

// serve starts the server of the page, and returns its address with the token.
func (b *bed) serve(t testing.TB, options ui.Options) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, _ := b.serveOn(t, listener, options)
	return base
}

// serveOn serves on a listener until the end of the test, or until it is stopped.
func (b *bed) serveOn(t testing.TB, listener net.Listener, options ui.Options) (base string, stop func()) {
	t.Helper()
	options.Address, options.Token, options.Context = listener.Addr().String(), cmp.Or(options.Token, token), "demo"
	handler, err := ui.New(b.env.Config(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Close() // the pages have gone
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended: %v", err)
		}
		handler.Close()
	})
	t.Cleanup(stop)
	return "http://" + options.Address + "/", stop
}
