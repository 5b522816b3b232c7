// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// recordUpgrade makes the test write its testdata instead of reading it: copy this file
// into a checkout of an earlier revision, run the test there with the flag, and copy the
// folder back.
var recordUpgrade = flag.String("record-upgrade", "", "record the states that the test starts from, by this build, as those of a `revision`")

// upgradeFolder has a folder for each revision with recorded states.
const upgradeFolder = "testdata/upgrade"

// upgradeNamespace is where the operator of an upgrade keeps its digest key.
const upgradeNamespace = "upgrade-operator"

// upgrade is a component that an earlier build has brought to a state.
type upgrade struct {
	name      string
	revision  string // of the earlier build
	generator func(t *testing.T) manifests.Generator
	spec      widget.Spec
	options   component.ReconcilerOptions
	// threshold is the size in bytes at which the inventory moves to Secrets; 0 for the default.
	threshold int
	// others are objects that exist before the component; those that are components are reconciled, too.
	others []client.Object
	// release: the component takes over a Helm release.
	release bool
	// earlier is the generator of the operator before the first step that is upgraded; nil if there is no such step.
	earlier manifests.Generator
	// retries: a hook delays the deletion as long as the component has the annotation upgradeHold.
	retries bool
	// hooked: a pre-reconcile hook runs that is not marked by PreviewSafe.
	hooked bool
	// steps lead to the state that is recorded; without any the component becomes Ready.
	steps []upgradeStep
	// changed is the key of the component's values that the test changes after the upgrade; empty if it only deletes
	// the component.
	changed string
	// shares are the writes to the definition in the folder crds of the chart. The recorded component owns it, and the
	// present build shares it. Empty if there is none.
	shares []string
}

// upgradeStep is a change by a user, and the state that follows.
type upgradeStep struct {
	// other: it is about the component "ahead" instead of "main".
	other bool
	// upgraded: the operator is replaced.
	upgraded bool
	// change is what the user changes; nil if nothing.
	change func(*widget.Widget)
	// held is a ConfigMap that gets the finalizer upgradeHold; empty if none.
	held string
	// deleted: the user deletes the component.
	deleted bool
	// state, revision and message are those of the component afterwards. The message is part of that of condition Ready.
	// Any revision will do if it is 0.
	state    v1alpha1.State
	revision int64
	message  string
}

// reached reports whether a component is as it is after the step.
func (s upgradeStep) reached(w *widget.Widget) bool {
	state, _, message := w.Status.GetState()
	return state == s.state && (s.revision == 0 || w.Status.Revision == s.revision) && strings.Contains(message, s.message)
}

// ready is the step of a component that becomes Ready.
var ready = upgradeStep{state: v1alpha1.StateReady}

// upgradeHold is a finalizer, or an annotation, that holds a deletion up.
const upgradeHold = "example.com/hold"

