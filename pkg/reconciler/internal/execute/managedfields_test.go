// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/owned"
	"github.com/corbel-run/corbel/test/check"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestOnlyEntriesThatCountAsOursAreUnited(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	counts := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "corbel" || owned.IsOneOff(e.Manager) }
	ours := entry("corbel", apply, "", `{"f:a":{}}`)
	owner := metav1.ManagedFieldsEntry{Manager: "corbel", APIVersion: "v1"}
	a := application{
		object: &unstructured.Unstructured{Object: map[string]any{"l": []any{map[string]any{"name": "x"}}}},
		left:   [][]string{{"left"}, {"m", "left"}}, ignored: [][]string{{"ignored"}, {"l", "0", "ignored"}},
	}
	for name, tc := range map[string]struct {
		entries, want []metav1.ManagedFieldsEntry
		more          bool
	}{
		"nothing to do": {entries: []metav1.ManagedFieldsEntry{ours, entry("hpa", update, "", `{"f:b":{}}`)}},
		"a subresource stays": {entries: []metav1.ManagedFieldsEntry{
			ours, entry("kubectl", update, "scale", `{"f:b":{}}`), entry("corbel", update, "status", `{"f:c":{}}`),
		}},
		"our earlier updates": {
			entries: []metav1.ManagedFieldsEntry{entry("corbel", update, "", `{"f:b":{}}`), ours},
			want:    []metav1.ManagedFieldsEntry{entry("corbel", apply, "", `{"f:a":{},"f:b":{}}`)},
			more:    true,
		},
		"updates of what we own anyway": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("helm", update, "", `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{ours},
		},
		"no entry of ours yet": {
			entries: []metav1.ManagedFieldsEntry{entry("helm", update, "", `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{ours},
			more:    true,
		},
		"what we leave stays with its manager, and is not ours": {
			entries: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:left":{}}`), entry("kubectl-rollout", update, "", `{"f:b":{},"f:m":{"f:left":{},"f:c":{}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:m":{"f:c":{}}}`), entry("kubectl-rollout", update, "", `{"f:m":{"f:left":{}}}`),
			},
			more: true,
		},
		"nothing but what we leave": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("kubectl-rollout", update, "", `{"f:m":{".":{},"f:left":{"f:d":{}}}}`)},
		},
		"what is ignored stays with its manager, and with us if we have sent it": {
			entries: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:ignored":{}}`),
				entry("kubectl-edit", update, "", `{"f:b":{},"f:ignored":{},"f:l":{"k:{\"name\":\"x\"}":{"f:ignored":{}},"k:{\"name\":\"y\"}":{"f:ignored":{}}}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:ignored":{},"f:l":{"k:{\"name\":\"y\"}":{"f:ignored":{}}}}`),
				entry("kubectl-edit", update, "", `{"f:ignored":{},"f:l":{"k:{\"name\":\"x\"}":{"f:ignored":{}}}}`),
			},
			more: true,
		},
		"several at once, others untouched": {
			entries: []metav1.ManagedFieldsEntry{
				entry("kubectl-edit", update, "", `{"f:b":{}}`), entry("hpa", update, "", `{"f:c":{}}`),
				ours, entry("helm", apply, "", `{"f:d":{}}`), entry("before-first-apply", update, "", `{"f:e":{}}`),
			},
			want: []metav1.ManagedFieldsEntry{
				entry("hpa", update, "", `{"f:c":{}}`), entry("corbel", apply, "", `{"f:a":{},"f:b":{},"f:d":{},"f:e":{}}`),
			},
			more: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, more, err := uniteEntries(tc.entries, owner, a.leaves, counts)
			if err != nil || more.Empty() == tc.more {
				t.Errorf("got %v, %v", more, err)
			}
			check.Equal(t, tc.want, got)
		})
	}
	if _, _, err := uniteEntries([]metav1.ManagedFieldsEntry{ours, entry("helm", update, "", "nonsense")}, owner, a.leaves, counts); err == nil {
		t.Error("nonsense was understood")
	}
}

