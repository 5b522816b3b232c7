// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// group is the API group of the components, and the name of their reconciler.
const group = "conformance.corbel.run"

// The types that a run brings, with their definitions: that of the components, and that of the operator of the scaffolded chart.
var (
	componentKind = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	sampleKind    = schema.GroupVersionKind{Group: "chart." + group, Version: "v1alpha1", Kind: "Sample"}
	definitions   = []string{"widgets." + group, "samples.chart." + group}
)

// cluster is the cluster under test, as its administrator.
type cluster struct {
	config     *rest.Config
	kubeconfig string
	simulated  bool // it is a control plane of test/env
	client     client.Client
	discovery  discovery.DiscoveryInterface
	version    *version.Info
	// prefix begins the name of each namespace, and of each object without a namespace, of this run.
	prefix string
	// home is the namespace of the operator.
	home string
	// given are the objects that a new namespace gets, as patterns of componenttest.
	given []string
	// unlisted has the error for each type that the server did not list.
	unlisted map[string]error
	// locked means that this run has created the definition of the components: no other run goes on in the cluster.
	locked, interrupted atomic.Bool
}

// connect returns the cluster of the flag kubeconfig, else a control plane. Nothing is created in it.
func connect(t *testing.T) *cluster {
	c := &cluster{prefix: "corbel-conformance-" + rand.String(6), kubeconfig: flag.Lookup("kubeconfig").Value.String(), unlisted: map[string]error{}}
	c.home = c.prefix + "-operator"
	stop := func() error { return nil }
	if c.simulated = c.kubeconfig == ""; c.simulated {
		e := env.New(t, env.Options{Cluster: true})
		c.config, c.kubeconfig, stop = e.Config(), e.Kubeconfig(), e.Stop
	} else {
		c.config = check.Must(clientcmd.BuildConfigFromFlags("", c.kubeconfig))(t)
	}
	c.config.QPS, c.config.ContentType = -1, runtime.ContentTypeJSON
	c.config.Wrap(c.nameNamespaces)
	c.config.Wrap(c.refuseWrites)
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(componentKind.GroupVersion(), &widget.Widget{}, &widget.WidgetList{})
	metav1.AddToGroupVersion(scheme, componentKind.GroupVersion())
	check.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	c.client = check.Must(client.New(c.config, client.Options{Scheme: scheme}))(t)
	c.discovery = check.Must(discovery.NewDiscoveryClientForConfig(c.config))(t)
	c.version = check.Must(c.discovery.ServerVersion())(t)
	if missing := check.Must(c.missingRights(t.Context()))(t); len(missing) > 0 {
		t.Fatalf("the user of the kubeconfig lacks rights; nothing was created. Use an administrator, or grant:\n%s", strings.Join(missing, "\n"))
	}
	for _, name := range definitions {
		switch err := c.client.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{}); {
		case err == nil:
			t.Fatalf("CustomResourceDefinition %s exists; nothing was created. Another run goes on, or was killed: docs/howto-conformance.md says how to remove what it has left", name)
		case !apierrors.IsNotFound(err):
			t.Fatal(err)
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		c.interrupted.Store(true)
		fmt.Fprintln(os.Stderr, "interrupted: removing what was created")
		if err := errors.Join(c.sweep(context.Background()), stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(130)
	}()
	return c
}

// patience is how long each state is waited for: a cluster may have to fetch the image.
const patience = 5 * time.Minute

// until calls a check each second until it returns no error.
func until(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("waited in vain until %s: %v", what, last)
	}
}

