// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// withoutBookkeeping is an object without what every write changes.
func withoutBookkeeping(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	clone := map[string]any{}
	if err := json.Unmarshal(text, &clone); err != nil {
		t.Fatal(err)
	}
	metadata := clone["metadata"].(map[string]any)
	delete(clone, "status")
	for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, key)
	}
	return clone
}

// Each file in testdata/same holds a manifest; what others do to the object
// after its creation, as a merge patch; and how many requests a PUT of the very
// same manifest may take. It has to be accepted and to change nothing.
func TestAPutOfTheSameManifestChangesNothing(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	files, err := filepath.Glob("testdata/same/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(strings.ReplaceAll(string(text), "NAMESPACE", namespace), "\n---\n")
			b := newBench(t)
			d := b.desired(parts[0], v1alpha1.UpdatePolicyReplace)
			b.must(step(plan.VerbCreate, d, plan.Observation{}))
			t.Cleanup(func() { deleteClusterScoped(b, d) })
			if len(parts) > 1 {
				b.somebody(d, parts[1])
			}
			before := b.live(d)
			observed, after := replaceSame(t, b, d, strings.HasPrefix(parts[0], "# reads first"))
			if diff := cmp.Diff(withoutBookkeeping(t, before.Object), withoutBookkeeping(t, b.live(d).Object)); diff != "" {
				t.Errorf("it changed the object (-before +after):\n%s", diff)
			}
			if after.Seen != observed.Seen || after.Accepted != observed.Accepted {
				t.Errorf("the digests changed: %+v, then %+v", observed, after)
			}
		})
	}
}

// replaceSame replaces the object, again if the server wrote a status in between.
func replaceSame(t *testing.T, b *bench, d *plan.Desired, readsFirst bool) (before, after plan.Observation) {
	t.Helper()
	want := "PUT"
	if readsFirst {
		want = "GET, PUT"
	}
	eventually(t, "the object is replaced", func() bool {
		before = b.observe(d)
		b.requests()
		result := b.run(step(plan.VerbReplace, d, before))
		if execute.IsConflict(result.Err) {
			return false
		}
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		if got := methods(b.requests()); got != want {
			t.Errorf("the requests were %s, not %s", got, want)
		}
		after = result.Observation
		return true
	})
	return before, after
}

// methods are the methods of the requests for objects, without discovery.
func methods(requests []string) string {
	var all []string
	for _, request := range requests {
		method, path, _ := strings.Cut(request, " ")
		if strings.Count(path, "/") > 3 || method != "GET" {
			all = append(all, method)
		}
	}
	return strings.Join(all, ", ")
}

func deleteClusterScoped(b *bench, d *plan.Desired) {
	if d.Key.Namespace != "" {
		return
	}
	ctx := context.WithoutCancel(b.t.Context())
	resource, err := b.target.Types().Resolve(ctx, d.Key.GroupKind().WithVersion(d.Version))
	if err != nil {
		b.t.Fatal(err)
	}
	live, err := b.target.Objects().Get(ctx, resource, "", d.Key.Name)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := b.target.Objects().Delete(ctx, resource, "", d.Key.Name, live.GetUID(), "", metav1.DeletePropagationBackground); err != nil {
		b.t.Error(err)
	}
}
