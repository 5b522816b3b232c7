// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/env"
)

// reconcilerName is the name of the operator under test.
const reconcilerName = "e2e.corbel.run"

var testScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addBundles,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}()

// fixture is the cluster as one test sees it: an observer's client and a
// namespace of its own.
type fixture struct {
	client.Client
	env       *env.Environment
	namespace string

	// target is the cluster of the dependents: the same, unless there is a gateway.
	target         client.Client
	targetEnv      *env.Environment
	gateway        *gateway
	throughGateway http.RoundTripper

	// mayBeIdle is set if the operators may end before they write anything.
	mayBeIdle bool
	// adoptsReleases is set if the operators may take over Helm releases.
	adoptsReleases bool
	// rollout is the option of the operators, and upgraded whether they are of the second version.
	rollout  *component.Rollout
	upgraded atomic.Bool
	// late are creations that could not be cancelled.
	late map[string]bool
}

// observer is the client of all tests: what it learns about types it learns once.
var observer struct {
	sync.Mutex
	client client.Client
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{env: env.Shared(t)}
	f.targetEnv = f.env
	observer.Lock()
	defer observer.Unlock()
	if observer.client == nil {
		observer.client = installBundles(t, f.env)
	}
	f.Client, f.target = observer.client, observer.client
	f.namespace = f.newNamespace(t)
	f.audit(t)
	t.Cleanup(func() { f.checkConditions(t) })
	return f
}

// checkConditions checks the conditions of all Bundles that were reconciled.
func (f *fixture) checkConditions(t testing.TB) {
	list := &BundleList{}
	if err := f.List(context.WithoutCancel(t.Context()), list, client.InNamespace(f.namespace)); err != nil {
		t.Error(err)
	}
	for i := range list.Items {
		if bundle := &list.Items[i]; len(bundle.Status.Conditions) > 0 {
			conditionstest.Check(t, conditions.For(bundle, &bundle.Status.Conditions))
		}
	}
}

// installBundles makes the type of the components known to the server.
func installBundles(t testing.TB, e *env.Environment) client.Client {
	t.Helper()
	c, err := client.New(e.Config(), client.Options{Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	options := envtest.CRDInstallOptions{Paths: []string{"../../pkg/component/testdata/crds"}}
	if _, err := envtest.InstallCRDs(e.Config(), options); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Bundle type to be served", func(ctx context.Context) error {
		return c.List(ctx, &BundleList{})
	})
	return c
}

func (f *fixture) newNamespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	if err := f.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// operator is a running manager with one component reconciler.
type operator struct {
	reconciler *component.Reconciler[*Bundle]
	cache      cache.Cache
	cancel     context.CancelFunc
	done       chan error
}

// startWith runs an operator for Bundles of one namespace until the test ends or
// stop is called. All its requests go through the view on them, if there is one.
func (f *fixture) startWith(t testing.TB, generator manifests.Generator, wrap func(http.RoundTripper) http.RoundTripper) *operator {
	t.Helper()
	cfg, err := f.env.ConfigFor(f.user(), "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  testScheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
		MapperProvider:          func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return f.RESTMapper(), nil },
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(10 * time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciler := component.NewReconciler[*Bundle](reconcilerName, generator, component.ReconcilerOptions{
		Users: component.UserOptions{TargetDialPolicy: anyAddress, AdoptHelmReleases: f.adoptsReleases}, Revisions: component.RevisionOptions{Rollout: f.rollout},
	})
	if err := reconciler.SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := &operator{reconciler: reconciler, cache: manager.GetCache(), cancel: cancel, done: make(chan error, 1)}
	go func() { o.done <- manager.Start(ctx) }()
	t.Cleanup(func() { o.stop(t) })
	return o
}

// stop ends the operator and waits for it.
func (o *operator) stop(t testing.TB) {
	t.Helper()
	if o.reconciler == nil {
		return
	}
	o.cancel()
	select {
	case <-o.done:
	case <-time.After(30 * time.Second):
		t.Error("the operator did not stop within 30 s")
	}
	// A test keeps what its cleanups refer to until the whole enumeration has ended.
	o.reconciler, o.cache, o.cancel = nil, nil, nil
}

// bundle creates a Bundle.
func (f *fixture) bundle(t testing.TB, values map[string]string) *Bundle {
	t.Helper()
	bundle := f.named("main")
	bundle.Spec.Values = values
	if err := f.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	return bundle
}

// update changes the values of a Bundle.
func (f *fixture) update(t testing.TB, bundle *Bundle, values map[string]string) {
	t.Helper()
	eventually(t, "the update of the Bundle", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		bundle.Spec.Values = values
		return f.Update(ctx, bundle)
	})
}

// ready waits until the Bundle is Ready in its current generation.
func (f *fixture) ready(t testing.TB, bundle *Bundle) {
	t.Helper()
	eventually(t, "the Bundle to become ready", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if !bundle.Status.IsReady() || bundle.Status.ObservedGeneration != bundle.Generation {
			state, reason, message := bundle.Status.GetState()
			return fmt.Errorf("generation %d, observed %d: %s (%s): %s", bundle.Generation, bundle.Status.ObservedGeneration, state, reason, message)
		}
		return nil
	})
}

// gone waits until the Bundle does not exist any more.
func (f *fixture) gone(t testing.TB, bundle *Bundle) {
	t.Helper()
	eventually(t, "the Bundle to be gone", func(ctx context.Context) error {
		err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		state, reason, message := bundle.Status.GetState()
		return fmt.Errorf("%s (%s): %s", state, reason, message)
	})
}

// patience is how long eventually waits; ample, because machines are slow
// while they compile.
const patience = 5 * time.Minute

// eventually repeats a check until it succeeds, and fails the test with its
// last error when the time is up.
func eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	eventuallyEvery(t, 40*time.Millisecond, what, check)
}

// eventuallyEvery is eventually with the time between two checks.
func eventuallyEvery(t testing.TB, interval time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s: %v", patience, what, last)
		case <-ticker.C:
		}
	}
}

// ownerOf is the text by which the objects of the fixture's components are known.
func (f *fixture) ownerOf() string { return "/" + f.namespace + "/" }

// isWatch reports whether a request is a watch.
func isWatch(r *http.Request) bool {
	return strings.Contains(r.URL.RawQuery, "watch=true") || strings.Contains(r.URL.RawQuery, "watch=1")
}

// parallel is how many tests and cases of enumerations run at a time, unless the
// flag says otherwise: most of their time they wait.
const parallel = "20"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", parallel)
	}
	ctrl.SetLogger(logr.Discard())
	options := env.Options{Cluster: true, AuditLog: true, AuditBodies: true}
	if os.Getenv(adoptChartsVariable) != "" {
		options.Nodes = 3 // for replicas that must not share a node
	}
	code := env.Main(m, options)
	if err := stopFarCluster(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the second cluster: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
