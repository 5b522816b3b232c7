// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// FuzzBuild gives Build whatever JSON there is. It must not panic, and what it
// accepts must keep the promises of the package.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"},"stringData":{"k":"v"},"data":null}`,
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}`,
		`{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"a","labels":{"x":"y"}}}]}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"group":"g","names":{"kind":"K"},"scope":"Cluster","versions":[{"name":"v1","served":true}]}}`,
		`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"a"},"spec":{"group":"g","version":"v1"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"shop.example.com/depends-on":"ConfigMap/a","shop.example.com/ready-when":"self.a"}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"shop.example.com/purge-order":"1","shop.example.com/ignore-fields":"/data"},"finalizers":["x"],"ownerReferences":[{}]}}`,
		`{"metadata":"x","items":[1,null,[]],"kind":5}`,
		`{"apiVersion":"x/v1","kind":"Foo","metadata":{"name":"a"},"n":[1,1.5,1e300,-0.0,18446744073709551615]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var content map[string]any
		if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
			return
		}
		in := input(&unstructured.Unstructured{Object: content})
		in.Resolve = resolveAnything
		in.Managed = []v1alpha1.TypeInfo{{Group: "managed", Kind: "*"}}
		objects, err := Build(t.Context(), in)
		if err != nil {
			if _, invalid := errors.AsType[*InvalidError](err); !invalid || err.Error() == "" {
				t.Errorf("the error is %v", err)
			}
			return
		}
		checkPromises(t, objects)

		// What comes out is as good as what went in.
		in.Objects = nil
		for _, object := range objects {
			in.Objects = append(in.Objects, client.Object(object.Manifest))
		}
		again, err := Build(t.Context(), in)
		if err != nil {
			t.Fatalf("what was built is refused: %v", err)
		}
		if ManifestDigest(objects) != ManifestDigest(again) {
			t.Errorf("the digests changed: %s", cmp.Diff(objects, again))
		}
	})
}

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
