// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
)

// check expects what every end must have: exactly the desired objects, all of them
// recorded, and none created a second time.
func (s *scenario) check(t *testing.T, f *fixture, cast *cast, earlier map[string]types.UID) {
	t.Helper()
	want := []string{}
	for _, name := range s.owned {
		want = append(want, f.fill(name))
	}
	slices.Sort(want)
	owned := s.withoutRefused(f, read(t, func(ctx context.Context) (map[string]types.UID, error) { return cast.owned(ctx, f) }))
	for _, name := range names(owned) {
		if !s.endsInDeletion() && !slices.Contains(want, name) { // else it may still be at it
			t.Errorf("%s is left over", name)
		}
	}
	for _, name := range want {
		if _, there := owned[name]; !there && s.meanwhile == nil {
			t.Errorf("%s is not there, or without our label and annotation", name)
		}
	}
	// What others did may not have come through the watch yet: it is mended then. A
	// watch that goes through the past again shows, for a moment, what was purged
	// long ago; it is purged once more then, on the record, too.
	eventually(t, "the objects with our label and annotation to be those that are desired and recorded", func(ctx context.Context) (err error) {
		if owned, err = cast.owned(ctx, f); err != nil {
			return err
		}
		owned = s.withoutRefused(f, owned)
		if diff := cmp.Diff(want, append([]string{}, names(owned)...)); diff != "" {
			return errors.New("objects with our label and annotation (-want +got):\n" + diff)
		}
		recorded, err := f.recorded(ctx)
		if err != nil {
			return err
		}
		recorded = s.withoutRefused(f, recorded)
		maps.DeleteFunc(recorded, func(_ string, uid types.UID) bool { return uid == "" }) // refused, or not written yet
		if diff := cmp.Diff(recorded, owned); diff != "" {
			return errors.New("what is recorded and what is there (-recorded +there):\n" + diff)
		}
		return nil
	})
	for name, uid := range earlier {
		again := slices.ContainsFunc(s.recreated, func(n string) bool { return f.fill(n) == name })
		if now, there := owned[name]; there && now != uid && !again {
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

// endsInDeletion reports whether a component is still being deleted at the end.
func (s *scenario) endsInDeletion() bool {
	for _, reason := range s.ends {
		if reason == vocabulary.ReasonDeletionProcessing {
			return true
		}
	}
	return false
}

// checkContent expects the objects with our label to be as the manifests say, or to
// become so if others changed them: that may not have come through the watch yet.
func (s *scenario) checkContent(t *testing.T, f *fixture) {
	t.Helper()
	if s.meanwhile != nil {
		s.awaitContent(t, f)
	} else if err := s.content(t.Context(), t, f); err != nil {
		t.Error(err)
	}
}

// awaitContent waits until the objects with our label are as the manifests say.
func (s *scenario) awaitContent(t *testing.T, f *fixture) {
	t.Helper()
	eventually(t, "the objects to be as their manifests say", func(ctx context.Context) error { return s.content(ctx, t, f) })
}

// content returns an error if objects with our label are not as the manifests say.
func (s *scenario) content(ctx context.Context, t *testing.T, f *fixture) error {
	var differ []error
	desired := maps.Clone(s.desired)
	if s.applied != nil {
		desired = map[string][]string{"main": s.applied}
	}
	for _, manifests := range desired {
		for _, want := range f.objects(t, manifests) {
			differ = append(differ, s.compare(ctx, f, want))
		}
	}
	return errors.Join(differ...)
}

// compare returns an error if an object with our label is not as it is desired.
func (s *scenario) compare(ctx context.Context, f *fixture, want *unstructured.Unstructured) error {
	live := want.DeepCopy()
	if err := f.target.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			return nil // whether it must be there is checked elsewhere
		}
		return err
	}
	if slices.ContainsFunc(s.refused, func(name string) bool { return f.fill(name) == nameOf(want) }) {
		return nil
	}
	if live.GetLabels()[reconcilerName+"/"+vocabulary.LabelOwnerID] == "" {
		return nil
	}
	delete(want.Object, "stringData")
	if !contains(live.Object, want.Object) {
		return fmt.Errorf("%s is not as its manifest says:\n%v\nwant\n%v", nameOf(want), live.Object, want.Object)
	}
	return nil
}

// contains reports whether a value has everything that is desired; in lists the
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
