// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data := check.Must(yaml.YAMLToJSON([]byte(text)))(t)
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

// managers are managed fields: of us, and of others an hour later each.
func managers(owned ...string) string {
	at := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var entries []string
	for _, text := range owned {
		client, fields, _ := strings.Cut(text, " ")
		manager, subresource, _ := strings.Cut(client, "/")
		entries = append(entries, fmt.Sprintf(`{manager: %s, subresource: %q, operation: Update, time: "%s", fieldsV1: %s}`, manager, subresource, at.Format(time.RFC3339), fields))
		at = at.Add(time.Hour)
	}
	return "metadata: {name: a, managedFields: [" + strings.Join(entries, ", ") + "]"
}

func TestDriftOfNamesManagersAndFields(t *testing.T) {
	const head = "apiVersion: v1\nkind: Thing\n"
	const plainMeta = "metadata: {name: a}\n"
	for _, tt := range []struct {
		name           string
		manifest, live string
		owned          []string
		metadata       string // more of the live metadata
		ignore         []string
		want           string
	}{
		{"a value that another manager has now", "data: {x: '1', z: '1'}", "data: {x: '2', z: '1'}",
			[]string{`us {"f:data": {".": {}, "f:z": {}}}`, `edit {"f:data": {"f:x": {}}}`}, "", nil, "edit changed data.x at 2026-01-01T13:00:00Z"},
		{"we keep the map when another client has its last value", "data: {x: '1'}", "data: {x: '2'}",
			[]string{`us {"f:data": {}}`, `edit {"f:data": {"f:x": {}}}`}, "", nil, "edit changed data.x at 2026-01-01T13:00:00Z"},
		{"the last one of several", "data: {x: '1', z: '1'}", "data: {x: '2', z: '2'}",
			[]string{`us {"f:kind": {}}`, `one {"f:data": {"f:x": {}}}`, `two {"f:data": {"f:z": {}}}`}, "", nil, "two changed data.x, data.z at 2026-01-01T14:00:00Z"},
		{"a field that is gone has no owner", "data: {x: '1', z: '1'}", "data: {z: '1'}",
			[]string{`us {"f:data": {"f:z": {}}}`, `edit {"f:other": {}}`}, "", nil, "another client changed data.x"},
		{"a map that is gone is one field", "spec: {a: {b: 1, c: 2}}", "spec: {}", []string{`us {"f:spec": {}}`}, "", nil, "another client changed spec.a"},
		{"what the server spells in its own way is not changed as long as we own it", "spec: {mode: any, x: '1'}", "spec: {mode: ANY, x: '2'}",
			[]string{`us {"f:spec": {"f:mode": {}}}`, `edit {"f:spec": {"f:x": {}}}`}, "", nil, "edit changed spec.x at 2026-01-01T13:00:00Z"},
		{"nor are quantities, nor what is as good as nothing", "spec: {cpu: 1000m, hostNetwork: false, empty: {}, none: null, x: 1}", "spec: {cpu: '1', x: 2}", nil, "", nil, "another client changed spec.x"},
		{"nothing has an owner any more", "spec: {x: 1}", "spec: {x: 2}", nil, "", nil, "another client changed spec.x"},
		{"an element by its name", "spec: {containers: [{name: c, image: i}]}", "spec: {containers: [{name: side, image: s}, {name: c, image: j}]}",
			[]string{`us {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}}`, `edit {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}}}`}, "", nil,
			"edit changed spec.containers[name=c].image at 2026-01-01T13:00:00Z"},
		{"an element by its position, because its key is a value", "spec: {ports: [{port: 80, x: 1}]}", "spec: {ports: [{port: 80, x: 2}]}",
			[]string{`edit {"f:spec": {"f:ports": {'k:{"port":80}': {"f:x": {}}}}}`}, "", nil, "edit changed spec.ports[0].x at 2026-01-01T12:00:00Z"},
		{"a list that has got longer", "rules: [{a: 1}]", "rules: [{a: 1}, {a: 2}]", []string{`edit {"f:rules": {}}`}, "", nil, "edit changed rules at 2026-01-01T12:00:00Z"},
		{"a list of values", "args: [a, b]", "args: [a, c]", []string{`edit {"f:args": {}}`}, "", nil, "edit changed args[1] at 2026-01-01T12:00:00Z"},
		{"elements with one name, by their order", "mounts: [{name: v, path: a}, {name: v, path: b}, {name: w, path: c}]",
			"mounts: [{name: side, path: s}, {name: v, path: a}, {name: v, path: b}, {name: w, path: d}]", nil, "", nil, "another client changed mounts[name=w].path"},
		{"a named element that is gone", "env: [{name: A}, {name: B}]", "env: [{name: A}]", nil, "", nil, "another client changed env[name=B]"},
		{"labels, annotations and finalizers", "metadata: {name: a, labels: {a.b/c: x}, annotations: {d: x}, finalizers: [f/g]}", "data: {}", nil, ", labels: {a.b/c: y}, finalizers: [h/i]", nil,
			"another client changed metadata.annotations, metadata.labels[a.b/c], metadata.finalizers"},
		{"more fields than are shown", "data: {a: '1', b: '1', c: '1', d: '1', e: '1', f: '1'}", "data: {a: '2', b: '2', c: '2', d: '2', e: '2', f: '2'}", nil, "", nil,
			"another client changed data.a, data.b, data.c, data.d and 2 more"},
		{"ignored fields are not shown", "spec: {x: 1, z: [{name: a, v: 1}]}", "spec: {x: 2, z: [{name: a, v: 2}]}", nil, "", []string{"/spec/x", "/spec/z/0/v"}, "another client changed it"},
		{"what was scaled is not shown", "spec: {replicas: 3, x: 1}", "spec: {replicas: 5, x: 2}", []string{`hpa/scale {"f:spec": {"f:replicas": {}}}`}, "", nil, "another client changed spec.x"},
		{"a field became something else", "spec: {a: {b: 1}, c: [1]}", "spec: {a: x, c: y}", nil, "", nil, "another client changed spec.a, spec.c"},
		{"our own status is not the object", "spec: {x: 1}", "spec: {x: 2}", []string{`us/status {"f:spec": {"f:x": {}}}`}, "", nil, "us changed spec.x at 2026-01-01T12:00:00Z"},
		{"an empty map that is gone", "spec: {v: [{name: a, emptyDir: {}}]}", "spec: {v: [{name: a, hostPath: {path: /}}]}", []string{`edit {"f:spec": {}}`}, "", nil, "another client changed spec.v[name=a].emptyDir"},
		{"empty maps that mean nothing", "spec: {labels: {}, resources: {}, limits: {}}", "spec: {}", nil, "", nil, "another client changed it"},
		{"a selector of everything that was narrowed", "spec: {podSelector: {}}", "spec: {podSelector: {a: b}}", []string{`us {"f:spec": {".": {}}}`, `edit {"f:spec": {"f:podSelector": {}}}`}, "", nil, "edit changed spec.podSelector at 2026-01-01T13:00:00Z"},
		{"entries that make no sense", "data: {x: '1'}", "data: {x: '2'}", []string{`edit {"f:data": "x"}`, `"" {"f:data": {"f:x": 1, "k:x": {}, "k:{}": {}}}`}, "", nil, "another client changed data.x at 2026-01-01T13:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			manifest := head + tt.manifest + "\n"
			if !strings.HasPrefix(tt.manifest, "metadata") {
				manifest += plainMeta
			}
			live := objectOf(t, head+managers(tt.owned...)+tt.metadata+"}\n"+tt.live)
			desired := &plan.Desired{Manifest: objectOf(t, manifest)}
			desired.Policies.IgnoreFields = tt.ignore
			if got := DriftOf(live, desired, "us").String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The record of an earlier version of the hash is compared in that version.
func TestAnObjectIsComparedInTheVersionOfItsRecord(t *testing.T) {
	observer := &Observer{options: Options{Name: "corbel.example.com", FieldOwner: "us"}}
	desired := &plan.Desired{Digest: "digest", Manifest: objectOf(t, "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {tls: {}, x: 1}")}
	for _, tt := range []struct {
		recorded, live string
		drifted, same  bool
	}{
		{"present", "{tls: {}, x: 1}", false, false},
		{"present", "{tls: {a: b}, x: 1}", false, false},
		{"present", "{x: 1}", true, false},
		{"earlier", "{x: 1}", false, true},
		{"earlier", "{x: 2}", true, false},
	} {
		hash := digest.Hasher{}.AppliedHash(desired.Manifest.Object, desired.Manifest.Object, nil)
		if tt.recorded == "earlier" {
			hash = digest.Hasher{}.EarlierAppliedHash("earlier", desired.Manifest.Object, desired.Manifest.Object, nil)
		}
		live := objectOf(t, "apiVersion: v1\nkind: Thing\n"+managers()+"}\nspec: "+tt.live)
		seen := observer.observationWithDrift(t.Context(), live, Request{Desired: desired, Recorded: &v1alpha1.InventoryItem{Digest: "digest", AppliedHash: hash}})
		if (seen.Drift != nil) != tt.drifted || (seen.EarlierAppliedHash == hash) != tt.same {
			t.Errorf("recorded in the %s version, live %s: %+v", tt.recorded, tt.live, seen)
		}
	}
}

func TestDriftContainsNoValuesAndStaysShort(t *testing.T) {
	long := strings.Repeat("k", 900)
	live := objectOf(t, "apiVersion: v1\nkind: Secret\n"+managers(strings.Repeat("m", 2000)+` {"f:data": {"f:`+long+`": {}}}`)+"}\ndata: {"+long+": c2VjcmV0, pin: MTIzNA==}")
	desired := &plan.Desired{Manifest: objectOf(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {"+long+": b3RoZXI=, pin: OTg3Ng==}")}
	text := DriftOf(live, desired, "us").String()
	for _, value := range []string{"c2VjcmV0", "MTIzNA", "b3RoZXI", "OTg3Ng"} {
		if strings.Contains(text, value) {
			t.Errorf("a value is shown: %s", text)
		}
	}
	if !strings.Contains(text, "data.pin") || len(text) > 400 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestWhatIsScaledIsAcceptedAsTheManifestHasIt(t *testing.T) {
	manifest := objectOf(t, "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {replicas: 3, x: 1}")
	scaled := objectOf(t, "apiVersion: v1\nkind: Thing\n"+managers(`hpa/scale {"f:spec": {"f:replicas": {}}}`)+"}\nspec: {replicas: 5, x: 1}")
	before := scaled.DeepCopy()
	accepted := func(live *unstructured.Unstructured) string {
		return digest.Hasher{}.AppliedHash(withoutScale(live, manifest), manifest.Object, nil)
	}
	check.SameNamed(t, "scaling is drift", accepted(manifest), accepted(scaled))
	if !strings.EqualFold(fmt.Sprint(before), fmt.Sprint(scaled)) {
		t.Error("the object was changed")
	}
	edited := objectOf(t, "apiVersion: v1\nkind: Thing\n"+managers(`edit {"f:spec": {"f:replicas": {}}}`)+"}\nspec: {replicas: 5, x: 1}")
	if accepted(edited) == accepted(manifest) {
		t.Error("another number, set by hand, is no drift")
	}
}

// Of which manifest an object was made is not known with another digest key. Then it is
// compared with the desired one, whatever manager owns the fields, and nothing counts as drift.
func TestAnObjectOfAnUnknownManifestIsComparedWithTheDesiredOne(t *testing.T) {
	observer := &Observer{options: Options{Name: "corbel.example.com", FieldOwner: "us"}}
	live := objectOf(t, "apiVersion: v1\nkind: ConfigMap\n"+managers(`us {"f:data": {"f:x": {}}}`)+"}\ndata: {x: '1', y: '2'}")
	for _, tt := range []struct {
		recorded, desired string
		differs           bool
	}{
		{"?", "{x: '1', y: '2'}", false},
		{"?@r", "{x: '1'}", false},
		{"?", "{x: '2'}", true},
		{"?@r", "{x: '1', z: '1'}", true},
		{"digest", "{x: '2'}", false},
		{"", "{x: '2'}", false},
	} {
		desired := &plan.Desired{Digest: "digest", Manifest: objectOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: "+tt.desired)}
		recorded := &v1alpha1.InventoryItem{Digest: tt.recorded}
		seen := observer.observationWithDrift(t.Context(), live, Request{Desired: desired, Recorded: recorded})
		if seen.Differs != tt.differs || seen.Drift != nil || seen.AppliedHash == "" {
			t.Errorf("recorded as %q, desired %s: %+v", tt.recorded, tt.desired, seen)
		}
	}
}

var lease = plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "lease"}

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

func TestAnObjectThatChangesEverySecondIsReadLessAndLessOften(t *testing.T) {
	s := NewDriftChecks()
	var looks []time.Duration
	for second := range 3600 {
		at := noon.Add(time.Duration(second) * time.Second)
		if s.Allow("main", lease, strconv.Itoa(second), at) {
			looks = append(looks, at.Sub(noon))
		}
	}
	for i := driftCheckLimits.Burst; i < len(looks); i++ {
		if gap := looks[i] - looks[i-1]; gap < driftCheckLimits.Base || gap > driftCheckLimits.Limit {
			t.Errorf("look %d comes %s after the one before", i+1, gap)
		}
	}
	if len(looks) < driftCheckLimits.Burst+5 || len(looks) > 22 {
		t.Errorf("%d looks in an hour, at %v", len(looks), looks)
	}
	check.SameNamed(t, "at the end it is looked at every", driftCheckLimits.Limit, looks[len(looks)-1]-looks[len(looks)-2])
}

func TestARefusedReadIsAllowedAfterThePause(t *testing.T) {
	s := NewDriftChecks()
	for i := range driftCheckLimits.Burst {
		s.Allow("main", lease, strconv.Itoa(i), noon)
	}
	if last := strconv.Itoa(driftCheckLimits.Burst - 1); !s.Allow("main", lease, last, noon) {
		t.Error("what was read cannot be used")
	}
	now := noon.Add(time.Second)
	if s.Allow("main", lease, "drifted", now) {
		t.Fatal("it is read once more, at once")
	}
	next := s.Next("main", lease, now)
	if want := noon.Add(driftCheckLimits.Base); !next.Equal(want) {
		t.Errorf("it is read again at %s, want %s", next, want)
	}
	if !s.Next("other", lease, now).Equal(now) {
		t.Error("other owners wait for it")
	}
	if !s.Allow("main", lease, "drifted", next) {
		t.Error("it is not read after the pause")
	}
}

func TestTheDriftOfTheLastReadIsKnownAsLongAsReadsAreRefused(t *testing.T) {
	s := NewDriftChecks()
	found := &report.Drift{Manager: "kubectl-edit"}
	s.setDrift("main", lease, found)
	if s.lastDrift("main", lease, noon) != nil {
		t.Error("something is kept of an object that was not read")
	}
	for i := range driftCheckLimits.Burst {
		s.Allow("main", lease, strconv.Itoa(i), noon)
		s.setDrift("main", lease, found)
	}
	if s.Allow("main", lease, "refused", noon) || s.lastDrift("main", lease, noon) != found {
		t.Errorf("known is %v", s.lastDrift("main", lease, noon))
	}
	s.Allow("main", lease, "allowed", noon.Add(driftCheckLimits.Base)) // and the answer does not come
	if s.lastDrift("main", lease, noon) != found {
		t.Error("it is dropped before there is an answer")
	}
	s.setDrift("main", lease, nil)
	if s.lastDrift("main", lease, noon) != nil {
		t.Error("it is right again, and its drift is kept")
	}
}

func TestWhatAPUTCarriesOverIsKnownOfMostObjects(t *testing.T) {
	const revision, restarted = "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt"
	for name, tc := range map[string]struct {
		live map[string]any
		want string
	}{
		"a Deployment": {
			map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(2), "paused": true},
				"metadata": map[string]any{"annotations": map[string]any{revision: "3", "other": "x"}},
			},
			`{"metadata":{"annotations":{"` + revision + `":"3"}},"spec":{"replicas":2}}`,
		},
		"a DaemonSet that was restarted": {
			map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{restarted: "now"}}}}},
			`{"spec":{"template":{"metadata":{"annotations":{"` + restarted + `":"now"}}}}}`,
		},
		"a role, whose rules may be many":               {map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": map[string]any{}, "rules": []any{}}, ""},
		"a Deployment that its controller has not seen": {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}, "{}"},
		"a ServiceAccount":                              {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": "a"}}}, `{"secrets":[{"name":"a"}]}`},
		"a kind that is read":                           {map[string]any{"apiVersion": "batch/v1", "kind": "Job"}, ""},
		"too much":                                      {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": strings.Repeat("a", maxCarried)}}}, ""},
		"of another shape":                              {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": "none"}, ""},
	} {
		check.SameNamed(t, name, tc.want, carriedOf(&unstructured.Unstructured{Object: tc.live}))
	}
}

func TestAnOverrideReclaimsWhatOneOffManagersHaveSet(t *testing.T) {
	for _, tt := range []struct {
		policy v1alpha1.UpdatePolicy
		owned  string
		want   bool
	}{
		{v1alpha1.UpdatePolicySsaOverride, "kubectl-edit {}", true},
		{v1alpha1.UpdatePolicySsaOverride, "hpa {}", false},
		{v1alpha1.UpdatePolicySsaOverride, "kubectl/scale {}", false},
		{v1alpha1.UpdatePolicySsaMerge, "kubectl-edit {}", false},
		{v1alpha1.UpdatePolicyReplace, "kubectl-edit {}", false},
	} {
		live := objectOf(t, "apiVersion: v1\nkind: Thing\n"+managers(tt.owned)+"}")
		desired := &plan.Desired{Manifest: live}
		desired.Policies.Update = tt.policy
		check.SameNamed(t, string(tt.policy)+", "+tt.owned, tt.want, reclaims(live, desired))
	}
}
