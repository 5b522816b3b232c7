// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/wire"
)

// writes are all ways to write an existing object.
var writes = map[plan.Verb]v1alpha1.UpdatePolicy{
	plan.VerbReplace:  v1alpha1.UpdatePolicyReplace,
	plan.VerbMerge:    v1alpha1.UpdatePolicySsaMerge,
	plan.VerbOverride: v1alpha1.UpdatePolicySsaOverride,
	plan.VerbOrphan:   v1alpha1.UpdatePolicyReplace,
	plan.VerbDelete:   v1alpha1.UpdatePolicyReplace,
}

func configMap(namespace, name string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + namespace + `, name: ` + name + `}, data: {key: value}}`
}

func TestACreateDemandsAbsence(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for _, policy := range v1alpha1.UpdatePolicies {
		d := b.desired(configMap(namespace, unique("map")), policy)
		b.requests()
		created := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		if sent := len(b.requests()); sent > 2 { // and discovery, once
			t.Errorf("%s: the create took %d requests", policy, sent)
		}
		if diff := cmp.Diff(b.observe(d), created); diff != "" || created.Existence != plan.Present {
			t.Errorf("%s: a read and the answer to the write differ (-read +answer):\n%s", policy, diff)
		}
		if created.Ownership.OwnerID != ownerID || created.Ownership.Ref != ownerRef {
			t.Errorf("%s: got ownership %+v", policy, created.Ownership)
		}
		if again := b.run(step(plan.VerbCreate, d, plan.Observation{})); !execute.IsConflict(again.Err) || again.Observation.Existence != plan.Unknown {
			t.Errorf("%s: a second create: got %+v", policy, again)
		}
		if live := b.observe(d); live.ResourceVersion != created.ResourceVersion {
			t.Errorf("%s: the second create changed the object", policy)
		}
	}
}

func TestAWriteIsAConflictIfTheObjectChanged(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		changed := b.otherClient(d, `data: {other: value}`)
		result := b.run(step(verb, d, seen))
		switch {
		case verb == plan.VerbDelete && (result.Err != nil || result.Observation.Existence != plan.Absent),
			verb == plan.VerbOrphan && (result.Err != nil || result.Observation.Ownership.OwnerID != ""):
			t.Errorf("%s: it is still meant for the object, got %+v", verb, result)
		}
		if verb == plan.VerbDelete || verb == plan.VerbOrphan {
			continue
		}
		if !execute.IsConflict(result.Err) {
			t.Errorf("%s: got %v", verb, result.Err)
		}
		if live := b.live(d); live.GetResourceVersion() != changed.GetResourceVersion() {
			t.Errorf("%s: it changed the object", verb)
		}
	}
}

func TestAWriteIsAConflictIfTheObjectIsAnotherOne(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		first := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.must(step(plan.VerbDelete, d, first))
		second := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		mixed := second
		mixed.UID = first.UID
		for what, live := range map[string]plan.Observation{"as it was": first, "with the uid only": mixed} {
			if result := b.run(step(verb, d, live)); !execute.IsConflict(result.Err) {
				t.Errorf("%s %s: got %v", verb, what, result.Err)
			}
		}
		if live := b.observe(d); live.ResourceVersion != second.ResourceVersion {
			t.Errorf("%s: it changed the other object", verb)
		}
	}
}

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
				b.otherClient(d, parts[1])
			}
			before := b.live(d)
			observed, after := replaceSame(t, b, d, strings.HasPrefix(parts[0], "# reads first"))
			if diff := cmp.Diff(withoutBookkeeping(t, before.Object), withoutBookkeeping(t, b.live(d).Object)); diff != "" {
				t.Errorf("it changed the object (-before +after):\n%s", diff)
			}
			if after.ObservedHash != observed.ObservedHash || after.AppliedHash != observed.AppliedHash {
				t.Errorf("the digests changed: %+v, then %+v", observed, after)
			}
		})
	}
}

