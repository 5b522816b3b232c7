// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/env"
)

func TestARemoteComponentLivesInTheClusterOfItsKubeconfigOnly(t *testing.T) {
	b := newRemoteBed(t, otherCluster(t))
	account, rotated := "system:serviceaccount:"+b.namespace+":deployer", b.farUser+"-rotated"
	b.grantThere("deployer")
	b.setKubeconfig(b.kubeconfig(b.farUser))
	spec := remoteSpec(map[string]string{"a": "1", "b": "2"})
	spec.ServiceAccountName = "deployer"
	b.resetRequests()
	b.markThere()
	b.create(spec)
	b.until(v1alpha1.StateReady)
	if value, ok := b.farConfigMap("b"); !ok || value != "2" {
		t.Errorf("config map b there: %q, %v", value, ok)
	}

	// Rotated credentials are no change, and are used at once.
	writes := b.writesThere()
	b.setKubeconfig(b.kubeconfig(rotated))
	if w := b.until(v1alpha1.StateReady); w.Status.Revision != 1 || !slices.Equal(b.writesThere(), writes) {
		t.Errorf("revision %d; writes %q", w.Status.Revision, b.writesThere()[len(writes):])
	}
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"a": "2"} })
	b.until(v1alpha1.StateReady)
	if diff := cmp.Diff([]string{rotated + ": update configmaps a", rotated + ": delete configmaps b"}, b.writesThere()[len(writes):]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	b.remove()
	if _, ok := b.farConfigMap("a"); ok {
		t.Error("config map a was still there")
	}

	// Every request is sent as the prescribed user, and none about a dependent to the local cluster.
	seen := 0
	for _, e := range b.eventsThere()[b.sinceThere:] {
		if e.User == b.farUser || e.User == rotated {
			seen++
			if e.Impersonated != account {
				t.Errorf("there: %s %s as %q", e.Verb, e.URI, e.Impersonated)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d requests there", seen)
	}
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && (e.Impersonated != "" || e.Resource == "configmaps" && e.Name != "") {
			t.Errorf("here: %s %s as %q", e.Verb, e.URI, e.Impersonated)
		}
	}
}

// grantThere makes a service account in the second cluster that may do what it needs.
func (b *remoteBed) grantThere(name string) {
	b.Helper()
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: b.namespace, Name: name}}
	clusterWide := metav1.ObjectMeta{Name: b.namespace}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: clusterWide},
		&rbacv1.ClusterRole{ObjectMeta: clusterWide, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: clusterWide, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: b.namespace}},
	} {
		b.check(b.far.Create(b.Context(), object))
	}
}

// other is a second cluster for the tests of this package. TestMain stops it.
var other struct {
	sync.Once
	env *env.Environment
	err error
}

func otherCluster(t testing.TB) *env.Environment {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a second cluster, which is left out with -short")
	}
	other.Do(func() {
		other.env, other.err = env.Start(context.WithoutCancel(t.Context()), env.Options{AuditLog: true})
	})
	if other.err != nil {
		t.Fatal(other.err)
	}
	return other.env
}

func stopOtherCluster() error {
	if other.env == nil {
		return nil
	}
	return other.env.Stop()
}

// anyAddress is a dial policy for servers on this machine.
func anyAddress(context.Context, string, netip.AddrPort) error { return nil }

// remoteBed is a bed with a component that is deployed into the second cluster.
type remoteBed struct {
	*bed
	there      *env.Environment
	far        client.Client // of an administrator there
	farUser    string        // the user of the operator there
	sinceThere int
}

func newRemoteBed(t *testing.T, there *env.Environment) *remoteBed {
	t.Helper()
	b := &remoteBed{
		bed:     newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Users: component.UserOptions{TargetDialPolicy: anyAddress}}),
		there:   there,
		farUser: "far-" + strings.ToLower(t.Name()),
	}
	b.far = must(client.New(there.Config(), client.Options{}))(t)
	return b
}

// kubeconfigOf is one with a certificate and nothing else.
func kubeconfigOf(t testing.TB, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["it"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["it"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	file.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	file.CurrentContext = "it"
	return string(must(clientcmd.Write(*file))(t))
}

// kubeconfig leads to the second cluster as an administrator of the name.
func (b *remoteBed) kubeconfig(user string) string {
	b.Helper()
	return kubeconfigOf(b, must(b.there.ConfigFor(user, "system:masters"))(b))
}

// setKubeconfig writes the secret.
func (b *remoteBed) setKubeconfig(content string) {
	b.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "far"}, StringData: map[string]string{"value": content}}
	err := b.client.Create(b.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = b.client.Update(b.Context(), secret)
	}
	b.check(err)
}

func remoteSpec(values map[string]string) widget.Spec {
	return widget.Spec{
		ClientSpec: component.ClientSpec{KubeConfig: &component.KubeConfigSpec{SecretRef: component.SecretKeyReference{Name: "far"}}},
		Values:     values,
	}
}