func upgrades(t *testing.T) []upgrade {
	t.Helper()
	maps := func(*testing.T) manifests.Generator { return manifests.GeneratorFunc(configMaps) }
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprintf("config-%02d", i)] = "1"
	}
	other := func(of, name string, annotations, labels map[string]string) client.Object {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "upgrade-" + of, Name: name, Annotations: annotations, Labels: labels},
			Data:       map[string]string{"value": "theirs", "more": "theirs"},
		}
	}
	ofHelm := map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "upgrade-adopted"}
	byHelm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	// A ConfigMap with the value "wait" is not ready.
	waits := component.ReconcilerOptions{Objects: component.ObjectOptions{ReadyWhen: []reconciler.ReadyWhen{{Type: reconciler.TypeInfo{Kind: "ConfigMap"}, Expression: "self.data.value != 'wait'"}}}}
	rollsBack, rollsOut := waits, waits
	rollsBack.Revisions.RollbackOnFailure, rollsOut.Revisions.Rollout = true, atMost(1)
	spec := func(timeout time.Duration) widget.Spec {
		return widget.Spec{Values: map[string]string{"a": "1"}, TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: timeout}}}
	}
	const long = 50_000 * time.Hour
	set := func(key, value string) func(*widget.Widget) {
		return func(w *widget.Widget) { w.Spec.Values[key] = value }
	}
	return []upgrade{
		{ // The first one, because a roll-out counts all components.
			name: "rollout", options: rollsOut, spec: spec(long), earlier: numbered("1"),
			generator: func(*testing.T) manifests.Generator { return numbered("wait") },
			others:    []client.Object{&widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrade-rollout", Name: "ahead"}, Spec: spec(long)}},
			steps: []upgradeStep{
				{other: true, state: v1alpha1.StateReady}, ready,
				{other: true, upgraded: true, state: v1alpha1.StateProcessing, revision: 2}, {state: v1alpha1.StateReady, revision: 1, message: "turn"},
			},
		},
		{
			name: "installing", generator: maps, options: waits, steps: []upgradeStep{{state: v1alpha1.StateProcessing, message: "ConfigMap"}},
			spec: widget.Spec{Values: map[string]string{"a": "wait", "b": "1"}, TimeoutSpec: spec(long).TimeoutSpec, PatchesSpec: component.PatchesSpec{Patches: []v1alpha1.Patch{{
				Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {installing.corbel.run/apply-order: '1'}}\n",
			}}}},
		},
		{
			name: "waiting", generator: maps, options: waits, spec: spec(long), threshold: 100,
			steps: []upgradeStep{ready, {change: set("a", "wait"), state: v1alpha1.StateProcessing, revision: 2, message: "ConfigMap"}},
		},
		{
			name: "timeout", generator: maps, options: waits, spec: spec(time.Second),
			steps: []upgradeStep{ready, {change: set("a", "wait"), state: v1alpha1.StateError, message: "ConfigMap"}},
		},
		{
			name: "rolledback", generator: maps, options: rollsBack, spec: spec(time.Second),
			steps: []upgradeStep{ready, {change: set("a", "wait"), state: v1alpha1.StateError, revision: 3, message: "rolled back"}},
		},
		{
			name: "conflict", generator: maps, spec: widget.Spec{Values: map[string]string{"of-helm": "1", "ours": "1"}},
			others: []client.Object{other("conflict", "of-helm", ofHelm, byHelm)},
			steps:  []upgradeStep{{state: v1alpha1.StateError, message: "of-helm"}},
		},
		{
			name: "invalid", generator: maps, spec: spec(long),
			steps: []upgradeStep{ready, {change: func(w *widget.Widget) { w.Spec.Values = map[string]string{"No Name": "1"} }, state: v1alpha1.StateError, message: "No Name"}},
		},
		{
			name: "suspended", generator: maps, spec: spec(long),
			steps: []upgradeStep{ready, {change: func(w *widget.Widget) { w.Spec.Suspend = true }, state: v1alpha1.StateSuspended}},
		},
		{
			name: "approval", generator: maps, spec: spec(long),
			steps: []upgradeStep{ready, {change: func(w *widget.Widget) {
				w.Annotations = map[string]string{"approval.corbel.run/" + vocabulary.AnnotationRequireApproval: "true"}
				w.Spec.Values["a"] = "2"
			}, state: v1alpha1.StatePending, revision: 1}},
		},
		{
			name: "history", generator: randomChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value",
			steps: []upgradeStep{ready, {change: set("value", "2"), state: v1alpha1.StateReady, revision: 2}, {change: set("value", "3"), state: v1alpha1.StateReady, revision: 3}},
		},
		{
			name: "pinned", generator: hookedChart, spec: widget.Spec{Values: map[string]string{"value": "1"}},
			steps: []upgradeStep{ready, {change: set("value", "2"), state: v1alpha1.StateReady, revision: 2}, {change: func(w *widget.Widget) {
				w.Annotations = map[string]string{"pinned.corbel.run/" + vocabulary.AnnotationRollbackTo: "1"}
			}, state: v1alpha1.StateReady, revision: 3}},
		},
		{
			name: "blocked", generator: maps, spec: spec(long),
			steps: []upgradeStep{ready, {change: func(w *widget.Widget) { w.Finalizers = append(w.Finalizers, upgradeHold) }, deleted: true, state: v1alpha1.StateDeleting}},
		},
		{
			name: "deleting", generator: hookedChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, threshold: 100,
			steps: []upgradeStep{ready, {held: "own", deleted: true, state: v1alpha1.StateDeleting, message: upgradeHold}},
		},
		{
			name: "retrying", generator: maps, spec: spec(long), retries: true,
			steps: []upgradeStep{ready, {change: func(w *widget.Widget) { w.Annotations = map[string]string{upgradeHold: "true"} }, deleted: true, state: v1alpha1.StateDeletionPending}},
		},
		{
			name: "release", generator: releasedChart, spec: widget.Spec{Values: map[string]string{"color": "red"}}, changed: "color",
			options: component.ReconcilerOptions{Users: component.UserOptions{AdoptHelmReleases: true}}, release: true,
		},
		{name: "templates", generator: templatedMap, hooked: true, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{
			name: "backtemplates", generator: templatedMap, hooked: true, options: rollsBack, spec: spec(time.Second),
			steps: []upgradeStep{ready, {change: set("value", "wait"), state: v1alpha1.StateError, revision: 3, message: "rolled back"}},
		},
		{
			name: "pinnedtemplates", generator: templatedMap, spec: widget.Spec{Values: map[string]string{"value": "1"}},
			steps: []upgradeStep{ready, {change: set("value", "2"), state: v1alpha1.StateReady, revision: 2}, {change: func(w *widget.Widget) {
				w.Annotations = map[string]string{"pinnedtemplates.corbel.run/" + vocabulary.AnnotationRollbackTo: "1"}
			}, state: v1alpha1.StateReady, revision: 3}},
		},
		{
			name: "waitingtemplates", generator: templatedMap, options: waits, spec: spec(long),
			steps: []upgradeStep{ready, {change: set("value", "wait"), state: v1alpha1.StateProcessing, revision: 2, message: "ConfigMap"}},
		},
		{
			name: "unkept", generator: templatedMap, options: component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: new(0)}},
			spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value",
		},
		{name: "kustomization", generator: kustomization, spec: spec(long)},
		{name: "types", generator: chartOfType("types", "1.0.0", helm.CRDsApply), spec: spec(long), shares: []string{http.MethodPut}},
		// It is never changed, and loses its owner with the component.
		{name: "oncetypes", generator: chartOfType("oncetypes", "1.0.0", helm.CRDsOnce), spec: spec(long), shares: []string{http.MethodPatch}},
		{ // Its definition has another version in the chart of the present build, which no component applies before the deletion.
			name: "suspendedtypes", generator: chartOfType("suspendedtypes", "1.1.0", helm.CRDsApply), earlier: chartOfType("suspendedtypes", "1.0.0", helm.CRDsApply)(t), spec: spec(long),
			steps:  []upgradeStep{ready, {change: func(w *widget.Widget) { w.Spec.Suspend = true }, state: v1alpha1.StateSuspended}},
			shares: []string{http.MethodPatch},
		},
		{name: "composed", generator: composed, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{name: "small", generator: maps, spec: widget.Spec{Values: map[string]string{"a": "1", "b": "2"}}, changed: "a"},
		{name: "hooks", generator: hookedChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{name: "spilled", generator: maps, spec: widget.Spec{Values: many}, threshold: 3000, changed: "config-07"},
		{name: "random", generator: randomChart, spec: widget.Spec{Values: map[string]string{"value": "1"}}, changed: "value"},
		{
			name: "adopted", generator: maps, spec: widget.Spec{Values: map[string]string{"of-helm": "1", "unowned": "1", "ours": "1"}},
			options: component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyAlways)}, changed: "unowned",
			others: []client.Object{
				other("adopted", "unowned", nil, nil),
				other("adopted", "of-helm", ofHelm, byHelm),
			},
		},
	}
}