// TestAnObjectThatWasCreatedAsIntendedIsOnlyRead begins where a process has ended before it recorded the answer to a creation.
func TestAnObjectThatWasCreatedAsIntendedIsOnlyRead(t *testing.T) {
	b := newBench(t)
	for _, verb := range []plan.Verb{plan.VerbReplace, plan.VerbMerge, plan.VerbOverride} {
		d := b.desired(configMap(b.namespace(), "map"), writes[verb])
		created := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		s := b.seen(verb, d, b.observe(d))
		s.AsIntended = true
		b.requests()
		read := b.must(s)
		if got := methods(b.requests()); got != "GET" {
			t.Errorf("%s: the requests were %s, not GET", verb, got)
		}
		if diff := cmp.Diff(created, read); diff != "" {
			t.Errorf("%s: the answer to the creation and what was read differ (-created +read):\n%s", verb, diff)
		}
		b.otherClient(d, `{"data":{"key":"other"}}`)
		s = b.seen(verb, d, b.observe(d))
		s.AsIntended = true
		if result := b.run(s); result.Err == nil && b.at(d, "data", "key") != "value" {
			t.Errorf("%s: what another client has changed since is left", verb)
		}
		pod := func(volume string) string {
			return `template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}], volumes: [{name: data, ` + volume + `}]}}`
		}
		d = b.desired(`{apiVersion: v1, kind: PodTemplate, metadata: {namespace: `+b.namespace()+`, name: web}, `+pod("emptyDir: {}")+`}`, writes[verb])
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.otherClient(d, `{"template":{"spec":{"volumes":[{"name":"data","hostPath":{"path":"/"}}]}}}`)
		s = b.seen(verb, d, b.observe(d))
		s.AsIntended = true
		b.requests()
		if b.run(s); methods(b.requests()) == "GET" {
			t.Errorf("%s: another type of a volume counts as no difference", verb)
		}
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
		result := b.run(b.seen(plan.VerbReplace, d, before))
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
	if d.Key.Kind != "CustomResourceDefinition" {
		return // no other test uses its name
	}
	eventually(b.t, "the end of "+d.Key.String(), func() bool {
		_, err := b.target.Objects().Get(ctx, resource, "", d.Key.Name)
		return apierrors.IsNotFound(err)
	})
}

// takeover is the step that adopts an object of Helm's.
func takeover(b *bench, name string) plan.Step {
	b.t.Helper()
	text := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + b.namespace() + `, name: ` + name
	b.create(text + `, annotations: {meta.helm.sh/release-name: web, theirs: "1"}}}`)
	d := b.desired(text+`}, data: {key: value}}`, v1alpha1.UpdatePolicySsaMerge)
	d.Policies.Adoption = v1alpha1.AdoptionPolicyAlways
	s := step(plan.VerbMerge, d, b.observe(d))
	s.Reason = plan.ReasonAdopted
	return s
}

func TestAnAdoptionRemovesTheOwnershipMetadataOfTheFormerOwner(t *testing.T) {
	b := newBench(t)
	s := takeover(b, unique("map"))
	b.requests()
	taken := b.must(s)
	if sent := b.requests(); len(sent) != 2 {
		t.Errorf("the takeover took the requests %v", sent)
	}
	if len(taken.Ownership.OtherOwners) > 0 || taken.Ownership.OwnerID != ownerID || taken.ResourceVersion != b.observe(s.Desired).ResourceVersion {
		t.Errorf("got %+v", taken)
	}
	if b.live(s.Desired).GetAnnotations()["theirs"] != "1" {
		t.Error("an annotation that names no owner was removed")
	}
}

func TestEveryOtherWriteKeepsTheOwnershipMetadataOfOthers(t *testing.T) {
	b := newBench(t)
	for _, change := range []func(s *plan.Step){
		func(s *plan.Step) { s.Reason = plan.ReasonManifestChanged },
		func(s *plan.Step) { s.Desired.Policies.Adoption = v1alpha1.AdoptionPolicyIfUnowned },
		func(s *plan.Step) { // the annotation is our own manifest's
			annotations := s.Desired.Manifest.GetAnnotations()
			annotations["meta.helm.sh/release-name"] = "web"
			s.Desired.Manifest.SetAnnotations(annotations)
		},
	} {
		s := takeover(b, unique("map"))
		change(&s)
		b.must(s)
		if b.live(s.Desired).GetAnnotations()["meta.helm.sh/release-name"] != "web" {
			t.Errorf("%s under %s: the annotation is gone", s.Reason, s.Desired.Policies.Adoption)
		}
	}
}

func TestAnInterruptedAdoptionIsFinishedByTheWriteThatConfirmsIt(t *testing.T) {
	b := newBench(t)
	s := takeover(b, unique("map"))
	b.beforeEach(http.MethodPatch, func(n int) {
		if n == 2 {
			b.otherClient(s.Desired, `metadata: {annotations: {theirs: "2"}}`)
		}
	})
	if result := b.run(s); !execute.IsConflict(result.Err) {
		t.Fatalf("the object changed in between: got %v", result.Err)
	}
	live := b.observe(s.Desired)
	if len(live.Ownership.OtherOwners) != 1 || live.Ownership.OwnerID != ownerID {
		t.Fatalf("got %+v", live.Ownership)
	}
	again := step(plan.VerbMerge, s.Desired, live)
	again.Reason = plan.ReasonUnconfirmed
	if finished := b.must(again); len(finished.Ownership.OtherOwners) > 0 {
		t.Errorf("got %+v", finished.Ownership)
	}
}

func TestAFieldThatAWebhookChangesIsNamedWithTheWebhook(t *testing.T) {
	manifest := `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: map}, data: {key: value, other: "1", empty: ""}}`
	for name, tc := range map[string]struct {
		change  map[string]any
		refused int
		want    string
	}{
		"changed":              {map[string]any{"key": "theirs", "other": "1", "empty": ""}, 0, "webhook a.example.com: data.key"},
		"renamed":              {map[string]any{"renamed": "value", "other": "1", "empty": ""}, 0, "webhook a.example.com: data.key"},
		"an empty field":       {map[string]any{"key": "value", "other": "1", "empty": "theirs"}, 0, ""},
		"a field is added":     {map[string]any{"key": "value", "other": "1", "empty": "", "more": "2"}, 0, ""},
		"nobody may list them": {map[string]any{"key": "theirs", "other": "1", "empty": ""}, http.StatusForbidden, "a mutating webhook or the API server: data.key"},
		"there is no webhook":  {map[string]any{"key": "theirs", "other": "1", "empty": ""}, http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(sent wire.Sent) (int, any) {
				switch {
				case strings.HasSuffix(sent.Path, "/mutatingwebhookconfigurations") && tc.refused == http.StatusForbidden:
					return tc.refused, wire.Failure(tc.refused, metav1.StatusReasonForbidden, nil)
				case strings.HasSuffix(sent.Path, "/mutatingwebhookconfigurations"):
					rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "secrets"}}
					if tc.refused == http.StatusOK {
						rule["resources"] = []any{"pods"}
					}
					return http.StatusOK, map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{
						map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "all", "uid": "1", "resourceVersion": "1"},
							"webhooks": []any{map[string]any{"name": "a.example.com", "rules": []any{rule}}}}}}
				case sent.Method == http.MethodPost:
					object := &unstructured.Unstructured{Object: sent.Body}
					object.SetUID("1")
					object.SetResourceVersion("1")
					object.Object["data"] = tc.change
					return http.StatusCreated, object.Object
				}
				return 0, nil
			}
			b := benchOn(t, recorder.Config())
			for _, manifest := range []string{manifest, strings.Replace(manifest, "ConfigMap", "Secret", 1)} {
				result := b.run(step(plan.VerbCreate, b.desired(manifest, v1alpha1.UpdatePolicyReplace), plan.Observation{}))
				if result.Err != nil || result.Observation.Altered != tc.want {
					t.Errorf("got %q, want %q: %v", result.Observation.Altered, tc.want, result.Err)
				}
			}
			lists := 0
			for _, sent := range recorder.Sent(http.MethodGet) {
				if strings.HasSuffix(sent.Path, "/mutatingwebhookconfigurations") {
					lists++
				}
			}
			if lists > 1 {
				t.Errorf("the webhooks were listed %d times", lists)
			}
		})
	}
}

func TestAValueOfAWrongTypeIsNamedWithItsPath(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	manifest := func(version string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ` + namespace + `, name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: ` +
			`{labels: {app: web}, annotations: {example.com/version: ` + version + `}}, spec: {containers: [{name: web, image: "web:1", env: [{name: LEVEL, value: ` + version + `}]}]}}}}`
	}
	good, bad := b.desired(manifest(`"1"`), v1alpha1.UpdatePolicyReplace), b.desired(manifest("1"), v1alpha1.UpdatePolicyReplace)
	expect := func(verb plan.Verb, live plan.Observation) {
		t.Helper()
		result := b.run(step(verb, bad, live))
		for _, path := range []string{".spec.template.metadata.annotations.example.com/version: expected string", `.spec.template.spec.containers[name="web"].env[name="LEVEL"].value: expected string`} {
			if result.Err == nil || !strings.Contains(result.Err.Error(), path) || result.Err.(*execute.Error).Class != execute.Invalid || execute.IsMistake(result.Err) {
				t.Errorf("%s: %v, want %s", verb, result.Err, path)
			}
		}
	}
	expect(plan.VerbCreate, plan.Observation{})
	expect(plan.VerbReplace, b.must(step(plan.VerbCreate, good, plan.Observation{})))
}
