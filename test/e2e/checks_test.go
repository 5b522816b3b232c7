// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
)

// check expects what every end must have: exactly the wanted objects, all of them
// recorded, and none created a second time.
func (s *scenario) check(t *testing.T, f *fixture, cast *cast, earlier map[string]types.UID) {
	t.Helper()
	marked := s.withoutRefused(f, read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.marked(ctx, f) }))
	want := []string{}
	for _, name := range s.marked {
		want = append(want, f.fill(name))
	}
	slices.Sort(want)
	got := names(marked)
	if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" {
		t.Errorf("objects with our marks (-want +got):\n%s", diff)
	}
	// A watch that goes through the past again shows, for a moment, what was purged
	// long ago; it is purged once more then, on the record, too.
	eventually(t, "everything to be on record", func(ctx context.Context) error {
		recorded, err := f.recorded(ctx)
		if err != nil {
			return err
		}
		recorded = s.withoutRefused(f, recorded)
		maps.DeleteFunc(recorded, func(_ string, uid types.UID) bool { return uid == "" }) // refused, or not written yet
		if diff := cmp.Diff(recorded, marked); diff != "" {
			return errors.New("what is recorded and what is there (-recorded +there):\n" + diff)
		}
		return nil
	})
	for name, uid := range earlier {
		again := slices.ContainsFunc(s.recreated, func(n string) bool { return f.fill(n) == name })
		if now, there := marked[name]; there && now != uid && !again {
			t.Errorf("%s was created a second time", name)
		}
	}
	for _, name := range s.names() {
		bundle := f.named(name)
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); err == nil {
			conditionstest.Check(t, conditions.For(bundle, &bundle.Status.Conditions))
		}
	}
}

// checkContent expects the objects with our marks to be as the manifests say.
func (s *scenario) checkContent(t *testing.T, f *fixture) {
	t.Helper()
	for _, content := range s.wanted {
		for _, want := range f.objects(t, content) {
			live := want.DeepCopy()
			if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(want), live); err != nil {
				continue // whether it must be there is checked elsewhere
			}
			if slices.ContainsFunc(s.refused, func(name string) bool { return f.fill(name) == nameOf(want) }) {
				continue
			}
			if live.GetLabels()[reconcilerName+"/"+v1alpha1.LabelOwnerID] == "" {
				continue
			}
			delete(want.Object, "stringData")
			if !contains(live.Object, want.Object) {
				t.Errorf("%s is not as its manifest says:\n%v\nwant\n%v", nameOf(want), live.Object, want.Object)
			}
		}
	}
}

// contains tells whether a value has everything that is wanted; in lists the
// elements are compared one by one.
func contains(value, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		has, ok := value.(map[string]any)
		for key := range want {
			ok = ok && contains(has[key], want[key])
		}
		return ok
	case []any:
		has, ok := value.([]any)
		ok = ok && len(has) == len(want)
		for i := range want {
			ok = ok && contains(has[i], want[i])
		}
		return ok
	default:
		return value == want
	}
}

// versions returns uid and resourceVersion of objects.
func (f *fixture) versions(t testing.TB, texts []string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, object := range f.objects(t, texts) {
		name := nameOf(object)
		if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			versions[name] = err.Error()
			continue
		}
		versions[name] = string(object.GetUID()) + " " + object.GetResourceVersion()
	}
	return versions
}