// needed are the rights of the user of the kubeconfig.
var needed = []rbacv1.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}}, // is anything left?
	{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets", "services", "serviceaccounts", "events"}, Verbs: allVerbs},
	{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
	{APIGroups: []string{""}, Resources: []string{"users", "serviceaccounts"}, Verbs: []string{"impersonate"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: allVerbs},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: allVerbs},
	{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterroles", "roles"}, Verbs: append([]string{"escalate", "bind"}, allVerbs...)},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"clusterrolebindings", "rolebindings"}, Verbs: allVerbs},
	{APIGroups: []string{"flowcontrol.apiserver.k8s.io"}, Resources: []string{"flowschemas"}, Verbs: allVerbs},
	{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: allVerbs},
	{APIGroups: []string{group, sampleKind.Group}, Resources: []string{"*"}, Verbs: allVerbs},
}

var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// missingRights returns the rules that the user lacks, as YAML.
func (c *cluster) missingRights(ctx context.Context) (missing []string, err error) {
	for _, rule := range needed {
		for _, in := range rule.APIGroups {
			for _, resource := range rule.Resources {
				var verbs []string
				for _, verb := range rule.Verbs {
					name, subresource, _ := strings.Cut(resource, "/")
					review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
						ResourceAttributes: &authorizationv1.ResourceAttributes{Group: in, Version: "*", Resource: name, Subresource: subresource, Verb: verb},
					}}
					if err := c.client.Create(ctx, review); err != nil {
						return nil, err
					}
					if !review.Status.Allowed {
						verbs = append(verbs, verb)
					}
				}
				if len(verbs) > 0 {
					missing = append(missing, fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%s]}", in, resource, strings.Join(verbs, ", ")))
				}
			}
		}
	}
	return missing, nil
}

// sweeping marks the context of requests that remove what a run has created.
type sweeping struct{}

// refuseWrites refuses what would create something after the run was interrupted.
func (c *cluster) refuseWrites(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if c.interrupted.Load() && r.Method != http.MethodGet && r.Context().Value(sweeping{}) == nil {
			return nil, errors.New("the run was interrupted")
		}
		return next.RoundTrip(r)
	})
}

// nameNamespaces gives each namespace that is created with a random name, as those of componenttest, the prefix of the
// run. Its pods need no more than the baseline of the Pod Security Standards.
func (c *cluster) nameNamespaces(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/api/v1/namespaces") { // the path of a server may have a prefix
			return next.RoundTrip(r)
		}
		namespace := &corev1.Namespace{}
		if err := errors.Join(json.NewDecoder(r.Body).Decode(namespace), r.Body.Close()); err != nil {
			return nil, err
		}
		if namespace.Name == "" {
			namespace.GenerateName = c.prefix + "-"
			namespace.Labels = podSecurity
		}
		body, err := json.Marshal(namespace)
		if err != nil {
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		sent.Body, _ = sent.GetBody()
		sent.ContentLength = int64(len(body))
		return next.RoundTrip(sent)
	})
}

// podSecurity are the labels of namespaces with pods.
var podSecurity = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}

// prepare creates the type of the components, and the namespace of the operator.
func prepare(t testing.TB, c *cluster) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	text := check.Must(os.ReadFile(filepath.Join("..", "..", "pkg", "component", "testdata", "crds", "test.corbel.run_widgets.yaml")))(t)
	check.NoError(t, yaml.Unmarshal(text, definition))
	definition.Name, definition.Spec.Group = definitions[0], group
	check.NoError(t, c.client.Create(t.Context(), definition))
	c.locked.Store(true)
	check.NoError(t, c.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.home}}))
	until(t, "the components are served", func() error { return c.client.List(t.Context(), &widget.WidgetList{}) })
	same := 0
	until(t, "the objects of a new namespace stay the same for ten seconds", func() error {
		before := c.given
		if err := c.findGiven(t.Context()); err != nil {
			return err
		}
		if same++; !slices.Equal(before, c.given) {
			same = 0
		}
		if same < 10 {
			return fmt.Errorf("they are %q", c.given)
		}
		return nil
	})
}

// random is the end of a name that the server has chosen.
var random = regexp.MustCompile(`-[a-z0-9]{5}$`)