// numbered is a generator of a version. It makes a ConfigMap with the number.
type numbered string

func (n numbered) Digest() string { return string(n) }

func (n numbered) Generate(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": string(n)},
	}}, nil
}

// releasedChart has a random value and a hook.
func releasedChart(t *testing.T) manifests.Generator {
	t.Helper()
	const own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.color }}', password: '{{ randAlphaNum 20 }}'}\n"
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: store\nversion: 1.0.0\n")},
		"values.yaml":          {Data: []byte("values: {color: none}\n")},
		"templates/own.yaml":   {Data: []byte(own)},
		"templates/hooks.yaml": {Data: []byte(fmt.Sprintf(hookJob, "before", "pre-install,pre-upgrade", "before-hook-creation"))},
	}, ".", helm.Options{}))(t)
}

// hookJob is a Job that runs as a hook.
const hookJob = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {helm.sh/hook: '%s', helm.sh/hook-delete-policy: '%s'}\n" +
	"spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: work, image: registry.example.com/work:1}]}}}\n---\n"

// randomChart has a random value and one of the time.
func randomChart(t *testing.T) manifests.Generator {
	t.Helper()
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":            {Data: []byte("apiVersion: v2\nname: random\nversion: 1.0.0\n")},
		"values.yaml":           {Data: []byte("values: {value: none}\n")},
		"templates/own.yaml":    {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
		"templates/random.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: random}\ndata: {password: '{{ randAlphaNum 20 }}', at: '{{ now | unixEpoch }}'}\n")},
	}, ".", helm.Options{}))(t)
}

