// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
	"github.com/corbel-run/corbel/test/check"
)

// explained is a component with this status of the condition Ready.
func explained(name, ready, reason, message string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1alpha1", "kind": "Shop",
		"metadata": map[string]any{"namespace": "fleet", "name": name, "generation": int64(1), "annotations": map[string]any{"shop.example.com/suspend": "true"}},
		"status": map[string]any{"observedGeneration": int64(1), "state": reason, "reconciler": "shop.example.com", "conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T23:57:00Z"}}},
	}}
}

// ask runs why about these components.
func ask(t *testing.T, components []client.Object, arguments ...string) answer {
	t.Helper()
	server := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(components...).Build()
	return offline(t, server, served(shopResource), nil, append([]string{"why"}, arguments...)...)
}

func TestWhy(t *testing.T) {
	const text = `Shop fleet/corner is not Ready since 3m (Suspended)
└─ Shop fleet/corner: suspended: incident 7 (since 3m)
   field: metadata.annotations[shop.example.com/suspend]
Try: corbel resume shop.shop.example.com corner -n fleet
`
	suspended := explained("corner", "Unknown", "Suspended", "suspended: incident 7")
	ready := explained("main", "True", "Ready", "all is well")
	unreadable := explained("broken", "False", "Error", "").(*unstructured.Unstructured)
	unreadable.Object["status"].(map[string]any)["observedGeneration"] = "one"
	elsewhere := suspended.DeepCopyObject().(client.Object)
	elsewhere.SetNamespace("fair")
	rolledBack := ready.DeepCopyObject().(client.Object)
	rolledBack.SetAnnotations(map[string]string{"shop.example.com/rollback-to": "2"})
	for _, test := range []struct {
		name       string
		components []client.Object
		arguments  []string
		out, err   string
		code       int
	}{
		{"a component that is not Ready", []client.Object{suspended}, []string{"shop/corner"}, text, "", 1},
		{"a component that is Ready", []client.Object{ready}, []string{"shop", "main"}, "Shop fleet/main is Ready since 3m\n", "", 0},
		{"a component that is rolled back", []client.Object{rolledBack}, []string{"main"}, "Shop fleet/main is Ready since 3m\n" +
			"Note: it is rolled back to revision 2, so changes of its spec are not applied; \"corbel rollback shop.shop.example.com main -n fleet --end\" ends that\n", "", 0},
		{"all components", []client.Object{suspended, ready}, nil, text, "1 of 2 components in namespace fleet is not Ready\n", 1},
		{"all components, of which one cannot be read", []client.Object{unreadable, suspended, ready}, nil, text,
			"2 of 3 components in namespace fleet are not Ready; explained: 1\nerror: the status of Shop fleet/broken cannot be read: ", 2},
		{"all components are Ready", []client.Object{ready}, nil, "", "1 component in namespace fleet is Ready\n", 0},
		{"all components of all namespaces", []client.Object{elsewhere, ready}, []string{"-A"}, strings.ReplaceAll(text, "fleet", "fair"), "1 of 2 components is not Ready\n", 1},
		{"no components", []client.Object{elsewhere}, nil, "", "No components found in namespace fleet; -A looks in all namespaces\n", 0},
		{"a component of all namespaces", []client.Object{ready}, []string{"shop/main", "-A"}, "", "error: a name cannot be combined with -A\n", 2},
		{"a component that does not exist", []client.Object{ready}, []string{"shop/none"}, "", "error: ", 2},
		{"a format that does not exist", []client.Object{ready}, []string{"-o", "table"}, "", "error: output format \"table\" is unknown", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ask(t, test.components, test.arguments...)
			if diff := cmp.Diff(test.out, got.out); diff != "" || got.code != test.code || !strings.HasPrefix(got.err, test.err) {
				t.Errorf("exit code %d, standard error %q\n%s", got.code, got.err, diff)
			}
		})
	}
	got := ask(t, []client.Object{suspended}, "shop/corner", "-o", "json")
	var one struct {
		metav1.TypeMeta
		why.Chain
	}
	if err := json.Unmarshal([]byte(got.out), &one); err != nil || got.code != 1 || one.APIVersion != "corbel.run/cli/v1" || one.Kind != "Explanation" ||
		one.Code != why.Suspended || one.Component.Name != "corner" || one.Requests != 1 {
		t.Errorf("exit code %d, %v:\n%s", got.code, err, got.out)
	}
}

func TestWhyShowsTheWorstFirstAndEqualCausesOnce(t *testing.T) {
	components := []client.Object{explained("late", "False", "Error", "something failed")}
	early := explained("zoo", "False", "Error", "another thing failed").(*unstructured.Unstructured)
	early.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"] = "2026-01-01T20:00:00Z"
	components = append(components, early)
	for i := range 20 {
		unseen := explained(fmt.Sprintf("m%d", i), "", "", "").(*unstructured.Unstructured)
		delete(unseen.Object, "status")
		components = append(components, unseen, explained(fmt.Sprintf("s%d", i), "Unknown", "Suspended", fmt.Sprintf("suspended: incident %d", i/2)))
	}
	for _, shop := range []string{"b1", "b2", "b3"} { // the same image in other pods
		components = append(components, explained(shop, "Unknown", "Processing", "Deployment fleet/"+shop+"-web: 0 of 1 replicas ready; pod "+shop+"-web-x"+shop+": ErrImagePull"))
	}
	got := ask(t, components)
	var begins []string
	for part := range strings.SplitSeq(got.out, "\n\n") {
		begin, _, _ := strings.Cut(part, "\n")
		begins = append(begins, begin)
	}
	want := []string{"Shop fleet/zoo is not Ready since 4h (Error)", "Shop fleet/late is not Ready since 3m (Error)",
		"20 components are not Ready, such as Shop fleet/m0: no operator has reconciled it, and none is known that reconciles objects of the group shop.example.com",
		"3 components are not Ready, such as Shop fleet/b1: Deployment fleet/b1-web: does not exist"}
	for _, i := range []int{0, 10, 12, 14, 16, 18} { // by name
		want = append(want, fmt.Sprintf("2 components are not Ready, such as Shop fleet/s%d: suspended: incident %d", i, i/2))
	}
	if diff := cmp.Diff(want, begins); diff != "" {
		t.Error(diff)
	}
	check.Same(t, "45 of 45 components in namespace fleet are not Ready; explained: 37, which are those with the 10 worst causes\n", got.err)
	var list explanationList
	check.NoError(t, json.Unmarshal([]byte(ask(t, components, "-o", "json").out), &list))
	check.Equal(t, []string{"fleet/b2", "fleet/b3"}, list.Items[3].Same)
}
