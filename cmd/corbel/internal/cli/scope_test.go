// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// withDependents is a Shop with a Deployment, and with a ConfigMap that may be missing.
func withDependents(namespace, name, image string, settings bool) []client.Object {
	object := func(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = apiVersion, kind
		o := &unstructured.Unstructured{Object: content}
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	shop := object("shop.example.com/v1alpha1", "Shop", name, map[string]any{"status": map[string]any{
		"reconciler": "shop.example.com", "state": "Ready", "progress": "2/2", "revision": int64(2),
		"inventory": map[string]any{"format": int64(3), "objects": map[string]any{
			"apps/v1 Deployment " + namespace + "/" + name + "-web": `{"uid":"1"}`, "v1 ConfigMap " + namespace + "/" + name + "-settings": `{"uid":"2"}`,
		}},
		"history": []any{
			map[string]any{"revision": int64(2), "result": "Ready", "appliedAt": "2026-01-01T23:00:00Z", "readyAt": "2026-01-01T23:00:07Z", "changedBy": "kubectl-edit", "digest": "b",
				"source": map[string]any{"generator": "helm", "chart": "shop", "version": "1.0.0", "appVersion": "1.0"}},
			map[string]any{"revision": int64(1), "result": "Superseded", "appliedAt": "2026-01-01T22:00:00Z", "digest": "a"},
		},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "2 of 2 dependent objects are ready", "lastTransitionTime": "2026-01-01T23:57:00Z"}},
	}})
	shop.SetUID(types.UID(name))
	objects := []client.Object{shop, object("apps/v1", "Deployment", name+"-web", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "web", "image": image}},
	}}}})}
	event := object("v1", "Event", name+".1", map[string]any{
		"involvedObject": map[string]any{"kind": "Shop", "namespace": namespace, "name": name, "uid": name}, "lastTimestamp": "2026-01-01T23:59:00Z", "count": int64(3),
		"type": "Warning", "reason": "OwnerConflict", "message": "Deployment " + namespace + "/" + name + "-web: belongs to another component, and is left as it is",
	})
	if objects = append(objects, event); settings {
		objects = append(objects, object("v1", "ConfigMap", name+"-settings", map[string]any{}))
	}
	return objects
}

func TestCommandsAboutManyComponents(t *testing.T) {
	objects := append(withDependents("fleet", "corner", "registry.example.com/shop:1.1", true), withDependents("fair", "stall", "registry.example.com/shop:1.0", false)...)
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := inner.List(ctx, list, options...)
			if found, ok := list.(*unstructured.UnstructuredList); ok { // in the order of a server
				slices.SortFunc(found.Items, func(a, b unstructured.Unstructured) int {
					return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
				})
			}
			return err
		},
	})
	for _, command := range []string{"images", "history", "events", "diff", "get"} {
		var text strings.Builder
		for _, test := range []struct {
			width     int
			arguments string
		}{{0, ""}, {0, "-A"}, {80, "-A"}, {40, "-A"}, {80, "shop/corner"}, {40, "shop/corner"}, {0, "shop/corner -A"}} {
			arguments := append([]string{command}, strings.Fields(test.arguments)...)
			got := offline(t, server, served(shopResource), func(f *frame) { f.width = func() int { return test.width } }, arguments...)
			fmt.Fprintf(&text, "%d columns: corbel %s\n%s%sexit code %d\n\n", test.width, strings.Join(arguments, " "), got.out, got.err, got.code)
			for line := range strings.Lines(got.out) {
				if columns := utf8.RuneCountInString(strings.TrimSpace(line)); test.width > 0 && columns > test.width {
					t.Errorf("%s has a line of %d columns on a terminal of %d:\n%s", arguments, columns, test.width, line)
				}
			}
		}
		golden(t, "many "+command, text.String())
	}
	for command, want := range map[string]string{"images": "ImageList", "history": "HistoryList", "events": "EventList", "diff": "DiffList", "get": "ComponentList"} {
		var list struct {
			Kind  string           `json:"kind"`
			Items []map[string]any `json:"items"`
		}
		got := offline(t, server, served(shopResource), nil, command, "-A", "-o", "json")
		if err := json.Unmarshal([]byte(got.out), &list); err != nil || list.Kind != want || len(list.Items) == 0 || !strings.Contains(got.out, "stall") {
			t.Errorf("%s: %v\n%s", command, err, got.out)
		}
	}
}
