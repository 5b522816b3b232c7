// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/env"
)

// TestKubectlWaitsForReady lets kubectl wait for components with each of the recorded statuses, and
// compares it with kstatus: of the latest generation, and of one that has changed since.
func TestKubectlWaitsForReady(t *testing.T) {
	e := env.Shared(t)
	installWidgets(t, e)
	var recorded []struct {
		Reason string         `json:"reason"`
		Status map[string]any `json:"status"`
	}
	check(t, yaml.Unmarshal(must(os.ReadFile("internal/verdict/testdata/statuses.yaml"))(t), &recorded))
	c := must(client.New(e.Config(), client.Options{Scheme: newScheme(t)}))(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	check(t, c.Create(t.Context(), namespace))
	t.Cleanup(func() { // operators of other tests would reconcile them
		if err := c.DeleteAllOf(context.Background(), &widget.Widget{}, client.InNamespace(namespace.Name)); err != nil {
			t.Error(err)
		}
	})
	var want []string
	create := func(name string, status map[string]any, change bool) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": widget.GroupVersion.String(), "kind": "Widget",
			"metadata": map[string]any{"name": name, "namespace": namespace.Name}, "spec": map[string]any{},
		}}
		check(t, c.Create(t.Context(), object))
		if status != nil {
			object.Object["status"] = status
			check(t, c.Status().Update(t.Context(), object))
		}
		if change {
			object.Object["spec"] = map[string]any{"timeout": "1m"}
			check(t, c.Update(t.Context(), object))
		}
		if wantGeneration := map[bool]int64{false: 1, true: 2}[change]; object.GetGeneration() != wantGeneration {
			t.Fatalf("%s has the generation %d", name, object.GetGeneration())
		}
		if must(kstatus.Compute(object))(t).Status == kstatus.CurrentStatus {
			want = append(want, "widget.test.corbel.run/"+name+" condition met")
		}
	}
	create("new", nil, false)
	for _, r := range recorded {
		r.Status["observedGeneration"] = int64(1)
		for _, condition := range r.Status["conditions"].([]any) {
			condition.(map[string]any)["observedGeneration"] = int64(1)
		}
		create(strings.ToLower(r.Reason), r.Status, false)
		create(strings.ToLower(r.Reason)+"-changed", r.Status, true)
	}
	slices.Sort(want)
	command := exec.Command(e.Program("kubectl"), "--kubeconfig", e.Kubeconfig(), "--namespace", namespace.Name, "wait", "--for=condition=Ready", "--timeout=0", "widgets", "--all")
	output, err := command.Output()
	if err == nil {
		t.Error("kubectl wait succeeds, although components are not ready")
	}
	got := strings.Split(strings.TrimSpace(string(output)), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) != 1 {
		t.Errorf("kubectl waits no more for %q, and kstatus reads Current of %q", got, want)
	}
}