func TestEntriesOfVersionsThatAreNotServedAreTranslated(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	of := func(version string, e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
		e.APIVersion = version
		return e
	}
	to := schema.GroupVersion{Group: "example.com", Version: "v2"}
	for name, tc := range map[string]struct{ entries, want []metav1.ManagedFieldsEntry }{
		"all are served": {entries: []metav1.ManagedFieldsEntry{
			of("example.com/v1", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v2", entry("corbel", apply, "", `{"f:b":{}}`)),
		}},
		"another group, such as that of scale": {entries: []metav1.ManagedFieldsEntry{of("autoscaling/v1", entry("hpa", update, "scale", `{"f:a":{}}`))}},
		"one is not served": {
			entries: []metav1.ManagedFieldsEntry{of("example.com/v0", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v1", entry("hpa", update, "", `{"f:b":{}}`))},
			want:    []metav1.ManagedFieldsEntry{of("example.com/v2", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v1", entry("hpa", update, "", `{"f:b":{}}`))},
		},
		"of one manager, beside a subresource": {
			entries: []metav1.ManagedFieldsEntry{
				of("example.com/v0", entry("corbel", apply, "", `{"f:a":{}}`)), of("example.com/v2", entry("corbel", apply, "", `{"f:b":{}}`)),
				of("example.com/v0", entry("corbel", update, "", `{"f:c":{}}`)), of("example.com/v0", entry("other", update, "status", `{"f:d":{}}`)),
			},
			want: []metav1.ManagedFieldsEntry{
				of("example.com/v2", entry("corbel", apply, "", `{"f:a":{},"f:b":{}}`)), of("example.com/v2", entry("corbel", update, "", `{"f:c":{}}`)),
				of("example.com/v2", entry("other", update, "status", `{"f:d":{}}`)),
			},
		},
		"fields that cannot be read": {
			entries: []metav1.ManagedFieldsEntry{of("example.com/v0", entry("corbel", apply, "", `nonsense`)), of("a/b/c", entry("x", update, "", `{"f:b":{}}`))},
			want:    []metav1.ManagedFieldsEntry{of("example.com/v2", entry("x", update, "", `{"f:b":{}}`))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := migrateEntries(tc.entries, to, map[string]bool{"v2": true, "v1": true})
			check.SameNamed(t, "changed", tc.want != nil, changed)
			if diff := cmp.Diff(tc.want, got); changed && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneOffManagersAreDistinguishedFromControllers(t *testing.T) {
	for manager, want := range map[string]bool{
		"kubectl": true, "kubectl-client-side-apply": true, "kubectl-edit": true, "helm": true, "k9s": true, "oc": true, "before-first-apply": true,
		"helm-controller": false, "kustomize-controller": false, "kube-controller-manager": false, "kubectlish": false, "ocm": false, "": false,
	} {
		check.SameNamed(t, manager, want, owned.IsOneOff(manager))
	}
}

func TestWhatExcludesAFieldOfTheManifestIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		live, manifest string
		field, message string
		managers       map[string]string // fields by manager
		want           string            // operations, and managers
	}{
		"a default of a strategy": {
			live: `{spec: {replicas: 5, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden: may not be specified when strategy `type` is 'Recreate'",
			want: `[{"op":"remove","path":"/spec/strategy/rollingUpdate"},{"op":"add","path":"/spec/strategy/type","value":"Recreate"}]`,
		},
		"one that the manifest sets to null": {
			live: `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate, rollingUpdate: null}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden",
			want: `[{"op":"remove","path":"/spec/strategy/rollingUpdate"},{"op":"add","path":"/spec/strategy/type","value":"Recreate"}]`,
		},
		"a field that the message names, behind a sidecar": {
			live:     `{spec: {containers: [{name: side, image: x}, {name: c, image: i, env: [{name: P, value: x}]}]}}`,
			manifest: `{spec: {containers: [{name: c, image: i, env: [{name: P, valueFrom: {a: b}}]}]}}`,
			field:    "spec.containers[1].env[0].valueFrom", message: "Invalid value: \"\": may not be specified when `value` is not empty",
			want: `[{"op":"remove","path":"/spec/containers/1/env/0/value"},{"op":"add","path":"/spec/containers/1/env/0/name","value":"P"},` +
				`{"op":"add","path":"/spec/containers/1/env/0/valueFrom","value":{"a":"b"}}]`,
		},
		"another source of a volume": {
			live: `{spec: {volumes: [{name: v, emptyDir: {}}]}}`, manifest: `{spec: {volumes: [{name: v, configMap: {name: c}}]}}`,
			field: "spec.volumes[0].configMap", message: "Forbidden: may not specify more than 1 volume type",
			want: `[{"op":"remove","path":"/spec/volumes/0/emptyDir"},{"op":"add","path":"/spec/volumes/0/configMap","value":{"name":"c"}},` +
				`{"op":"add","path":"/spec/volumes/0/name","value":"v"}]`,
		},
		"a field of another manager": {
			live: `{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`, manifest: `{spec: {strategy: {type: Recreate}}}`,
			field: "spec.strategy.rollingUpdate", message: "Forbidden", managers: map[string]string{"terraform": `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{},"f:x":{}}},"f:z":{"f:a":{}}}}`},
			want: "spec.strategy.rollingUpdate is set by the field manager terraform",
		},
		"a field of our own": {
			live: `{spec: {minAvailable: 1}}`, manifest: `{spec: {maxUnavailable: 1}}`, field: "spec", message: "Invalid value: minAvailable and maxUnavailable cannot be both set",
			managers: map[string]string{"corbel": `{"f:spec":{"f:minAvailable":{}}}`},
			want:     `[{"op":"remove","path":"/spec/minAvailable"},{"op":"add","path":"/spec/maxUnavailable","value":1}]`,
		},
		"a mistake of the manifest": {
			live: `{spec: {containers: [{name: c, resources: {}, securityContext: {}, image: i}]}}`, manifest: `{spec: {containers: [{name: c, image: ""}]}}`,
			field: "spec.containers[0].image", message: "Required value", want: ``,
		},
		"a path that is nowhere": {live: `{spec: {a: 1}}`, manifest: `{spec: {b: 1}}`, field: "spec.c[7].d", message: "x", want: ``},
		"no path":                {live: `{spec: {a: 1}}`, manifest: `{spec: {b: 1}}`, field: "<nil>", message: "x", want: ``},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: object(t, tc.live)}
			var entries []metav1.ManagedFieldsEntry
			for manager, fields := range tc.managers {
				entries = append(entries, entry(manager, metav1.ManagedFieldsOperationUpdate, "", fields))
			}
			live.SetManagedFields(entries)
			x := exclusions{live: live, owner: "corbel"}
			x.find(live.Object, object(t, tc.manifest), nil, segments(tc.field), tc.message)
			got := strings.Join(x.owned, ", ")
			if len(x.operations) > 0 {
				text := check.Must(json.Marshal(x.operations))(t)
				got += string(text)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	check.NoError(t, yaml.Unmarshal([]byte(text), &content))
	return content
}

func TestAPointerHasTheLiveValue(t *testing.T) {
	for name, tc := range map[string]struct {
		body, live, pointer, want string
	}{
		"a value":                     {body: `{a: 1}`, live: `{a: 2}`, pointer: "/a", want: `{a: 2}`},
		"a map":                       {body: `{a: {b: 1}}`, live: `{a: {c: 2}}`, pointer: "/a", want: `{a: {c: 2}}`},
		"what only the manifest has":  {body: `{a: {b: 1, c: 1}}`, live: `{a: {}}`, pointer: "/a/b", want: `{a: {c: 1}}`},
		"what only the live one has":  {body: `{x: 1}`, live: `{a: {b: 1}}`, pointer: "/a/b", want: `{x: 1, a: {b: 1}}`},
		"a path that neither has":     {body: `{x: 1}`, live: `{}`, pointer: "/a/b/c", want: `{x: 1}`},
		"an element":                  {body: `{a: [{b: 1}, {b: 2}]}`, live: `{a: [{b: 3}, {b: 4}]}`, pointer: "/a/1/b", want: `{a: [{b: 1}, {b: 4}]}`},
		"a whole element":             {body: `{a: [1, 2]}`, live: `{a: [3, 4]}`, pointer: "/a/1", want: `{a: [1, 4]}`},
		"an element that is not live": {body: `{a: [{b: 1}, {b: 2}]}`, live: `{a: [{b: 3}]}`, pointer: "/a/1/b", want: `{a: [{b: 1}, {}]}`},
		"an element that is new":      {body: `{a: [{b: 1}]}`, live: `{a: [{b: 3}, {b: 4}]}`, pointer: "/a/1/b", want: `{a: [{b: 1}]}`},
		"elements of a missing list":  {body: `{x: 1}`, live: `{a: [{b: 3}]}`, pointer: "/a/0/b", want: `{x: 1}`},
		"a path through a value":      {body: `{a: 1}`, live: `{a: 2}`, pointer: "/a/b", want: `{a: 1}`},
		"special characters":          {body: `{"a/b": {"c~d": 1}}`, live: `{"a/b": {"c~d": 2}}`, pointer: "/a~1b/c~0d", want: `{"a/b": {"c~d": 2}}`},
		"an explicit null":            {body: `{a: 1}`, live: `{a: null}`, pointer: "/a", want: `{a: null}`},
	} {
		t.Run(name, func(t *testing.T) {
			live, got := object(t, tc.live), object(t, tc.body)
			keepPath(got, live, split(tc.pointer))
			check.Equal(t, object(t, tc.want), got)
			check.EqualNamed(t, "the live object was changed", object(t, tc.live), live)
		})
	}
}

func TestOnlyKindsWithABundleHaveAnEmptyBundle(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{apiVersion: v1, kind: ConfigMap}`: false, `{apiVersion: example.com/v1, kind: Client, caBundle: ""}`: false,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {caBundle: ""}}`: true,
	} {
		var object map[string]any
		check.NoError(t, yaml.Unmarshal([]byte(manifest), &object))
		check.SameNamed(t, manifest, want, hasEmptyBundle(object))
	}
}
