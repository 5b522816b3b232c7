// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/wire"
)

func TestEveryWriteOfADryRunIsOne(t *testing.T) {
	held := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, uid: u}}`)
	fresh := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: shop}}`)
	recorder := wire.NewRecorder(held)
	var answered, read int
	var refusal error
	objects := recorded(t, recorder).Objects().DryRun(cluster.DryRun{
		Known: func(_ cluster.Resource, _, name string) *unstructured.Unstructured {
			if name == "known" {
				return fresh
			}
			return nil
		},
		Read:        func(cluster.Resource, *unstructured.Unstructured) { read++ },
		BeforeWrite: func() error { return refusal },
		Answered:    func(*unstructured.Unstructured) { answered++ },
	})
	write := func() []error {
		_, create := objects.Create(t.Context(), configMaps, fresh.DeepCopy(), "me")
		_, update := objects.Update(t.Context(), configMaps, held.DeepCopy(), "me")
		_, apply := objects.Apply(t.Context(), configMaps, held.DeepCopy(), "me")
		_, patch := objects.Patch(t.Context(), configMaps, "shop", "settings", types.MergePatchType, []byte("{}"), "me")
		_, _, deletion := objects.Delete(t.Context(), configMaps, "shop", "settings", "u", "", metav1.DeletePropagationBackground)
		return []error{create, update, apply, patch, deletion}
	}
	if err := errors.Join(write()...); err != nil {
		t.Fatal(err)
	}
	sent := recorder.Writes()
	for _, s := range sent {
		options, _ := s.Body["dryRun"].([]any)
		if s.Query.Get("dryRun") != "All" && !slices.Equal(options, []any{"All"}) {
			t.Errorf("%s is no dry run: %v %v", s, s.Query, s.Body)
		}
	}
	if len(sent) != 5 || answered != 4 {
		t.Errorf("sent %v, and %d answers", sent, answered)
	}
	refusal = errors.New("no")
	for i, err := range write() {
		if !errors.Is(err, refusal) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if live, err := objects.Get(t.Context(), configMaps, "shop", "known"); err != nil || live != fresh || read != 0 {
		t.Errorf("got %v, %v, %d reads", live, err, read)
	}
	if _, err := objects.Get(t.Context(), configMaps, "shop", "new"); err != nil || read != 1 || len(recorder.Writes()) != 5 {
		t.Errorf("got %v, %d reads, sent %v", err, read, recorder.Writes())
	}
}
