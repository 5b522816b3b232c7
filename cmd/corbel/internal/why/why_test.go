// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

const operatorName = "test.corbel.run"

// bed is a cluster with a few operators of one type.
type bed struct {
	*testing.T
	client    client.Client
	config    *rest.Config
	collector Collector
	requests  *atomic.Int64 // of the collector, without discovery
}

func newBed(t *testing.T) *bed {
	t.Helper()
	e := env.Shared(t)
	check.Must(envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"../../../../pkg/component/testdata/crds"}}))(t)
	b := &bed{T: t, config: e.Config(), requests: &atomic.Int64{}}
	b.config.QPS = -1
	b.client = newClient(t, b.config)
	counted := rest.CopyConfig(b.config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if !discovery.MatchString(r.URL.Path) {
				b.requests.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	b.collector = Collector{Reader: newClient(t, counted)}
	return b
}

var discovery = regexp.MustCompile(`^/(?:api|apis)(?:/[^/]+)?(?:/[^/]+)?$`)

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c := check.Must(client.New(config, client.Options{Scheme: newScheme(t)}))(t)
	return c
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, widget.AddToScheme} {
		check.NoError(t, add(scheme))
	}
	return scheme
}

// apply creates the objects of a text.
func (b *bed) apply(namespace, text string) {
	b.Helper()
	for _, object := range parse(b, text) {
		if object.GetNamespace() == "" && namespace != "" {
			object.SetNamespace(namespace)
		}
		check.NoError(b, b.client.Create(b.Context(), object))
	}
}