// templatedMap makes a ConfigMap that is written with each change of the component.
func templatedMap(t *testing.T) manifests.Generator {
	t.Helper()
	const own = `apiVersion: v1
kind: ConfigMap
metadata: {name: own, annotations: {"{{ .Release.Service }}/reconcile-policy": on-object-or-component-change}}
data: {value: '{{ .Values.values.value }}', digest: '{{ .Component.Digest }}', revision: '{{ .Component.Revision }}', {{ if ne .Values.values.value "wait" }}password: '{{ randAlphaNum 20 }}'{{ end }}}
`
	return must(gotemplate.New(fstest.MapFS{"own.yaml": {Data: []byte(own)}}, ".", gotemplate.Options{}))(t)
}

func kustomization(t *testing.T) manifests.Generator {
	t.Helper()
	return must(kustomize.New(fstest.MapFS{
		"kustomization.yaml": {Data: []byte("resources: [own.yaml]\nconfigMapGenerator: [{name: generated, literals: [a=b]}]\n")},
		"own.yaml":           {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n")},
	}, ".", kustomize.Options{}))(t)
}

// composed has a chart with an option, files and transformers.
func composed(t *testing.T) manifests.Generator {
	t.Helper()
	const own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}', service: '{{ .Release.Service }}'}\n"
	chart := must(helm.New(fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: composed\nversion: 1.0.0\n")},
		"values.yaml":          {Data: []byte("values: {value: none}\n")},
		"templates/own.yaml":   {Data: []byte(own)},
		"templates/hooks.yaml": {Data: []byte(fmt.Sprintf(hookJob, "before", "pre-install,pre-upgrade", "before-hook-creation"))},
	}, ".", helm.Options{ReleaseService: "composed"}))(t)
	files := must(manifests.FromFS(fstest.MapFS{"fixed.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\n")}}, "."))(t)
	return manifests.Transform(manifests.Join(chart, files), manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "b"})))
}

// chartOfType has a definition in the folder crds, and an instance of it.
func chartOfType(name, version string, crds helm.CRDPolicy) func(*testing.T) manifests.Generator {
	definition := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.%[1]s.corbel.run}
spec:
  group: %[1]s.corbel.run
  scope: Namespaced
  names: {plural: parts, singular: part, kind: Part, listKind: PartList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: %[2]q, x-kubernetes-preserve-unknown-fields: true}}}
