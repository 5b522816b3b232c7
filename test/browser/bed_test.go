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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/cmd/corbel/ui"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

var screenshots = flag.String("screenshots", "", "the folder for screenshots of the page")

const (
	market     = shops.Namespace
	shopType   = "shops.shop.example.com"
	patience   = time.Minute
	token      = "a token of these tests"
	repository = "../.."
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
	if b.client, err = shops.Client(b.env); err != nil {
		return err
	}
	manager, err := shops.Operator(ctx, b.env, b.client, repository)
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	b.end = append(b.end, func() error { cancel(); return <-ended })
	b.startBrowser(ctx, program)
	return shops.Create(ctx, b.client, "corner")
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

// untilReady waits until the Shop is Ready, with conditions that do not contradict each other.
func (b *bed) untilReady(t testing.TB) {
	t.Helper()
	check.Must(shops.AwaitReady(t.Context(), b.client, "corner"))(t)
}

// patch changes a Shop as its user does, or another object as another client does.
func (b *bed) patch(t testing.TB, object client.Object, manager string, patch client.Patch) {
	t.Helper()
	check.NoError(t, b.client.Patch(t.Context(), object, patch, client.FieldOwner(cmp.Or(manager, "kubectl-edit"))))
}

// serve starts the server of the page, and returns its address with the token.
func (b *bed) serve(t testing.TB, options ui.Options) string {
	t.Helper()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	base, _ := b.serveOn(t, listener, options)
	return base
}

// serveOn serves on a listener until the end of the test, or until it is stopped.
func (b *bed) serveOn(t testing.TB, listener net.Listener, options ui.Options) (base string, stop func()) {
	t.Helper()
	options.Address, options.Token, options.Context = listener.Addr().String(), cmp.Or(options.Token, token), "demo"
	handler := check.Must(ui.New(b.env.Config(), options))(t)
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
