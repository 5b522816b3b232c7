// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/slice"
)

// One operator and one component serve all of it: the commands only read.
func TestCommandsShowWhatIsInACluster(t *testing.T) {
	b := openBed(t)
	t.Run("without types of components", func(t *testing.T) {
		golden(t, "no types", b.run("get").text())
		golden(t, "no types check", b.run("check").text())
		golden(t, "no types name", b.run("tree", "corner").text())
	})
	manager := check.Must(shops.Operator(b.ctx, b.env, b.client, "../../../.."))(b)
	env.Run(t, manager)
	check.NoError(b, shops.Create(b.ctx, b.client, "corner"))
	for name, arguments := range map[string][]string{
		"get":            {"get"},
		"get all":        {"get", "-A"},
		"get kind":       {"get", "SHOPS.shop.example.com"},
		"get wide":       {"get", "shop", "-o", "wide"},
		"get name":       {"get", "-o", "name"},
		"get json":       {"get", "shop/corner", "-o", "json"},
		"get yaml":       {"get", "shops", "-o", "yaml"},
		"get selected":   {"get", "-l", "none=here"},
		"tree":           {"tree", "corner"},
		"tree pods":      {"tree", "shop/corner", "--pods"},
		"tree yaml":      {"tree", "shops", "corner", "-o", "yaml", "--pods"},
		"tree json":      {"tree", "shop/corner", "-o", "json"},
		"tree dot":       {"tree", "shop/corner", "-o", "dot"},
		"history":        {"history", "shop/corner"},
		"history json":   {"history", "shop/corner", "-o", "json"},
		"images":         {"images", "shop/corner"},
		"images name":    {"images", "shop/corner", "-o", "name"},
		"images json":    {"images", "shop/corner", "-o", "json"},
		"images all":     {"images", "-A"},
		"plan fleet":     {"plan", "-A", "--exit-code"},
		"diff none":      {"diff", "shop/corner"},
		"diff revisions": {"diff", "shop/corner", "--revision", "1..1"},
		"diff json":      {"diff", "shop/corner", "--revision", "1..1", "-o", "json"},
		"check":          {"check"},
		"check json":     {"check", "-o", "json"},
		"check restore":  {"check", "--restore"},
		"why":            {"why", "shop/corner"},
		"why json":       {"why", "shop/corner", "-o", "json"},
		"rbac":           {"rbac", "shop/corner"},
		"rbac account":   {"rbac", "shop/corner", "--service-account", shops.OperatorNamespace + "/none"},
		"owner":          {"owner", "deployment/corner-web"},
		"owner json":     {"owner", "deployment/corner-web", "-o", "json"},
		"owner none":     {"owner", "secret/corner-database"},
		"owner shared":   {"owner", "crd/promotions.shop.example.com"},
		// Mistakes.
		"unknown kind":     {"get", "shoops"},
		"unknown kind two": {"tree", "deploymentt/x"},
		"no component":     {"tree", "configmap/kube-root-ca.crt"},
		"no such name":     {"tree", "none"},
		"no such object":   {"tree", "shop/none"},
		"no name":          {"tree"},
		"too many":         {"tree", "shop", "corner", "more"},
		"bad format":       {"get", "-o", "xml"},
		"bad diff format":  {"diff", "shop/corner", "-o", "xml"},
		"bad selector":     {"get", "-l", "a in"},
		"bad revision":     {"diff", "shop/corner", "--revision", "3"},
		"no revision":      {"diff", "shop/corner", "--revision", "1..7"},
		"watch json":       {"get", "-w", "-o", "json"},
		"bad account":      {"rbac", "shop/corner", "--service-account", "none"},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, b.run(arguments...).text()) })
	}
	t.Run("owner of a pod", b.ownerOfAPod)
	t.Run("events", b.eventsOfAll)
	t.Run("collect", b.collects)
	t.Run("completion", b.completes)
	t.Run("drift", b.showsDrift)
	t.Run("rights", b.explainsRights)
	t.Run("steering", b.steers)
	t.Run("watch", b.watches)
	t.Run("restore", b.restores)
	t.Run("deletion", b.showsDeletion)
	t.Run("adoption", b.adopts)
	t.Run("release", b.releases)
	// The rest repeats commands under faults.
	if slice.FromEnvironment(t).Whole() {
		t.Run("races", b.racesWithAdopt)
		t.Run("crashes", b.survivesCrashes)
		t.Run("lost server", b.losesTheServer)
	}
}

func (b *bed) ownerOfAPod(t *testing.T) {
	b = b.in(t)
	pods := &corev1.PodList{}
	check.NoError(b, b.client.List(b.ctx, pods, client.InNamespace(market)))
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Name, "corner-web-") })
	golden(t, "owner pod", b.run("owner", "pod", pods.Items[i].Name).text())
}

