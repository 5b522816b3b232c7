// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
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
	for _, policy := range vocabulary.UpdatePolicies {
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

// The server refuses a write of an object that has changed, or that another one of its name has replaced.
func TestAWriteIsAConflictIfTheObjectChanged(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, policy := range writes {
		d := b.desired(configMap(namespace, unique("map")), policy)
		first := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.must(step(plan.VerbDelete, d, first))
		seen := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		mixed := seen
		mixed.UID = first.UID
		lives := map[string]plan.Observation{"another object": first, "another object with this version": mixed}
		version := seen.ResourceVersion
		if verb != plan.VerbDelete && verb != plan.VerbOrphan { // these are still meant for a changed object
			lives["an earlier version"] = seen
			version = b.otherClient(d, `data: {other: value}`).GetResourceVersion()
		}
		for what, live := range lives {
			if result := b.run(step(verb, d, live)); !execute.IsConflict(result.Err) {
				t.Errorf("%s, %s: got %v", verb, what, result.Err)
			}
		}
		if live := b.live(d); live.GetResourceVersion() != version {
			t.Errorf("%s: it changed the object", verb)
		}
	}
}

// withoutBookkeeping is an object without what every write changes.
func withoutBookkeeping(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	text := check.Must(json.Marshal(object))(t)
	clone := map[string]any{}
	check.NoError(t, json.Unmarshal(text, &clone))
	metadata := clone["metadata"].(map[string]any)
	delete(clone, "status")
	for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, key)
	}
	return clone
}

// TestAnObjectThatWasCreatedAsIntendedIsOnlyRead begins where a process has ended before it recorded the answer to a creation.
func TestAnObjectThatWasCreatedAsIntendedIsOnlyRead(t *testing.T) {
	b := newBench(t)
	for _, verb := range []plan.Verb{plan.VerbReplace, plan.VerbMerge, plan.VerbOverride} {
		d := b.desired(configMap(b.namespace(), "map"), writes[verb])
		created := b.must(step(plan.VerbCreate, d, plan.Observation{}))
		s := b.seen(verb, d, b.observe(d))
		s.SkipIfUnchanged = true
		b.requests()
		read := b.must(s)
		if got := methods(b.requests()); got != "GET" {
			t.Errorf("%s: the requests were %s, not GET", verb, got)
		}
		check.EqualNamed(t, string(verb)+": the answer to the creation and what was read differ", created, read)
		b.otherClient(d, `{"data":{"key":"other"}}`)
		s = b.seen(verb, d, b.observe(d))
		s.SkipIfUnchanged = true
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
		s.SkipIfUnchanged = true
		b.requests()
		if b.run(s); methods(b.requests()) == "GET" {
			t.Errorf("%s: another type of a volume counts as no difference", verb)
		}
	}
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
	resource := check.Must(b.target.Types().Resolve(ctx, d.Key.GroupKind().WithVersion(d.Version)))(b.t)
	live := check.Must(b.target.Objects().Get(ctx, resource, "", d.Key.Name))(b.t)
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
