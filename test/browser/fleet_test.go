// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/check"
)

// A Branch is like a Shop, and no operator reconciles it: its status is what a test writes.
const (
	branchAPI  = "branch.example.com/v1alpha1"
	branchType = "branches.branch.example.com"
	fleetSize  = 1000
)

// createFleet creates the type Branch, and a fleet of branches that are ready, once. If that fails, so does each test that
// needs it.
func (b *bed) createFleet(t testing.TB) {
	t.Helper()
	check.NoError(t, b.fleet())
}

func (b *bed) createBranches() error {
	if err := b.installBranches(); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(context.Background())
	running.SetLimit(16)
	for i := range 10 {
		if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamOf(i)}}); err != nil {
			return err
		}
	}
	for i := range fleetSize {
		running.Go(func() error {
			return b.createBranch(ctx, teamOf(i), fmt.Sprintf("branch-%04d", i), branchStatus(v1alpha1.StateReady, fmt.Sprintf("%d of %d dependent objects are ready", i%9+3, i%9+3)))
		})
	}
	return running.Wait()
}

func teamOf(i int) string { return fmt.Sprintf("team-%d", i%10) }

// installBranches installs the type, with the definition of a Shop.
func (b *bed) installBranches() error {
	text, err := os.ReadFile(repository + "/examples/shop/config/crd/shop.example.com_shops.yaml")
	if err != nil {
		return err
	}
	replaced := strings.NewReplacer("shop.example.com", "branch.example.com", "shops", "branches", "ShopList", "BranchList", "kind: Shop", "kind: Branch", "singular: shop", "singular: branch").Replace(string(text))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(replaced), crd); err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(b.env.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	return err
}

func branchStatus(state v1alpha1.State, message string) component.Status {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Failing", Message: message, LastTransitionTime: metav1.Now(), ObservedGeneration: 1}
	if state == v1alpha1.StateReady {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Ready"
	}
	progress, _, _ := strings.Cut(message, " dependent")
	progress = strings.ReplaceAll(progress, " of ", "/")
	if strings.ContainsAny(progress, " :<") {
		progress = ""
	}
	return component.Status{
		ObservedGeneration: 1, Revision: 1, Reconciler: "branch.example.com", OwnerID: "test", State: state, Progress: progress, Conditions: []metav1.Condition{ready},
	}
}

// createBranch creates a Branch with a status.
func (b *bed) createBranch(ctx context.Context, namespace, name string, status component.Status) error {
	branch := branchOf(namespace, name)
	branch.Object["spec"] = map[string]any{"databaseSecret": "none"}
	if err := b.client.Create(ctx, branch); err != nil {
		return err
	}
	return b.setStatus(ctx, branch, status)
}

func (b *bed) setStatus(ctx context.Context, branch *unstructured.Unstructured, status component.Status) error {
	serialised, err := json.Marshal(status)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(serialised, &fields); err != nil {
		return err
	}
	branch.Object["status"] = fields
	return b.client.Status().Update(ctx, branch, client.FieldOwner("branch.example.com"))
}

func branchOf(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": branchAPI, "kind": "Branch", "metadata": map[string]any{"namespace": namespace, "name": name},
	}}
}