func (b *bed) eventsOfAll(t *testing.T) {
	b = b.in(t)
	got := b.run("events", "shop/corner")
	if got.code != 0 || got.err != "" {
		t.Fatal(got)
	}
	check.Contains(t, got.out, "LAST SEEN", "Shop market/corner", "Deployment market/corner-web", "Pod market/corner-web-", "ReplicaSet market/")
	var list eventList
	if err := json.Unmarshal([]byte(b.run("events", "corner", "-o", "json").out), &list); err != nil || len(list.Items) == 0 || list.Kind != "EventList" {
		t.Errorf("%v: %v", err, list)
	}
}

func (b *bed) collects(t *testing.T) {
	b = b.in(t)
	file := filepath.Join(t.TempDir(), "case.tar.gz")
	if got := b.run("collect", "shop/corner", "--filename", file); got.code != 0 || got.err != "" {
		t.Fatal(got)
	}
	files := unpack(t, file)
	check.Contains(t, files["versions.txt"], "gitVersion")
	check.Contains(t, files["001-Shop-corner/tree.yaml"], "corner-web")
	check.Contains(t, files["LEFT-OUT.txt"], "log and metrics of the operator with the Lease")
}

func (b *bed) completes(t *testing.T) {
	b = b.in(t)
	if got := runAs(t.Context(), nil, "__complete", "rollback", "shop/corner", "-n", market, "--kubeconfig", b.env.Kubeconfig(), "--to", ""); !strings.HasPrefix(got.out, ":36\n") {
		t.Errorf("there is no earlier revision, and rollback --to is completed to %q", got.out)
	}
	for begin, want := range map[string]string{"": "shops\n", "shop/": "shop/corner\n", "shop/x": "", "pro": "", "cor": "corner\n"} {
		got := runAs(t.Context(), nil, "__complete", "tree", "-n", market, "--kubeconfig", b.env.Kubeconfig(), begin)
		if offered, _, _ := strings.Cut(got.out, ":"); offered != want {
			t.Errorf("%q is completed to %q, want %q", begin, offered, want)
		}
	}
}

// showsDrift changes what belongs to a suspended component, which is not repaired.
func (b *bed) showsDrift(t *testing.T) {
	b = b.in(t)
	s := shops.New("corner")
	b.patch(s, `{"metadata":{"annotations":{"shop.example.com/suspend":"true"}}}`)
	env.Until(b, "the Shop is suspended", func() error { return b.stateIs("corner", v1alpha1.StateSuspended) })
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "corner-web"}}
	check.NoError(b, b.client.Patch(b.ctx, deployment, client.RawPatch("application/strategic-merge-patch+json",
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example.com/shop:9.9"}]}}}}`)), client.FieldOwner("kubectl-edit")))
	env.Until(b, "the Deployment is rolled out", func() error {
		if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if s := deployment.Status; s.ObservedGeneration != deployment.Generation || s.UpdatedReplicas != 2 || s.Replicas != 2 || s.AvailableReplicas != 2 {
			return fmt.Errorf("it has the status %v", s)
		}
		return nil
	})
	check.NoError(b, b.client.Delete(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "corner-settings"}}))
	golden(t, "diff", b.run("diff", "shop/corner").text())
	golden(t, "diff yaml", b.run("diff", "shop/corner", "-o", "yaml").text())
	golden(t, "get suspended", b.run("get").text())
	b.patch(s, `{"metadata":{"annotations":{"shop.example.com/suspend":null}}}`)
	b.untilReady("corner")
	if got := b.run("diff", "shop/corner"); got.code != 0 {
		t.Errorf("after the repair: %v", got)
	}
}

// explainsRights looks with users who may do little.
func (b *bed) explainsRights(t *testing.T) {
	b = b.in(t)
	golden(t, "forbidden", b.runUser(t, "nobody", "get").text())
	golden(t, "forbidden all", b.runUser(t, "nobody", "get", "-A").text())
	golden(t, "forbidden tree", b.runUser(t, "nobody", "tree", "shop/corner").text())
	golden(t, "forbidden check", b.runUser(t, "nobody", "check").text())
	check.NoError(b, b.client.Create(b.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "reader"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"shop.example.com"}, Resources: []string{"shops"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
		},
	}))
	check.NoError(b, b.client.Create(b.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	}))
	env.Until(b, "the right is granted", func() error {
		if got := b.runUser(t, "reader", "get", "shops"); got.code != 0 {
			return &ExitError{Code: got.code}
		}
		return nil
	})
	golden(t, "forbidden diff", b.runUser(t, "reader", "diff", "shop/corner").text())
	golden(t, "forbidden images", b.runUser(t, "reader", "images", "shop/corner", "-o", "name").text())
	golden(t, "forbidden partly", b.runUser(t, "reader", "tree", "shop/corner", "--pods").text())
}

