// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// shared is the environment of a test binary; Main sets its options.
var shared struct {
	sync.Mutex
	options *Options
	env     *Environment
	err     error
}

// Main runs the tests of a package and returns the exit code. The tests get one
// environment in common by calling [Shared], which starts it when it is first
// called: a run of tests that do not need it costs nothing. If a test fails, the
// logs are kept. Managers log nothing.
func Main(m *testing.M, options Options) int {
	log.SetLogger(logr.Discard())
	shared.Lock()
	shared.options = &options
	shared.Unlock()

	code := m.Run()

	shared.Lock()
	defer shared.Unlock()
	if shared.env == nil {
		return code
	}
	if code != 0 {
		shared.env.KeepLogs()
	}
	if err := shared.env.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the control plane: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// Shared returns the environment of the package's tests, which must be left as it
// was found. The package's TestMain must use [Main]. If it cannot be started, every
// test that asks fails.
func Shared(t testing.TB) *Environment {
	t.Helper()
	skipIfShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.options == nil {
		t.Fatal("no environment to share: TestMain has to call env.Main")
	}
	if shared.env == nil && shared.err == nil {
		// Not the context of the test, which ends before the environment.
		shared.env, shared.err = Start(context.WithoutCancel(t.Context()), *shared.options)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.env
}

// New starts an environment for one test and stops it when the test has ended. If
// the test has failed by then, the logs are kept.
func New(t testing.TB, options Options) *Environment {
	t.Helper()
	skipIfShort(t)
	if options.Logf == nil {
		options.Logf = t.Logf
	}
	e, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.KeepLogs()
		}
		if err := e.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return e
}

// skipIfShort makes -short mean "without a control plane", so that the other tests
// of a package can be run in seconds, and with the race detector.
func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which is left out with -short")
	}
}

// patience is far more than anything takes on a machine that is not overloaded.
const patience = 2 * time.Minute

// Await calls a check until it returns no error. After two minutes it returns the last error.
func Await(ctx context.Context, check func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := check()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Until is Await for a test, which fails if the last error remains. It is of no use in a
// Cleanup: the context of the test has ended then, and the check is made only once.
func Until(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := Await(t.Context(), check); err != nil {
		t.Fatalf("waited in vain until %s: %v", what, err)
	}
}

// Run runs a manager. The function that it returns ends it, and waits for its end; the end of the test calls it as well.
func Run(t testing.TB, manager interface{ Start(context.Context) error }) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