`, name, version)
	return func(t *testing.T) manifests.Generator {
		t.Helper()
		return must(helm.New(fstest.MapFS{
			"Chart.yaml":          {Data: fmt.Appendf(nil, "apiVersion: v2\nname: typed\nversion: %s\n", version)},
			"crds/parts.yaml":     {Data: []byte(definition)},
			"templates/part.yaml": {Data: fmt.Appendf(nil, "apiVersion: %s.corbel.run/v1\nkind: Part\nmetadata: {name: own}\n", name)},
		}, ".", helm.Options{CRDs: crds}))(t)
	}
}

// hookedChart has Jobs that run before and after an installation, and before a deletion.
func hookedChart(t *testing.T) manifests.Generator {
	t.Helper()
	hooks := fmt.Sprintf(hookJob, "before", "pre-install,pre-upgrade", "before-hook-creation") +
		fmt.Sprintf(hookJob, "after", "post-install,post-upgrade", "before-hook-creation,hook-succeeded") +
		fmt.Sprintf(hookJob, "end", "pre-delete", "before-hook-creation")
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":           {Data: []byte("apiVersion: v2\nname: hooked\nversion: 1.0.0\n")},
		"values.yaml":          {Data: []byte("values: {value: none}\n")},
		"templates/hooks.yaml": {Data: []byte(hooks)},
		"templates/own.yaml":   {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
	}, ".", helm.Options{}))(t)
}

// TestAnUpgradeOfTheOperatorWritesNoDependent takes over components as earlier builds
// left them: dependents, Secrets and status are loaded from testdata/upgrade with
// the uids and the managed fields that they had.
func TestAnUpgradeOfTheOperatorWritesNoDependent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	e := env.New(t, env.Options{Cluster: *recordUpgrade != ""})
	must(envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"testdata/crds"}}))(t)
	c := must(client.New(e.Config(), client.Options{Scheme: newScheme(t)}))(t)
	for _, u := range upgrades(t) {
		if len(u.steps) == 0 {
			u.steps = []upgradeStep{ready}
		}
		for _, name := range []string{upgradeNamespace, u.namespace()} {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			check(t, client.IgnoreAlreadyExists(c.Create(t.Context(), namespace)))
		}
		if *recordUpgrade != "" {
			u.revision = *recordUpgrade
			u.record(t, e, c)
			continue
		}
		for _, revision := range must(os.ReadDir(upgradeFolder))(t) {
			u.revision = revision.Name()
			if _, err := os.Stat(u.file()); errors.Is(err, os.ErrNotExist) {
				continue // the revision had no such thing
			}
			t.Run(u.name+" of "+u.revision, func(t *testing.T) {
				u.load(t, e, c)
				u.takeOver(t, e, c)
			})
		}
	}
}

func (u upgrade) namespace() string { return "upgrade-" + u.name }

// operatorName differs from case to case, so that each has a digest key of its own.
func (u upgrade) operatorName() string { return u.name + ".corbel.run" }

func (u upgrade) file() string { return filepath.Join(upgradeFolder, u.revision, u.name+".json") }

// start returns a reconciler with a manager that does not run, like that of a bed.
func (u upgrade) start(t *testing.T, e *env.Environment, wrap func(http.RoundTripper) http.RoundTripper) *component.Reconciler[*widget.Widget] {
	t.Helper()
	options := u.options
	options.Operator.OperatorNamespace, options.Operator.ClusterUID = new(upgradeNamespace), new("7d0ec2a4-1f0e-4b8e-9c39-4d3d1f6a2f10")
	generator := u.earlier
	if generator == nil {
		generator = u.generator(t)
	}
	reconciler := component.NewReconciler[*widget.Widget](u.operatorName(), generator, options)
	if u.threshold > 0 {
		component.SetInventoryThreshold(reconciler, u.threshold)
	}
	if u.hooked {
		reconciler.WithPreReconcileHook(func(context.Context, client.Client, *widget.Widget) error { return nil })
	}
	if u.retries {
		reconciler.WithPreDeleteHook(func(_ context.Context, _ client.Client, w *widget.Widget) error {
			if w.Annotations[upgradeHold] != "" {
				return types.NewRetriableError(errors.New("the component is held"), new(time.Minute))
			}
			return nil
		})
	}
	check(t, reconciler.SetupWithManager(newManager(t, e, "operator-"+u.name, wrap)))
	return reconciler
}

// key is that of the component of a step.
func (u upgrade) key(step upgradeStep) client.ObjectKey {
	if step.other {
		return client.ObjectKey{Namespace: u.namespace(), Name: "ahead"}
	}
	return client.ObjectKey{Namespace: u.namespace(), Name: "main"}
}

// until reconciles until the component is as after the step, or is gone if the step has no state.
func (u upgrade) until(t *testing.T, c client.Client, reconciler *component.Reconciler[*widget.Widget], step upgradeStep) *widget.Widget {
	t.Helper()
	w := &widget.Widget{}
	for deadline := time.Now().Add(patience); ; {
		result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: u.key(step)})
		if getErr := c.Get(t.Context(), u.key(step), w); getErr != nil {
			if client.IgnoreNotFound(getErr) == nil && step.state == "" {
				return nil
			}
			t.Fatal(getErr)
		}
		conditionstest.Check(t, conditions.For(w, &w.Status.Conditions))
		if step.reached(w) {
			return w
		}
		if time.Now().After(deadline) {
			state, reason, message := w.Status.GetState()
			t.Fatalf("%s: the state is %s, %s: %s; the last reconcile returned %+v and %v", u.name, state, reason, message, result, err)
		}
		u.completeJobs(t, c)
		time.Sleep(min(result.RequeueAfter, 100*time.Millisecond))
	}
}

// completeJobs stands in for the Job controller, which runs only when states are recorded.
func (u upgrade) completeJobs(t *testing.T, c client.Client) {
	t.Helper()
	if *recordUpgrade != "" {
		return
	}
	for _, job := range u.list(t, c, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}) {
		if _, done, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "completionTime"); done {
			continue
		}
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(kind string) any {
			return map[string]any{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
		}
		job.Object["status"] = map[string]any{
			"startTime": now, "completionTime": now, "succeeded": int64(1), "uncountedTerminatedPods": map[string]any{},
			"conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")},
		}
		check(t, c.Status().Update(t.Context(), &job))
	}
}

func (u upgrade) list(t *testing.T, c client.Client, kind schema.GroupVersionKind, options ...client.ListOption) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	check(t, c.List(t.Context(), list, append(options, client.InNamespace(u.namespace()))...))
	return list.Items
}

// upgradeKind is a kind of objects that are recorded, with its key in etcd.
type upgradeKind struct {
	schema.GroupVersionKind
	etcd string
}

// upgradeKinds are the kinds of the objects that are recorded.
var upgradeKinds = []upgradeKind{
	{schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"}, "test.corbel.run/widgets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"},
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "jobs"},
}

// definitionKind is the kind of the objects in the folder crds of a chart.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// kinds are those of the case, in the order in which they can be loaded.
func (u upgrade) kinds() []upgradeKind {
	if len(u.shares) == 0 {
		return upgradeKinds
	}
	group := u.name + ".corbel.run"
	return append(slices.Clone(upgradeKinds), upgradeKind{definitionKind, "apiextensions.k8s.io/customresourcedefinitions"},
		upgradeKind{schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Part"}, group + "/parts"})
}

// definition is the name of the definition in the chart.
func (u upgrade) definition() string { return "parts." + u.name + ".corbel.run" }

// state returns the component, its Secrets, the digest key and the dependents.
func (u upgrade) state(t *testing.T, c client.Client) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, kind := range u.kinds() {
		objects = append(objects, u.list(t, c, kind.GroupVersionKind)...)
	}
	objects = slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
		return o.GetName() == "kube-root-ca.crt" || o.GetKind() == definitionKind.Kind && o.GetName() != u.definition()
	})
	key := &unstructured.Unstructured{}
	key.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	check(t, c.Get(t.Context(), client.ObjectKey{Namespace: upgradeNamespace, Name: u.operatorName() + "-digest-key"}, key))
	return append(objects, *key)
}

// record brings the component to its state by this build and writes it down.
func (u upgrade) record(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	for _, other := range u.others {
		check(t, c.Create(t.Context(), other, client.FieldOwner("others")))
	}
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace(), Name: "main"}, Spec: u.spec}
	if u.release {
		(&bed{T: t, client: c, namespace: u.namespace()}).install(u.generator(t), release{revision: 3})
		w.Annotations = map[string]string{u.operatorName() + "/" + vocabulary.AnnotationAdoptHelmRelease: u.namespace() + "/main/3"}
	}
	check(t, c.Create(t.Context(), w))
	reconciler := u.start(t, e, nil)
	for _, step := range u.steps {
		if step.upgraded {
			u.earlier = nil
			reconciler = u.start(t, e, nil)
		}
		u.take(t, c, step)
		u.until(t, c, reconciler, step)
		u.until(t, c, reconciler, step)
	}
	objects := u.state(t, c)
	for i := range objects {
		objects[i].SetResourceVersion("")
	}
	content := must(json.MarshalIndent(objects, "", " "))(t)
	check(t, errors.Join(os.MkdirAll(filepath.Dir(u.file()), 0o755), os.WriteFile(u.file(), append(content, '\n'), 0o644)))
}

// take makes the change of a step.
func (u upgrade) take(t *testing.T, c client.Client, step upgradeStep) {
	t.Helper()
	w := &widget.Widget{}
	err := c.Get(t.Context(), u.key(step), w)
	if err == nil && step.change != nil {
		step.change(w)
		err = c.Update(t.Context(), w)
	}
	if err == nil && step.held != "" {
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace(), Name: step.held}}
		err = c.Patch(t.Context(), held, client.RawPatch(apitypes.MergePatchType, []byte(`{"metadata":{"finalizers":["`+upgradeHold+`"]}}`)), client.FieldOwner("others"))
	}
	if err == nil && step.deleted {
		err = c.Delete(t.Context(), w)
	}
	check(t, err)
}

// load puts the recorded state into etcd, and waits until the API server has it.
func (u upgrade) load(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	var objects []unstructured.Unstructured
	check(t, json.Unmarshal(must(os.ReadFile(u.file()))(t), &objects))
	for _, o := range objects {
		i := slices.IndexFunc(u.kinds(), func(k upgradeKind) bool { return k.GroupVersionKind == o.GroupVersionKind() })
		check(t, e.Store(t.Context(), path.Join(u.kinds()[i].etcd, o.GetNamespace(), o.GetName()), o.Object))
	}
	for _, o := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(&o), live)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		live.SetResourceVersion("")
		if diff := cmp.Diff(o.Object, live.Object); diff != "" {
			t.Errorf("%s is not what was stored (-want +got):\n%s", o.GetName(), diff)
		}
	}
}

// writes records the requests that change something, but for events and reviews.
type writes struct {
	sync.Mutex
	requests []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") && !strings.HasSuffix(r.URL.Path, "/events") {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && err == nil && answer.StatusCode == http.StatusConflict {
				return answer, nil // it exists, and the answer to a creation is how that is found out
			}
			w.Lock()
			w.requests = append(w.requests, r.Method+" "+r.URL.Path)
			w.Unlock()
			return answer, err
		}
		return next.RoundTrip(r)
	})
}

// take returns the writes since the last call.
func (w *writes) take() []string {
	w.Lock()
	defer w.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}

func (u upgrade) takeOver(t *testing.T, e *env.Environment, c client.Client) {
	t.Helper()
	u.earlier = nil
	last, before := u.steps[len(u.steps)-1], &widget.Widget{}
	check(t, c.Get(t.Context(), u.key(last), before))
	sent := &writes{}
	reconciler := u.start(t, e, sent.wrap)
	// A build may add to its own record. It writes nothing else, and that once.
	w := u.until(t, c, reconciler, last)
	requests, shared := u.withoutDefinition(sent.take())
	for _, request := range requests {
		ofHistory := request == "POST /api/v1/namespaces/"+u.namespace()+"/secrets" || strings.Contains(request, "/secrets/main-revisions-")
		if !strings.HasSuffix(request, "/widgets/main/status") && !strings.Contains(request, "/secrets/main-inventory-") && !ofHistory {
			t.Errorf("the new build sends %s", request)
		}
	}
	for range 2 {
		w = u.until(t, c, reconciler, last)
	}
	if requests := sent.take(); len(requests) > 0 {
		t.Errorf("the new build sends at rest %q", requests)
	}
	for _, item := range w.Status.Inventory.Items {
		if item.Kind == definitionKind.Kind && len(shared) > 0 {
			t.Errorf("%s is on record", item.Name)
		}
	}
	if w.Status.Revision != before.Status.Revision {
		t.Errorf("the revision is %d, was %d", w.Status.Revision, before.Status.Revision)
	}

	// What was taken over can be changed and deleted. A shared definition stays.
	if u.changed != "" {
		u.change(t, c, reconciler, w)
	}
	for _, other := range []bool{false, true} {
		step := upgradeStep{other: other, deleted: true, change: func(w *widget.Widget) {
			w.Finalizers = slices.DeleteFunc(w.Finalizers, func(finalizer string) bool { return finalizer == upgradeHold })
			delete(w.Annotations, upgradeHold)
		}}
		if err := c.Get(t.Context(), u.key(step), w); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err != nil {
			continue
		}
		u.take(t, c, step)
		for _, o := range u.list(t, c, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
			if slices.Contains(o.GetFinalizers(), upgradeHold) {
				o.SetFinalizers(nil)
				check(t, c.Update(t.Context(), &o))
			}
		}
		u.until(t, c, reconciler, step)
	}
	for _, o := range u.state(t, c) {
		// The garbage collector removes those of the history; none runs here. Helm's record stays.
		theirs, _, _ := unstructured.NestedString(o.Object, "data", "more")
		kept := theirs != "" || strings.Contains(o.GetName(), "-revisions-") || strings.HasPrefix(o.GetName(), "sh.helm.release.")
		if o.GetNamespace() == u.namespace() && !kept {
			t.Errorf("%s %s is left", o.GetKind(), o.GetName())
		}
	}
	if _, more := u.withoutDefinition(sent.take()); !slices.Equal(append(shared, more...), u.shares) {
		t.Errorf("the new build sends about the definition %q at first and %q in the deletion, want %q", shared, more, u.shares)
	}
	if len(u.shares) > 0 {
		u.checkDefinition(t, c)
	}
}

// withoutDefinition returns the requests without those about the definition of the chart, and the methods of the latter.
func (u upgrade) withoutDefinition(requests []string) (others, methods []string) {
	for _, request := range requests {
		if method, ok := strings.CutSuffix(request, " /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+u.definition()); ok {
			methods = append(methods, method)
		} else {
			others = append(others, request)
		}
	}
	return others, methods
}

// checkDefinition checks that the definition exists and has no owner, and that it is shared if a component has applied it.
func (u upgrade) checkDefinition(t *testing.T, c client.Client) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(definitionKind)
	check(t, c.Get(t.Context(), client.ObjectKey{Name: u.definition()}, live))
	name, shared := u.operatorName(), slices.Contains(u.shares, http.MethodPut)
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	if live.GetDeletionTimestamp() != nil || labels[name+"/"+vocabulary.LabelOwnerID] != "" || annotations[name+"/"+vocabulary.AnnotationOwner] != "" ||
		(labels[name+"/"+vocabulary.LabelShared] != "") != shared || (annotations[name+"/"+vocabulary.LabelShared] != "") != shared {
		t.Errorf("the definition is left with the labels %v and the annotations %v", labels, annotations)
	}
}

// change changes a value of a component that was taken over.
func (u upgrade) change(t *testing.T, c client.Client, reconciler *component.Reconciler[*widget.Widget], w *widget.Widget) {
	t.Helper()
	w.Spec.Values[u.changed] = "changed"
	check(t, c.Update(t.Context(), w))
	for w.Status.ObservedGeneration != w.Generation {
		u.until(t, c, reconciler, ready).DeepCopyInto(w)
	}
	changed := 0
	for _, o := range u.list(t, c, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		if value, _, _ := unstructured.NestedString(o.Object, "data", "value"); value == "changed" {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d ConfigMaps have the changed value, want 1", changed)
	}
}
