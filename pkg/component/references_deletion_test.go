// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// nosy is an operator with a right to read the Secret creds that can be revoked.
type nosy struct {
	*bed
	right *rbacv1.RoleBinding
	hooks []string
}

func newNosy(t *testing.T) *nosy {
	t.Helper()
	n := &nosy{bed: newBed(t, rendering(), component.ReconcilerOptions{})}
	user := "operator-of-" + n.namespace
	rights := slices.DeleteFunc(slices.Clone(ownRights), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "secrets" })
	digestKey := rule("", "secrets", "get")
	digestKey.ResourceNames = []string{operatorName + "-digest-key"}
	n.grant(user, append(rights, digestKey, rule("", "secrets", "create"), rule("", "configmaps", "get list watch create update patch delete"))...)
	creds := rule("", "secrets", "get")
	creds.ResourceNames = []string{"creds"}
	n.check(n.client.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "creds"}, Rules: []rbacv1.PolicyRule{creds}}))
	n.right = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "creds"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "creds"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	n.restore()
	n.createSecret("creds", map[string]string{"password": canary})
	n.user, n.auditOptions.User = user, user
	n.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Operator: component.OperatorOptions{OperatorNamespace: &n.namespace, ClusterUID: new("a-name-of-this-cluster")},
	}).WithPreDeleteHook(func(_ context.Context, _ client.Client, w *widget.Widget) error {
		n.hooks = append(n.hooks, string(w.Spec.Password.Value()))
		return nil
	})
	n.check(n.reconciler.SetupWithManager(n.restricted(user)))
	return n
}

func (n *nosy) restore() {
	n.Helper()
	n.check(n.client.Create(n.Context(), n.right.DeepCopy()))
}

// revoke takes the right away, and waits until the server knows that.
func (n *nosy) revoke() {
	n.Helper()
	n.check(n.client.Delete(n.Context(), n.right.DeepCopy()))
	operator := must(client.New(must(n.env.ConfigFor(n.user))(n), client.Options{}))(n)
	n.eventually("the right to be gone", func() error {
		if operator.Get(n.Context(), n.key("creds"), &corev1.Secret{}) == nil {
			return errors.New("the Secret is read")
		}
		return nil
	})
}

// install makes the component ready, and deletes it after something happened to what it refers to.
func (n *nosy) install(happens func()) {
	n.Helper()
	n.create(widget.Spec{Values: map[string]string{"a": "1"}, Password: &component.SecretKeyReference{Name: "creds"}})
	n.eventually("the component to become ready", func() error { // the server learns of rights in its own time
		w, _, err := n.reconcile()
		if w.Status.IsReady() {
			return nil
		}
		return fmt.Errorf("it is not ready: %w", err)
	})
	happens()
	n.check(n.client.Delete(n.Context(), n.get()))
}

func TestADeletionWaitsForAReferenceThatCannotBeReadAndNamesIt(t *testing.T) {
	n := newNosy(t)
	n.install(n.revoke)
	n.resetRequests()
	w := n.expect(v1alpha1.StateDeleting, vocabulary.ReasonDeletionBlocked)
	_, _, message := w.Status.GetState()
	for _, text := range []string{"Widget " + n.namespace + "/main: ", "spec.password: read Secret " + n.namespace + "/creds: ", "forbidden", operatorName + "/abandon"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message does not say %q: %s", text, message)
		}
	}
	n.reconcile()
	if writes := n.writes(); len(writes) != 1 || writes[0] != "patch widgets/status main" {
		t.Errorf("writes while it waits: %v", writes)
	}
	if _, there := n.configMap("a"); !there || len(n.hooks) > 0 {
		t.Errorf("there: %t; hooks %d", there, len(n.hooks))
	}
	n.restore()
	n.untilGone()
	if _, left := n.configMap("a"); left || len(n.hooks) == 0 || n.hooks[0] != canary {
		t.Errorf("still there: %t; the hook was called %d times", left, len(n.hooks))
	}
}