// install makes a component that is ready in the second cluster.
func (b *remoteBed) install() *widget.Widget {
	b.Helper()
	b.setKubeconfig(b.kubeconfig(b.farUser))
	b.create(remoteSpec(map[string]string{"a": "1", "b": "2"}))
	return b.until(v1alpha1.StateReady)
}

// farConfigMap returns the value of a config map in the second cluster.
func (b *remoteBed) farConfigMap(name string) (value string, exists bool) {
	b.Helper()
	configMap := &corev1.ConfigMap{}
	err := b.far.Get(b.Context(), b.key(name), configMap)
	if apierrors.IsNotFound(err) {
		return "", false
	}
	b.check(err)
	return configMap.Data["value"], true
}

func (b *remoteBed) markThere() { b.sinceThere = len(b.eventsThere()) }

func (b *remoteBed) eventsThere() []env.AuditEvent {
	b.Helper()
	return must(b.there.AuditEvents(b.Context()))(b)
}

// writesThere returns what was written in the namespace there since the last resetRequests, and by which user.
func (b *remoteBed) writesThere() []string {
	b.Helper()
	var writes []string
	for _, e := range b.eventsThere()[b.sinceThere:] {
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		if !reads && e.Namespace == b.namespace && e.Code < 400 {
			writes = append(writes, fmt.Sprintf("%s: %s %s %s", e.User, e.Verb, e.Resource, e.Name))
		}
	}
	return writes
}

// expect reconciles until the component says this.
func (b *remoteBed) expect(reason, message string) (w *widget.Widget) {
	b.Helper()
	b.eventually(reason+": "+message, func() (err error) {
		w, _, err = b.reconcile()
		if _, got, text := w.Status.GetState(); got != reason || !strings.Contains(text, message) {
			return fmt.Errorf("%s: %s; %v", got, text, err)
		}
		return nil
	})
	return w
}

func TestBadKubeconfigsTouchNothing(t *testing.T) {
	b := newRemoteBed(t, otherCluster(t))
	good := b.kubeconfig(b.farUser)
	b.install()
	unknown := b.there.Config()
	unknown.CertData, unknown.KeyData, unknown.BearerToken = nil, nil, "an-unknown-token"
	for _, test := range []struct{ name, kubeconfig, reason, message string }{
		{"emptied", "", vocabulary.ReasonKubeconfigEmpty, "kubeconfig: is empty"},
		{"white space", " \n", vocabulary.ReasonKubeconfigEmpty, "kubeconfig: is empty"},
		{"nothing in it", "{}", vocabulary.ReasonKubeconfigInvalid, "no cluster is defined"},
		{"garbage", "what: [is: this", vocabulary.ReasonKubeconfigInvalid, "neither YAML nor JSON"},
		{"a program", strings.Replace(good, "users:\n", "users:\n- name: x\n  user:\n    exec: {command: /bin/true}\n", 1),
			vocabulary.ReasonKubeconfigForbiddenField, "kubeconfig: users[0].user.exec: is not allowed"},
		{"a token that is not known", kubeconfigOf(t, unknown), vocabulary.ReasonError,
			"the kubeconfig in Secret far (spec.kubeConfig.secretRef) is of no use: the cluster at " + unknown.Host + " cannot be identified"},
		{"the local cluster", kubeconfigOf(t, b.env.Config()), vocabulary.ReasonTargetIsLocal, "the kubeconfig leads to the cluster that the component lives in"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.resetRequests()
			b.markThere()
			b.setKubeconfig(test.kubeconfig)
			w := b.expect(test.reason, test.message)
			if _, _, message := w.Status.GetState(); strings.Contains(message, "an-unknown-token") {
				t.Errorf("a secret is in the message: %s", message)
			}
			writes := slices.DeleteFunc(b.writes(), func(write string) bool { return write == "patch widgets/status main" })
			if writes = append(writes, b.writesThere()...); len(writes) > 0 {
				t.Errorf("writes: %q", writes)
			}
			b.wantNone("a")
		})
	}
	b.update(func(w *widget.Widget) { w.Spec.KubeConfig = nil })
	b.expect(vocabulary.ReasonTargetChanged, "point the target back")
	b.wantNone("a")
	b.update(func(w *widget.Widget) { w.Spec.ClientSpec = remoteSpec(nil).ClientSpec })
	b.setKubeconfig(good)
	b.until(v1alpha1.StateReady)
}

func TestAddressesOfThisMachineAreRefusedUnlessAllowed(t *testing.T) {
	b := &remoteBed{bed: newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}), there: otherCluster(t)}
	b.setKubeconfig(b.kubeconfig("far"))
	b.create(remoteSpec(map[string]string{"a": "1"}))
	b.expect(vocabulary.ReasonTargetAddressDenied, "connections to the address 127.0.0.1 are not allowed: it is the machine that the operator runs on")
}
