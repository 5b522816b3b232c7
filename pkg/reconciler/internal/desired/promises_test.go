// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// resolveAnything serves most types, so that the other steps are reached as well.
func resolveAnything(_ context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
	if gvk.Group == "managed" || gvk.Kind == "K" {
		return false, false, nil
	}
	return !cascadingKinds[gvk.GroupKind()] && !strings.HasPrefix(gvk.Kind, "Cluster"), true, nil
}

func checkPromises(t *testing.T, objects []plan.Desired) {
	t.Helper()
	known := map[plan.Key]bool{}
	for _, object := range objects {
		known[object.Key] = true
	}
	for i, object := range objects {
		if i > 0 && objects[i-1].Key.Compare(object.Key) >= 0 {
			t.Errorf("%s does not come after %s", object.Key, objects[i-1].Key)
		}
		manifest := object.Manifest
		key := plan.Key{Group: manifest.GroupVersionKind().Group, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
		if key != object.Key || manifest.GroupVersionKind().Version != object.Version {
			t.Errorf("the manifest of %s is of %s", object.Key, key)
		}
		if manifest.GetLabels()[name+"/owner-id"] != owner.ID || manifest.GetAnnotations()[name+"/owner"] != owner.Ref.String() {
			t.Errorf("%s lacks our ownership label or annotation", object.Key)
		}
		if object.Digest == "" || object.Policies.Update == "" {
			t.Errorf("%s is not complete: %#v", object.Key, object)
		}
		for _, reference := range object.Policies.DependsOn {
			if !known[plan.Key(reference)] {
				t.Errorf("%s depends on %s, which is not there", object.Key, reference)
			}
		}
		if _, err := json.Marshal(manifest.DeepCopy().Object); err != nil {
			t.Errorf("%s: %v", object.Key, err)
		}
	}
}