// runUser runs a command as a user of its own.
func (b *bed) runUser(t *testing.T, user string, arguments ...string) answer {
	config := check.Must(b.env.ConfigFor(user))(b)
	file := t.TempDir() + "/kubeconfig"
	check.NoError(b, clientcmd.WriteToFile(kubeconfigOf(config), file))
	return runAs(t.Context(), nil, append(arguments, "--kubeconfig", file, "--namespace", market)...)
}

func kubeconfigOf(config *rest.Config) clientcmdapi.Config {
	kubeconfig := *clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	kubeconfig.CurrentContext = "test"
	return kubeconfig
}

// watches ends a watch as Ctrl-C does.
func (b *bed) watches(t *testing.T) {
	b = b.in(t)
	for _, arguments := range [][]string{{"get", "-w"}, {"tree", "shop/corner", "-w"}} {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		done, begun := make(chan answer, 1), make(chan struct{})
		go func() {
			done <- runAs(ctx, signals(begun), append(arguments, "--kubeconfig", b.env.Kubeconfig(), "--namespace", market)...)
		}()
		<-begun
		cancel()
		if got := <-done; got.code != CodeInterrupted || got.err != "" || !strings.Contains(got.out, "corner") {
			t.Errorf("%s: %v", arguments, got)
		}
	}
}

// signals closes a channel when a command has printed something, or begins to wait.
func signals(begun chan struct{}) func(*frame) {
	once := sync.OnceFunc(func() { close(begun) })
	return func(f *frame) {
		f.Out, f.ErrOut = &signal{f.Out, once}, &signal{f.ErrOut, once}
	}
}

// signal is a writer that calls a function after each write.
type signal struct {
	io.Writer
	written func()
}

func (s *signal) Write(p []byte) (int, error) {
	defer s.written()
	return s.Writer.Write(p)
}

// showsDeletion holds the component back by a finalizer of another client.
func (b *bed) showsDeletion(t *testing.T) {
	b = b.in(t)
	s := shops.New("corner")
	b.patch(s, `{"metadata":{"finalizers":["shop.example.com","example.com/held"]}}`)
	golden(t, "delete", b.run("delete", "shop/corner", "--wait=false").text())
	env.Until(b, "the operator says what it waits for", func() error {
		if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if state, _, message := s.Status.GetState(); !strings.Contains(message, "example.com/held") {
			return fmt.Errorf("%s: %s", state, message)
		}
		return nil
	})
	golden(t, "deleting", b.run("tree", "shop/corner").text())
	golden(t, "get deleting", b.run("get", "shop/corner").text())
	if got := b.run("plan", "shop/corner", "--exit-code"); got.code != planview.ExitBlocked || !strings.Contains(got.out, "has the finalizer example.com/held") {
		t.Errorf("a plan of a deletion that the component holds: %s", got.text())
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "corner-settings"}}
	b.patch(settings, `{"metadata":{"finalizers":["example.com/kept"]}}`)
	b.patch(s, `{"metadata":{"finalizers":["shop.example.com"]}}`)
	env.Until(b, "the plan of the deletion names the dependent that holds it", func() error {
		got := b.run("plan", "shop/corner", "--exit-code")
		if got.code != planview.ExitBlocked || !strings.Contains(got.out, ": deletion, ") || !strings.Contains(got.out, "corner-settings  blocked  deleted, and held by finalizers example.com/kept") {
			return errors.New(got.text())
		}
		return nil
	})
	b.patch(settings, `{"metadata":{"finalizers":null}}`)
	if got := b.run("wait", "shop/corner", "--for", "gone"); got.code != 0 {
		t.Errorf("a wait for the end: %v", got)
	}
}

// losesTheServer kills the API server under a watch.
func (b *bed) losesTheServer(t *testing.T) {
	b = b.in(t)
	done, begun := make(chan answer, 1), make(chan struct{})
	go func() {
		done <- runAs(t.Context(), signals(begun), "get", "-w", "--kubeconfig", b.env.Kubeconfig(), "--namespace", market)
	}()
	<-begun
	check.NoError(b, b.env.KillAPIServer())
	got := <-done
	if got.code != CodeTrouble || !strings.Contains(got.err, "the API server cannot be reached") {
		t.Errorf("a watch: %v", got)
	}
	golden(t, "no server", b.run("get", "shops").text())
	check.NoError(b, b.env.RestartAPIServer(b.ctx))
}