func parse(t testing.TB, text string) []client.Object {
	t.Helper()
	var objects []client.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// startOperator runs an operator for the components in some namespaces, until the returned function is called.
func (b *bed) startOperator(home string, namespaces []string, render func(namespace string, values map[string]string) string) (stop func()) {
	b.Helper()
	lock := check.Must(component.NewLeaderLock(b.config, home, operatorName))(b)
	caches := map[string]cache.Config{}
	for _, namespace := range namespaces {
		caches[namespace] = cache.Config{}
	}
	manager, err := ctrl.NewManager(b.config, ctrl.Options{
		Scheme: newScheme(b.T), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, Cache: cache.Options{DefaultNamespaces: caches},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		// The machine may be busy.
		LeaseDuration: new(60 * time.Second), RenewDeadline: new(40 * time.Second), RetryPeriod: new(time.Second),
	})
	check.NoError(b, err)
	generator := manifests.GeneratorFunc(func(_ context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		spec := parameters.(*widget.Spec)
		return parse(b, render(namespace, spec.Values)), nil
	})
	reconciler := component.NewReconciler[*widget.Widget](operatorName, generator, component.ReconcilerOptions{
		Operator: component.OperatorOptions{OperatorNamespace: &home}, Controller: component.ControllerOptions{LeaderLock: lock},
	})
	check.NoError(b, reconciler.SetupWithManager(manager))
	return env.Run(b, manager)
}

func (b *bed) createNamespace(name string) {
	b.Helper()
	check.NoError(b, b.client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

func (b *bed) widget(namespace string) *widget.Widget {
	b.Helper()
	w := &widget.Widget{}
	check.NoError(b, b.client.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: "main"}, w))
	return w
}

// explain reads the component and explains it, and compares the number of requests with what was sent.
func (b *bed) explain(namespace string, collector Collector, ahead time.Duration) Chain {
	b.Helper()
	before := b.requests.Load()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	check.NoError(b, b.collector.Reader.Get(b.Context(), client.ObjectKey{Namespace: namespace, Name: "main"}, object))
	w := &widget.Widget{}
	content := check.Must(object.MarshalJSON())(b)
	check.NoError(b, json.Unmarshal(content, w))
	facts := Facts{Object: object, Status: w.Status.Status, Reconciler: operatorName}
	chain := check.Must(collector.Explain(b.Context(), facts, func() time.Time { return time.Now().Add(ahead) }))(b)
	if sent := int(b.requests.Load() - before); collector == b.collector && (sent != chain.Requests || sent > MaxRequests) {
		b.Errorf("%s: %d requests were sent, the chain says %d, and at most %d are allowed", namespace, sent, chain.Requests, MaxRequests)
	}
	return chain
}

// checkConditions checks the conditions of all components that are left.
func (b *bed) checkConditions() {
	b.Helper()
	list := &widget.WidgetList{}
	check.NoError(b, b.client.List(b.Context(), list))
	for i := range list.Items {
		w := &list.Items[i]
		if len(w.Status.Conditions) > 0 {
			conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
		}
	}
}

func readyOf(w *widget.Widget) metav1.Condition {
	if ready := apimeta.FindStatusCondition(w.Status.Conditions, "Ready"); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

func TestTheCauseIsNamed(t *testing.T) {
	if !slice.FromEnvironment(t).Whole() {
		t.Skip("it breaks 32 components in a cluster, which takes minutes: make test-tools runs it. The rules have tests without a cluster, and the tests of internal/cli run the command")
	}
	started := time.Now()
	b := newBed(t)
	all := scenarios()
	texts := map[string]func(map[string]string) string{}
	var namespaces []string
	for _, home := range []string{"operator", "down", "silent"} {
		b.createNamespace(home)
	}
	for i := range all {
		s := &all[i]
		b.createNamespace(s.namespace)
		texts[s.namespace] = s.manifests
		if s.operator == "" {
			namespaces = append(namespaces, s.namespace)
		}
		if s.before != nil {
			s.before(b)
		}
	}
	render := func(namespace string, values map[string]string) string { return texts[namespace](values) }
	b.startOperator("operator", namespaces, render)
	stopDown := b.startOperator("down", []string{"s23"}, render)
	stopSilent := b.startOperator("silent", []string{"s24", "s25"}, render)
	for i := range all {
		s := &all[i]
		w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "main", Annotations: s.annotations}, Spec: s.spec}
		check.NoError(b, b.client.Create(b.Context(), w))
	}
	for i := range all {
		if all[i].ready {
			env.Until(b, all[i].namespace+" is Ready", func() error {
				if ready := readyOf(b.widget(all[i].namespace)); ready.Status != metav1.ConditionTrue {
					return errors.New(ready.Message)
				}
				return nil
			})
		}
		if all[i].after != nil {
			all[i].after(b)
		}
	}
	b.apply("down", deployment("test-operator", "", "replicas: 0"))
	b.apply("silent", deployment("test-operator", "", ""))
	stopDown()
	stopSilent()
	for _, namespace := range []string{"s23", "s24"} {
		w := b.widget(namespace)
		w.Spec.Values = map[string]string{"phase": "2"}
		check.NoError(b, b.client.Update(b.Context(), w))
	}
	t.Logf("all is seeded after %s", time.Since(started).Round(time.Millisecond))

	guide := check.Must(os.ReadFile("../../../../docs/howto-why.md"))(b)
	right, most := 0, 0
	for _, s := range all {
		chain, wrong := b.judge(s)
		most = max(most, chain.Requests)
		if wrong == nil {
			right++
		} else {
			t.Errorf("%s: %v\n%s\nReady says: %s", s.name, wrong, chain.Text(time.Now()), readyOf(b.widget(s.namespace)).Message)
		}
		// The guide has a row for the cause, with the command.
		row := fmt.Sprintf("(?m)^\\| %s \\| .+ \\| `%s` \\|$", regexp.QuoteMeta(s.name), regexp.QuoteMeta(masked(chain.Command)))
		if !regexp.MustCompile(row).Match(guide) {
			t.Errorf("%s: docs/howto-why.md has no row with the command %s", s.name, masked(chain.Command))
		}
		if s.printed != "" {
			b.checkCommand(s)
		}
	}
	t.Logf("%d of %d causes are named, with %d requests at most, after %s", right, len(all), most, time.Since(started).Round(time.Millisecond))
	b.checkConditions()
	b.checkRights()
}

// podName is a name of a pod, with random parts.
var podName = regexp.MustCompile(`\b(web|db|backup)-[a-z0-9]+(?:-[a-z0-9]{5})?\b`)

func masked(text string) string { return podName.ReplaceAllString(text, "$1-x") }

// checkCommand runs the next command until it prints what it should. The pod may be another one by then.
func (b *bed) checkCommand(s scenario) {
	b.Helper()
	e := env.Shared(b)
	env.Until(b, "the command prints "+s.printed, func() error {
		arguments := strings.Fields(strings.TrimPrefix(b.explain(s.namespace, b.collector, s.ahead).Command, "kubectl "))
		out, err := exec.CommandContext(b.Context(), e.Program("kubectl"), append(arguments, "--kubeconfig", e.Kubeconfig())...).CombinedOutput()
		if err != nil || string(out) != s.printed+"\n" {
			return fmt.Errorf("kubectl %s: %v: %s", arguments, err, out)
		}
		return nil
	})
}

