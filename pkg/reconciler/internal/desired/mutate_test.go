// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/status"
	"github.com/corbel-run/corbel/test/check"
)

// odd returns a new value that stands where something else is expected.
func odd(random *rand.Rand) any {
	values := []any{nil, "", "x", int64(-1), 1.5, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"x": nil}, []any{map[string]any{"name": []any{}}}}
	return values[random.IntN(len(values))]
}

// mutate replaces, removes or doubles something in a value.
func mutate(random *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 || random.IntN(6) == 0 {
			return odd(random)
		}
		names := slices.Sorted(maps.Keys(v))
		name := names[random.IntN(len(names))]
		if random.IntN(8) == 0 {
			delete(v, name)
		} else {
			v[name] = mutate(random, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || random.IntN(6) == 0 {
			return odd(random)
		}
		at := random.IntN(len(v))
		if random.IntN(8) == 0 {
			return append(v, v[at])
		}
		v[at] = mutate(random, v[at])
		return v
	default:
		return odd(random)
	}
}

// TestNoShapeOfAnObjectPanics damages valid objects in a few places each and
// gives them to everything that reads manifests and live objects.
func TestNoShapeOfAnObjectPanics(t *testing.T) {
	const objects = `[
	{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b","labels":{"x":"y"},"annotations":{"shop.example.com/depends-on":"ConfigMap/a"},"finalizers":["f"],"ownerReferences":[{"uid":"1"}]},"data":{"k":"dg=="},"stringData":{"l":"v"}},
	{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[{"metadata":{"name":"c"}}]}]},
	{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"},"spec":{"group":"g","names":{"kind":"K"},"scope":"Cluster","versions":[{"name":"v1","served":true}]},"status":{"conditions":[{"type":"Established","status":"True"}]}},
	{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"a"},"spec":{"group":"g","version":"v1"},"status":{"conditions":[{"type":"Available","status":"True"}]}},
	{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","generation":2},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"a","ports":[{"containerPort":1}]},{"name":"b"}]}}},"status":{"observedGeneration":2,"replicas":2,"conditions":[{"type":"Progressing","status":"True","reason":"x"}]}},
	{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"a","state":{"waiting":{"reason":"x"}}}]}},
	{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"suspend":true,"completions":1},"status":{"conditions":[{"type":"Failed","status":"False"}]}}
	]`
	random := rand.New(rand.NewPCG(1, 2))
	hints := status.Options{Hints: status.Hints{ObservedGeneration: true, Conditions: []string{"x"}}}
	built, refused := 0, 0
	for range 3000 {
		var seeds []any
		check.NoError(t, utiljson.Unmarshal([]byte(objects), &seeds))
		manifest := seeds[random.IntN(len(seeds))].(map[string]any)
		live, _ := cloneMap(manifest, new(byteBudget(maxBytes)))
		for range 1 + random.IntN(4) {
			mutate(random, manifest)
			mutate(random, live)
		}
		in := input(&unstructured.Unstructured{Object: manifest})
		in.Resolve = resolveAnything
		if objects, err := Build(t.Context(), in); err == nil {
			built++
			checkPromises(t, objects)
		} else if refused++; !isInvalid(err) {
			t.Errorf("%v for %s", err, asJSON(manifest))
		}
		digest.Hasher{}.ObservedHash(live)
		digest.Hasher{}.AppliedHash(live, manifest, []string{"/metadata", "/spec/template/spec/containers/0"})
		if assessed := status.Analyze(&unstructured.Unstructured{Object: live}, hints); assessed.Readiness != status.Ready && assessed.Message == "" {
			t.Errorf("no reason why %s is not ready", asJSON(live))
		}
	}
	if built < 300 || refused < 300 {
		t.Errorf("%d were built and %d refused: the damage is not balanced", built, refused)
	}
}

func isInvalid(err error) bool {
	_, invalid := errors.AsType[*InvalidError](err)
	return invalid
}

func asJSON(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
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