// findGiven finds what controllers of the cluster have put into the namespace of the operator, as they do in each
// namespace: OpenShift adds secrets for each ServiceAccount, too.
func (c *cluster) findGiven(ctx context.Context) error {
	c.given = nil
	defer func() { slices.Sort(c.given) }() // the server lists its groups in any order
	return c.eachType(func(kind schema.GroupVersionKind, resource metav1.APIResource) {
		if !resource.Namespaced || resource.Name == "events" {
			return
		}
		var skipped []error // a type that cannot be listed is named at the end
		for _, object := range c.list(ctx, kind, &skipped, client.InNamespace(c.home)) {
			name := random.ReplaceAllString(object.Name, "-*")
			if rest, ok := strings.CutPrefix(name, "default-"); ok {
				name = "*-" + rest
			}
			c.given = append(c.given, kind.Kind+" "+name)
		}
	})
}

// eachType calls a function for each type that can be listed. The groups that the server does not describe are left out.
func (c *cluster) eachType(f func(schema.GroupVersionKind, metav1.APIResource)) error {
	served, err := c.discovery.ServerPreferredResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if failed != nil {
		for group, err := range failed.Groups {
			c.unlisted[group.String()] = err
		}
	}
	for _, list := range served {
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				f(schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind), resource)
			}
		}
	}
	return nil
}

// sweep removes all that the run has created, and waits until it is gone. A run without the lock has created nothing: the
// components and the definitions are those of another run.
func (c *cluster) sweep(ctx context.Context) error {
	if !c.locked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, sweeping{}, true), patience)
	defer cancel()
	for {
		left, errs := 0, []error{}
		for _, kind := range []schema.GroupVersionKind{
			componentKind, sampleKind, rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
			flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema"), corev1.SchemeGroupVersion.WithKind("Namespace"),
			apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		} {
			isComponent := kind == componentKind || kind == sampleKind
			for _, object := range c.list(ctx, kind, &errs) {
				if !isComponent && !strings.HasPrefix(object.Name, c.prefix) && !slices.Contains(definitions, object.Name) {
					continue
				}
				left++
				errs = append(errs, client.IgnoreNotFound(c.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})))
				if isComponent { // after a failure there is no operator that removes the finalizer
					patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,"finalizers":null}}`, object.UID))
					errs = append(errs, client.IgnoreNotFound(c.client.Patch(ctx, object, patch)))
				}
			}
		}
		err := errors.Join(errs...)
		if left == 0 && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("%d objects of the run %s are not gone", left, c.prefix))
		case <-time.After(time.Second):
		}
	}
}

// list returns the objects of a type that is served, without their content.
func (c *cluster) list(ctx context.Context, kind schema.GroupVersionKind, errs *[]error, options ...client.ListOption) (objects []*metav1.PartialObjectMetadata) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := c.client.List(ctx, list, options...); err != nil && !apimeta.IsNoMatchError(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		*errs = append(*errs, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err))
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		objects = append(objects, &list.Items[i])
	}
	return objects
}

// nothingIsLeft removes what serves all stories, and looks for objects of the run in all types of the server.
func nothingIsLeft(t testing.TB, c *cluster) {
	check.NoError(t, c.sweep(t.Context()))
	// The server removes the APIServices of the types a moment after their definitions.
	until(t, "nothing is left", func() error { return c.remains(t.Context()) })
}

// remains returns an error that names the objects of the run that exist.
func (c *cluster) remains(ctx context.Context) error {
	c.unlisted = map[string]error{}
	var errs []error
	err := c.eachType(func(kind schema.GroupVersionKind, resource metav1.APIResource) {
		var failed []error
		left := c.list(ctx, kind, &failed, client.HasLabels{group + "/" + vocabulary.LabelOwnerID})
		if !resource.Namespaced { // the namespaces of all other objects are gone
			left = append(left, slices.DeleteFunc(c.list(ctx, kind, &failed), func(object *metav1.PartialObjectMetadata) bool {
				return !strings.HasPrefix(object.Name, c.prefix) && !strings.HasSuffix(object.Name, "."+group)
			})...)
		}
		for _, object := range left {
			errs = append(errs, fmt.Errorf("%s %s/%s is left", resource.Kind, object.Namespace, object.Name))
		}
		if len(failed) > 0 {
			c.unlisted[kind.String()] = failed[0]
		}
	})
	return errors.Join(append(errs, err)...)
}