// judge waits until the explanation is as expected; it returns what is wrong if that does not come.
func (b *bed) judge(s scenario) (chain Chain, wrong error) {
	b.Helper()
	wrong = env.Await(b.Context(), func() error {
		if s.disturb != nil {
			s.disturb(b)
		}
		chain = b.explain(s.namespace, b.collector, s.ahead)
		if wrong := s.compare(chain, readyOf(b.widget(s.namespace)).Message); wrong != "" {
			return errors.New(wrong)
		}
		return nil
	})
	return chain, wrong
}

// compare returns what is not as expected.
func (s scenario) compare(chain Chain, ready string) string {
	cause := chain.Cause()
	if s.ready && s.code == "" {
		if !chain.Ready || len(chain.Notices) == 0 || !strings.Contains(chain.Notices[0], s.object) || !strings.Contains(chain.Command, s.command) {
			return fmt.Sprintf("the notices are %q and the command is %q, want %q and %q", chain.Notices, chain.Command, s.object, s.command)
		}
		return ""
	}
	for what, pair := range map[string][2]string{
		"code": {string(s.code), string(chain.Code)}, "field": {s.field, cause.Field},
	} {
		if pair[0] != pair[1] {
			return fmt.Sprintf("the %s is %q, want %q", what, pair[1], pair[0])
		}
	}
	switch {
	case !strings.HasPrefix(cause.Object.String(), s.object):
		return fmt.Sprintf("the object is %q, want %q", cause.Object, s.object)
	case !strings.Contains(chain.Command, s.command):
		return fmt.Sprintf("the command is %q, want %q", chain.Command, s.command)
	case !strings.Contains(cause.Message, s.message):
		return fmt.Sprintf("the message is %q, want %q", cause.Message, s.message)
	case s.heldBack != "" && !strings.Contains(strings.Join(chain.HeldBack, ", "), s.heldBack):
		return fmt.Sprintf("held back is %q, want %q", chain.HeldBack, s.heldBack)
	}
	if s.pod {
		return sameWords(chain, ready)
	}
	return ""
}

// sameWords compares what the condition and the chain say about a pod.
func sameWords(chain Chain, ready string) string {
	_, said, ok := strings.Cut(ready, "; pod ")
	if !ok {
		return "the condition does not name a pod yet: " + ready
	}
	name, said, _ := strings.Cut(said, ": ")
	said, _, _ = strings.Cut(said, "; ")
	said = strings.TrimSuffix(said, "…")
	for _, link := range chain.Links {
		if link.Object.Kind == "Pod" && link.Object.Name == name && strings.HasPrefix(link.Message, said) {
			return ""
		}
	}
	return fmt.Sprintf("the condition says of pod %s %q, which is in no link", name, said)
}

// checkRights explains as a user who may read nothing but the component.
func (b *bed) checkRights() {
	b.Helper()
	b.apply("", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: widgets-reader}
rules: [{apiGroups: [test.corbel.run], resources: [widgets], verbs: [get, list]}, {apiGroups: [apps], resources: [deployments], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: widgets-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: widgets-reader}
subjects: [{kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}]
`)
	alice := rest.CopyConfig(b.config)
	alice.Impersonate = rest.ImpersonationConfig{UserName: "alice"}
	collector := Collector{Reader: newClient(b.T, alice)}
	want := []string{"Lease operator/test.corbel.run: alice may not get leases",
		"objects of kind Pod in namespace s01: alice may not list pods"}
	var chain Chain
	env.Until(b, "what may not be read is named", func() error {
		chain = b.explain("s01", collector, 0)
		if !slices.Equal(chain.Unknown, want) {
			return fmt.Errorf("%q is named", chain.Unknown)
		}
		return nil
	})
	if cause := chain.Cause(); cause.Object.String() != "Deployment s01/web" || chain.Command != "kubectl -n s01 describe deployment web" {
		b.Errorf("without rights the cause is %+v, and the command %q", cause, chain.Command)
	}
}
