// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// What is written must be kept, or the call gives up: here the label and annotation of an
// earlier incarnation are among the fields that are never written.
func TestACallEndsIfTheServerDoesNotKeepWhatIsWritten(t *testing.T) {
	b := newBench(t)
	stubborn := config("a", "1", "ignore-fields", "/metadata/annotations")
	earlier := b.owner()
	earlier.UID = "0"
	if _, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
		Owner: earlier, Namespace: b.namespace, Objects: []client.Object{stubborn}, Record: b.record,
	}); err != nil {
		t.Fatal(err)
	}
	b.inventory = v1alpha1.Inventory{}
	_, err := b.apply(stubborn)
	if err == nil || !strings.Contains(err.Error(), "ConfigMap "+b.namespace+"/a") || !strings.Contains(err.Error(), "does not keep") {
		t.Errorf("got %v, want an error that names the object", err)
	}
}

func TestTypesOfOthersBlockNothing(t *testing.T) {
	b := newBench(t)
	theirs := definition("unowneds", "Unowned")
	theirs.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "theirs"})
	if err := b.Create(t.Context(), theirs.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Delete(context.Background(), theirs); client.IgnoreNotFound(err) != nil {
			t.Log(err)
		}
	})
	used := instance("Unowned", "used")
	used.SetNamespace(b.namespace)
	b.until("the type to be served", func() bool { return b.Create(t.Context(), used.DeepCopy()) == nil })

	if _, err := b.apply(definition("unowneds", "Unowned")); err == nil {
		t.Fatal("the type of another owner was adopted")
	}
	blockers, err := b.engine.DeletionBlockers(t.Context(), reconciler.DeleteRequest{Owner: b.owner(), Inventory: b.inventory})
	if err != nil || len(blockers) > 0 {
		t.Errorf("blocked by %v, %v", blockers, err)
	}
}
