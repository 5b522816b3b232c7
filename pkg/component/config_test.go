// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testSettings(t testing.TB, options ReconcilerOptions) settings {
	t.Helper()
	s, err := resolveOptions("test.corbel.run", options)
	check(t, err)
	return s
}

func TestDirectives(t *testing.T) {
	defaults := testSettings(t, ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicySsaMerge)})
	plain := resolvedConfig{
		Deployment: revision.Deployment{Namespace: "shop", Name: "main"},
		intervals:  verdict.Intervals{Requeue: 10 * time.Minute, Retry: 10 * time.Minute, Timeout: 10 * time.Minute},
		policies:   defaults.policies,
	}
	tests := []struct {
		name string
		spec widgetSpec
		// annotation is the drift policy on the component.
		annotation string
		want       func(*resolvedConfig)
		err        string
	}{
		{name: "nothing said means the defaults of the reconciler", want: func(*resolvedConfig) {}},
		{name: "zero is no interval of its own", spec: widgetSpec{RequeueSpec: RequeueSpec{duration("0s")}}, want: func(*resolvedConfig) {}},
		{name: "placed elsewhere",
			spec: widgetSpec{PlacementSpec: PlacementSpec{Namespace: "other", Name: "renamed"}},
			want: func(d *resolvedConfig) { d.Namespace, d.Name = "other", "renamed" }},
		{name: "retry and timeout follow the requeue interval",
			spec: widgetSpec{RequeueSpec: RequeueSpec{duration("5m")}},
			want: func(d *resolvedConfig) {
				d.intervals = verdict.Intervals{Requeue: 5 * time.Minute, Retry: 5 * time.Minute, Timeout: 5 * time.Minute}
			}},
		{name: "every interval by itself, none below a second, none negative",
			spec: widgetSpec{RequeueSpec: RequeueSpec{duration("1ms")}, RetrySpec: RetrySpec{duration("2s")}, TimeoutSpec: TimeoutSpec{duration("-3s")}},
			want: func(d *resolvedConfig) {
				d.intervals = verdict.Intervals{Requeue: time.Second, Retry: 2 * time.Second, Timeout: time.Second}
			}},
		{name: "policies over those of the reconciler, the rest stays",
			spec: widgetSpec{PolicySpec: PolicySpec{AdoptionPolicy: v1alpha1.AdoptionPolicyNever, DeletePolicy: v1alpha1.DeletePolicyOrphan}},
			want: func(d *resolvedConfig) {
				d.policies.Adoption, d.policies.Delete = v1alpha1.AdoptionPolicyNever, v1alpha1.DeletePolicyOrphan
			}},
		{name: "a drift policy",
			spec: widgetSpec{DriftSpec: DriftSpec{DriftPolicy: v1alpha1.DriftPolicyReport}},
			want: func(d *resolvedConfig) { d.policies.Drift = v1alpha1.DriftPolicyReport }},
		{name: "the annotation counts before it",
			spec:       widgetSpec{DriftSpec: DriftSpec{DriftPolicy: v1alpha1.DriftPolicyReport}},
			annotation: "ignore",
			want:       func(d *resolvedConfig) { d.policies.Drift = v1alpha1.DriftPolicyIgnore }},
		{name: "a drift policy that does not exist", spec: widgetSpec{DriftSpec: DriftSpec{DriftPolicy: "Maybe"}}, annotation: "never",
			err: `DriftPolicy "Maybe": must be one of [Repair Report Ignore]|drift-policy: "never" is not one of repair, report, ignore`},
		{name: "a reapply interval has a floor",
			spec: widgetSpec{ReapplySpec: ReapplySpec{duration("1s")}},
			want: func(d *resolvedConfig) { d.policies.ReapplyInterval = time.Minute }},
		{name: "managed types with patterns",
			spec: widgetSpec{TypeSpec: TypeSpec{[]v1alpha1.TypeInfo{{Group: "*.crossplane.io", Kind: "*"}, {Group: "*", Kind: "Foo"}, {Group: "a.b", Kind: "Bar"}}}},
			want: func(d *resolvedConfig) {
				d.managedTypes = []reconciler.TypeInfo{{Group: "*.crossplane.io", Kind: "*"}, {Group: "*", Kind: "Foo"}, {Group: "a.b", Kind: "Bar"}}
			}},
		{name: "an illegal namespace", spec: widgetSpec{PlacementSpec: PlacementSpec{Namespace: "a.b"}}, err: `deployment namespace "a.b"`},
		{name: "an illegal name", spec: widgetSpec{PlacementSpec: PlacementSpec{Name: "A"}}, err: `deployment name "A"`},
		{name: "a policy that does not exist", spec: widgetSpec{PolicySpec: PolicySpec{UpdatePolicy: "Sometimes"}},
			err: `UpdatePolicy "Sometimes": must be one of [Replace SsaMerge SsaOverride Recreate RecreateOnImmutable]`},
		{name: "patterns that are none, all of them", spec: widgetSpec{TypeSpec: TypeSpec{[]v1alpha1.TypeInfo{{Group: "a.*", Kind: "Foo"}, {Group: "", Kind: "Pod"}, {Group: "*", Kind: "F*"}}}},
			err: `type 1: group "a.*"|type 2: group ""|type 3: kind "F*"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newWidget()
			obj.Spec = test.spec
			if test.annotation != "" {
				obj.SetAnnotations(map[string]string{"test.corbel.run/drift-policy": test.annotation})
			}
			got, err := resolveConfig(obj, defaults)
			if test.err != "" {
				checkMistakes(t, err, test.err)
				return
			}
			check(t, err)
			want := plain
			test.want(&want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(resolvedConfig{})); diff != "" {
				t.Errorf("resolvedConfig (-want +got):\n%s", diff)
			}
		})
	}
}

// checkMistakes looks for all of the texts, which are separated by bars.
func checkMistakes(t *testing.T, err error, texts string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", texts)
	}
	for text := range strings.SplitSeq(texts, "|") {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func TestIntervalsDoNotOverflow(t *testing.T) {
	if got := interval(math.MaxInt64, time.Minute); time.Now().Add(got).Before(time.Now()) || got+got < got {
		t.Errorf("the interval %s overflows", got)
	}
	if got := interval(math.MinInt64, time.Minute); got != time.Minute {
		t.Errorf("a negative interval became %s", got)
	}
}

// wilful has configurations of its own, besides those of its spec.
type wilful struct{ widget }

func (w *wilful) GetRequeueInterval() time.Duration { return time.Hour }

// byValue returns its spec by value.
type byValue struct{ widget }

type valueSpec struct{ TimeoutSpec }

func (s valueSpec) ToUnstructured() map[string]any { return nil }

func (v *byValue) GetSpec() types.Unstructurable {
	return valueSpec{TimeoutSpec{Timeout: duration("3m")}}
}

// specless returns nil in several ways.
type specless struct {
	widget
	spec types.Unstructurable
}

func (s *specless) GetSpec() types.Unstructurable { return s.spec }

// embeddedPointer has a part of its spec by pointer.
type embeddedPointer struct{ widget }

type pointerSpec struct{ *RetrySpec }

func (s *pointerSpec) ToUnstructured() map[string]any { return nil }

func (e *embeddedPointer) GetSpec() types.Unstructurable { return &pointerSpec{} }

func TestConfigurationOf(t *testing.T) {
	withSpec := &wilful{widget: *newWidget()}
	withSpec.Spec.RequeueInterval = duration("1m")
	withSpec.Spec.RetryInterval = duration("2m")

	if own, ok := configurationOf[RequeueConfiguration](withSpec); !ok || own.GetRequeueInterval() != time.Hour {
		t.Error("the component does not come before its spec")
	}
	if own, ok := configurationOf[RetryConfiguration](withSpec); !ok || own.GetRetryInterval() != 2*time.Minute {
		t.Error("the spec is not asked")
	}
	if own, ok := configurationOf[TimeoutConfiguration](&byValue{}); !ok || own.GetTimeout() != 3*time.Minute {
		t.Error("a spec that is returned by value does not count")
	}
	if _, ok := configurationOf[RetryConfiguration](&byValue{}); ok {
		t.Error("a spec by value has a configuration that it does not implement")
	}
	if own, ok := configurationOf[RetryConfiguration](&embeddedPointer{}); !ok || own.GetRetryInterval() != 0 {
		t.Error("a nil part of a spec is not the default")
	}
	var none *widgetSpec
	for name, spec := range map[string]types.Unstructurable{
		"nil": nil, "nil pointer": none, "nil map": types.UnstructurableMap(nil), "map": types.UnstructurableMap{},
	} {
		if _, ok := configurationOf[RequeueConfiguration](&specless{spec: spec}); ok {
			t.Errorf("%s: a spec that is no RequeueConfiguration is one", name)
		}
	}
}

func TestReadyMadeSpecsCanBeNil(t *testing.T) {
	var (
		placement     *PlacementSpec
		clientSpec    *ClientSpec
		impersonation *ImpersonationSpec
		suspension    *SuspensionSpec
		requeue       *RequeueSpec
		retry         *RetrySpec
		timeout       *TimeoutSpec
		policy        *PolicySpec
		drift         *DriftSpec
		typ           *TypeSpec
		reapply       *ReapplySpec
		patches       *PatchesSpec
	)
	if placement.GetDeploymentNamespace()+placement.GetDeploymentName()+impersonation.GetImpersonationUser() != "" ||
		clientSpec.GetKubeConfig() != nil || impersonation.GetImpersonationGroups() != nil || suspension.IsSuspended() ||
		requeue.GetRequeueInterval()+retry.GetRetryInterval()+timeout.GetTimeout()+reapply.GetReapplyInterval() != 0 ||
		policy.GetAdoptionPolicy() != "" || policy.GetUpdatePolicy() != "" || policy.GetDeletePolicy() != "" ||
		policy.GetMissingNamespacesPolicy() != "" || drift.GetDriftPolicy() != "" || typ.GetAdditionalManagedTypes() != nil || patches.GetPatches() != nil || patches.GetImages() != nil {
		t.Error("a nil spec says something")
	}
}
