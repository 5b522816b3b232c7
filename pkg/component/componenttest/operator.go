// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
)

// Operator is an operator under test, for components of type T.
type Operator[T component.Component] struct {
	// Config reaches the cluster as its administrator.
	Config *rest.Config
	// Scheme knows T and the core types. It is the scheme of the operator's manager.
	Scheme *runtime.Scheme
	// SetUp adds the reconciler to a manager. It is called for every start of the operator,
	// also for the one after a crash, so it has to make a new reconciler each time.
	SetUp func(ctrl.Manager) error
	// As is the user that the operator acts as. A service account must exist. By default it is the user
	// of Config.
	As *rest.ImpersonationConfig
	// Namespaced lets TestRights create the component in the namespace of the service account As, for an
	// operator that has rights in its own namespace only.
	Namespaced bool
	// Chart is the Helm chart, at the root of the files, that the operator renders. TestRights then
	// fails if the operator has a right to a kind that is in no branch of its templates.
	Chart fs.FS
	// Prerequisites are created in the namespace of each case before the component, such as
	// Secrets that its spec refers to. A CustomResourceDefinition must come before objects of its type. The status
	// of an unstructured object is set, so that a component can require the object. Objects and the service accounts
	// of a RoleBinding need no namespace: the default is that of the case.
	Prerequisites []client.Object
	// Retained are objects that may be there after the deletion of the component, such as
	// dependents that are orphaned. Each is a pattern, as for path.Match, of a kind and a name,
	// such as "PersistentVolumeClaim data-*". The name of an object in another namespace than the
	// component's starts with "<namespace>/".
	Retained []string
	// Normalize removes from a copy of a dependent the values that may differ between two
	// installations, such as random values and digests of them. It may be nil: values of Secrets,
	// certificates and keys in PEM, and checksums in annotations are not compared anyway.
	Normalize func(*unstructured.Unstructured)
	// Timeout is how long each state is waited for. Default 2 minutes.
	Timeout time.Duration
}

// leaseName is the name of the lease of an operator under test.
const leaseName = "componenttest"

const (
	defaultTimeout = 2 * time.Minute
	pollInterval   = 50 * time.Millisecond
	stopTimeout    = 30 * time.Second
)

// check fails the test if a field is missing.
func (o Operator[T]) check(t testing.TB) {
	t.Helper()
	var errs []error
	for _, field := range []struct {
		name    string
		missing bool
	}{{"Config", o.Config == nil}, {"Scheme", o.Scheme == nil}, {"SetUp", o.SetUp == nil}} {
		if field.missing {
			errs = append(errs, fmt.Errorf("the field %s of the Operator is not set", field.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// config returns a configuration without a limit on the side of the client.
func (o Operator[T]) config() *rest.Config {
	c := rest.CopyConfig(o.Config)
	c.QPS, c.Burst = -1, -1
	return c
}

// configOfOperator returns the configuration of the operator. It has a token of a service account,
// because an impersonated user cannot impersonate another one.
func (o Operator[T]) configOfOperator(ctx context.Context) (*rest.Config, error) {
	config := o.config()
	if o.As == nil {
		return config, nil
	}
	namespace, name := o.account()
	if namespace == "" {
		config.Impersonate = *o.As
		return config, nil
	}
	accounts, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	if request, err = accounts.ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("get a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config = rest.AnonymousClientConfig(config)
	config.QPS, config.Burst, config.BearerToken = -1, -1, request.Status.Token
	return config, nil
}

// account returns the service account that the operator acts as; it is empty if it acts as another user.
func (o Operator[T]) account() (namespace, name string) {
	if o.As == nil {
		return "", ""
	}
	account, isAccount := strings.CutPrefix(o.As.UserName, "system:serviceaccount:")
	namespace, name, found := strings.Cut(account, ":")
	if !isAccount || !found {
		return "", ""
	}
	return namespace, name
}

// process is a running operator.
type process struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the manager has ended
	err    error         // of the manager; set before ended is closed
}

// start runs the operator until it is stopped. All its requests go through the transport.
// Without a namespace it sees components in all namespaces. With the namespace of a lease it is elected
// as the leader first.
func (o Operator[T]) start(t testing.TB, namespace, ofLease string, wrap func(http.RoundTripper) http.RoundTripper) *process {
	t.Helper()
	cfg, err := o.configOfOperator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg.ContentType = runtime.ContentTypeJSON // created objects are read from the answers
	cfg.Wrap(wrap)
	options := ctrl.Options{
		Scheme:                  o.Scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(10 * time.Second),
	}
	if namespace != "" {
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
	}
	if ofLease != "" {
		lock, err := component.NewLeaderLock(cfg, ofLease, leaseName)
		if err != nil {
			t.Fatalf("make the lock of the leader election: %v", err)
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface, options.LeaderElectionReleaseOnCancel = true, lock, true
	}
	manager, err := ctrl.NewManager(cfg, options)
	if err != nil {
		t.Fatalf("make the manager of the operator: %v", err)
	}
	if err := o.SetUp(manager); err != nil {
		t.Fatalf("set up the operator: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &process{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = manager.Start(ctx)
	}()
	return p
}

// failure returns an error if the operator has ended by itself.
func (p *process) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the operator ended: %w", cmp.Or(p.err, errors.New("without an error")))
	default:
		return nil
	}
}

// stop ends the operator and waits for its end.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.cancel()
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		t.Errorf("the operator did not stop within %s", stopTimeout)
	}
}

// run runs a case as a sub-test, if the test can have some.
func run(t testing.TB, name string, f func(t testing.TB)) {
	t.Helper()
	if parent, ok := t.(*testing.T); ok {
		parent.Run(name, func(t *testing.T) {
			t.Helper()
			f(t)
		})
		return
	}
	f(t)
}
