// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
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
	w := b.until(v1alpha1.StateReady)
	if diff := cmp.Diff([]string{rotated + ": update configmaps a", rotated + ": delete configmaps b"}, b.writesThere()[len(writes):]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
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

// impostor answers like the API server of an unknown cluster.
func impostor(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/namespaces/kube-system") {
			t.Errorf("%s %s", request.Method, request.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"another"}}`)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return kubeconfigOf(t, &rest.Config{Host: server.URL, BearerToken: "x", TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
}

func TestAnotherClusterBehindTheKubeconfigStallsTheComponentAndTouchesNothing(t *testing.T) {
	b := newRemoteBed(t, otherCluster(t))
	good := b.kubeconfig(b.farUser)
	b.install()
	b.markThere()
	b.setKubeconfig(impostor(t))
	b.expect(vocabulary.ReasonTargetChanged, "but the target is the cluster another")
	b.update(func(w *widget.Widget) { w.Spec.KubeConfig = nil })
	b.expect(vocabulary.ReasonTargetChanged, "point the target back")
	if _, ok := b.configMap("a"); ok {
		t.Error("there is a config map in the local cluster")
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.expect(vocabulary.ReasonTargetChanged, "point the target back")
	if writes := b.writesThere(); len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
	b.update(func(w *widget.Widget) { w.Spec = remoteSpec(nil) })
	b.setKubeconfig(good)
	b.untilGone()
	if _, ok := b.farConfigMap("a"); ok {
		t.Error("config map a was still there")
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

func TestAKubeconfigThatIsLimitedToANamespaceIsEnough(t *testing.T) {
	b := newRemoteBed(t, otherCluster(t))
	b.check(b.far.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
	b.check(b.far.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: b.farUser}},
	}))
	b.setKubeconfig(kubeconfigOf(b, must(b.there.ConfigFor(b.farUser))(b)))
	b.create(remoteSpec(map[string]string{"a": "1"}))
	w := b.until(v1alpha1.StateReady)
	if target := w.Status.Inventory.Target; !cluster.IsAddress(target) {
		t.Errorf("the cluster is known as %q", target)
	}
	// More rights later make no other cluster of it.
	b.setKubeconfig(b.kubeconfig(b.farUser + "-more"))
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	b.until(v1alpha1.StateReady)
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if _, ok := b.farConfigMap("a"); ok {
		t.Error("config map a was still there")
	}
}

func TestATargetThatRefusesItsCredentialsHoldsOnlyWhatWasWrittenThere(t *testing.T) {
	b := newRemoteBed(t, otherCluster(t))
	config := b.there.Config()
	refused := kubeconfigOf(t, &rest.Config{Host: config.Host, BearerToken: "unknown", TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}})
	b.setKubeconfig(refused)
	b.create(remoteSpec(map[string]string{"a": "1"}))
	b.expect(vocabulary.ReasonError, "the kubeconfig in Secret far (spec.kubeConfig.secretRef) is of no use: the cluster at "+config.Host+" cannot be identified")
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()

	b.install()
	b.setKubeconfig(refused)
	b.check(b.client.Delete(t.Context(), b.get()))
	b.expect(vocabulary.ReasonDeletionBlocked, "is of no use: the cluster at "+config.Host+" cannot be identified")
	b.expect(vocabulary.ReasonDeletionBlocked, "/abandon to \"true\"")
	b.setKubeconfig(b.kubeconfig(b.farUser))
	b.untilGone()
}
