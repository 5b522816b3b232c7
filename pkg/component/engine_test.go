// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// waitFor makes the wait of an engine; text is "group/Kind namespace/name".
func waitFor(text, reason, message string) report.Wait {
	wait := report.Wait{Reason: report.WaitReason(reason), Message: message}
	group, rest, _ := strings.Cut(text, "/")
	kind, name, _ := strings.Cut(rest, " ")
	wait.Key.Group, wait.Key.Kind, wait.Key.Name = group, kind, name
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		wait.Key.Namespace, wait.Key.Name = namespace, name
	}
	return wait
}

// fakeEngine answers with what the test says, after making its inventory durable.
type fakeEngine struct {
	outcome     reconciler.Outcome
	err         error
	blockers    []report.Blocker
	blockersErr error
	record      bool
	echo        bool // the inventory of the outcome is that of the request
	// manifest returns the digest of the objects of a request; nil if nothing asks for it.
	manifest func(reconciler.ApplyRequest) string

	plan    report.Plan
	applied []reconciler.ApplyRequest
	planned []reconciler.ApplyRequest
	deleted []reconciler.DeleteRequest
	asked   []reconciler.DeleteRequest // what blocks the deletion

	foreseen []reconciler.DeleteRequest // by plans
}

func (e *fakeEngine) Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error) {
	e.applied = append(e.applied, request)
	if e.record {
		if err := request.Record(ctx, e.outcome.Inventory); err != nil {
			return reconciler.Outcome{Inventory: request.Inventory}, err
		}
	}
	if e.echo {
		return reconciler.Outcome{Inventory: request.Inventory}, e.err
	}
	outcome := e.outcome
	if e.manifest != nil {
		outcome.ManifestDigest = e.manifest(request)
	}
	return outcome, e.err
}

func (e *fakeEngine) ManifestDigest(_ context.Context, request reconciler.ApplyRequest) (string, error) {
	return e.manifest(request), nil
}

func (e *fakeEngine) Delete(_ context.Context, request reconciler.DeleteRequest) (reconciler.Outcome, error) {
	e.deleted = append(e.deleted, request)
	return e.outcome, e.err
}

func (e *fakeEngine) Recover(context.Context, reconciler.RecoverRequest) ([]v1alpha1.InventoryItem, []string, error) {
	return nil, nil, nil
}

func (e *fakeEngine) Plan(_ context.Context, request reconciler.ApplyRequest) (report.Plan, error) {
	e.planned = append(e.planned, request)
	return e.plan, e.err
}

func (e *fakeEngine) PlanDeletion(_ context.Context, request reconciler.DeleteRequest) (report.Plan, error) {
	e.foreseen = append(e.foreseen, request)
	return e.plan, e.err
}

func (e *fakeEngine) DeletionBlockers(_ context.Context, request reconciler.DeleteRequest) ([]report.Blocker, error) {
	e.asked = append(e.asked, request)
	return e.blockers, e.blockersErr
}

// fakeTargets connects every component to the same engine, and notes their accesses.
type fakeTargets struct {
	target targets.Connection
	asked  []target.Access
	err    error
	busy   int // how often ErrBusy comes first

	forgotten []reconciler.Owner
}

func (f *fakeTargets) Connect(access target.Access, _ client.ObjectKey) (targets.Connection, error) {
	f.asked = append(f.asked, access)
	if len(f.asked) <= f.busy {
		return targets.Connection{}, target.ErrBusy
	}
	return f.target, f.err
}

func (*fakeTargets) SetEngine(reconciler.Owner, targets.Connection) {}

func (f *fakeTargets) ForgetOwner(owner reconciler.Owner) { f.forgotten = append(f.forgotten, owner) }

func (*fakeEngine) StopWatching(reconciler.Owner) {}
func (*fakeEngine) IsWatching() bool              { return false }
func (*fakeEngine) Close()                        {}

// testHandler returns a handler without a cluster, its engine and its events.
func testHandler(t testing.TB, engine *fakeEngine, options ...ReconcilerOptions) (*handler, *eventLog) {
	t.Helper()
	log := &eventLog{}
	now := func() time.Time { return time.Unix(1000, 0) }
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: widgetKind.Group, Version: "v1"}})
	mapper.Add(widgetKind.WithVersion("v1"), meta.RESTScopeNamespace)
	settings := testSettings(t, append(options, ReconcilerOptions{})[0])
	settings.Kind = widgetKind.WithVersion("v1")
	h := newHandler(&steps{
		opener: &opener{
			mapper:    mapper,
			settings:  settings,
			self:      settings.Operator,
			local:     fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build(),
			author:    authorTypeOf[*widget](),
			digestKey: fixedKey("0123456789abcdef").Get,
			targets:   &fakeTargets{target: targets.Connection{Engine: engine}},
			now:       now,
			code:      newUserCode(map[hookPoint][]hook{}, nil, nil),
		},
		memory:   newMemory(),
		triggers: &fakeTriggers{asked: map[client.ObjectKey]time.Duration{}},
	})
	h.telemetry = telemetry.New(telemetry.Options{
		Controller: "widgets", Self: &h.self, Tracer: trace.New(nil), Recorder: events.Bounded(log), Now: func() time.Time { return h.now() },
	})
	h.revisions = newSource(h.steps, newRenderer(manifests.GeneratorFunc(nothing), h.steps))
	h.records = newRecords(h.steps, 0)
	h.concluder = newConcluder(h.steps)
	h.fleet = newFleet(h.steps, nil, nil)
	return h, log
}

func hooksOf(functions ...HookFunc[*widget]) (hooks []hook) {
	for _, f := range functions {
		hooks = append(hooks, hookOf(f))
	}
	return hooks
}

// fakeTriggers puts every reconcile on the fast path, or none, and notes what was asked for.
type fakeTriggers struct {
	fast, urgent bool
	asked        map[client.ObjectKey]time.Duration
}

func (f *fakeTriggers) StartReconcile(client.ObjectKey)  {}
func (f *fakeTriggers) TakeCauses(client.ObjectKey) bool { return f.fast }
func (f *fakeTriggers) Forget(client.ObjectKey)          {}
func (f *fakeTriggers) IsUrgent(client.ObjectKey) bool   { return f.urgent }

func (f *fakeTriggers) RequestFast(key client.ObjectKey, after time.Duration) { f.asked[key] = after }

// fixedKey is a key that need not be read.
type fixedKey string

func (k fixedKey) Get(context.Context) ([]byte, error) { return []byte(k), nil }

func nothing(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	return nil, nil
}

// noCommit is a commit that succeeds.
func noCommit(context.Context) error { return nil }

// widget is the component of the tests that need no server.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   widgetSpec   `json:"spec,omitempty"`
	Status widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	PlacementSpec     `json:",inline"`
	ClientSpec        `json:",inline"`
	ImpersonationSpec `json:",inline"`
	SuspensionSpec    `json:",inline"`
	RequeueSpec       `json:",inline"`
	RetrySpec         `json:",inline"`
	TimeoutSpec       `json:",inline"`
	PolicySpec        `json:",inline"`
	DriftSpec         `json:",inline"`
	TypeSpec          `json:",inline"`
	ReapplySpec       `json:",inline"`
	PatchesSpec       `json:",inline"`
	RequirementsSpec  `json:",inline"`

	Size int               `json:"size,omitempty"`
	Refs *widgetReferences `json:"refs,omitempty"`
}

type widgetReferences struct {
	Password *SecretKeyReference              `json:"password,omitempty" fallbackKeys:"password,token"`
	Settings *ConfigMapReference              `json:"settings,omitempty"`
	Secrets  []SecretReference                `json:"secrets,omitempty"`
	Texts    map[string]ConfigMapKeyReference `json:"texts,omitempty"`
	Own      *ownReference                    `json:"own,omitempty"`
}

// ownReference is a reference that the operator's author made.
type ownReference struct {
	Name   string                        `json:"name"`
	loaded string                        `json:"-"`
	load   func(*widget) (string, error) `json:"-"`
}

func (r *ownReference) Load(_ context.Context, _ client.Client, w *widget) (err error) {
	r.loaded, err = r.load(w)
	return err
}

func (r *ownReference) Digest() string { return r.loaded }

func (s *widgetSpec) ToUnstructured() map[string]any { return Parameters(s) }

type widgetStatus struct {
	Status `json:",inline"`

	Note string `json:"note,omitempty"`
}

// panickingMethod names the method of the spec, or GetSpec, that panics.
var panickingMethod string

func panicIn(method string) {
	if method == panickingMethod {
		panic(method)
	}
}

func (s *widgetSpec) IsSuspended() bool {
	panicIn("IsSuspended")
	return s.SuspensionSpec.IsSuspended()
}
func (s *widgetSpec) GetTimeout() time.Duration {
	panicIn("GetTimeout")
	return s.TimeoutSpec.GetTimeout()
}
func (s *widgetSpec) GetRequeueInterval() time.Duration {
	panicIn("GetRequeueInterval")
	return s.RequeueSpec.GetRequeueInterval()
}
func (s *widgetSpec) GetDeploymentName() string {
	panicIn("GetDeploymentName")
	return s.PlacementSpec.GetDeploymentName()
}
func (s *widgetSpec) GetImpersonationUser() string {
	panicIn("GetImpersonationUser")
	return s.ImpersonationSpec.GetImpersonationUser()
}

func (w *widget) GetSpec() types.Unstructurable { panicIn("GetSpec"); return &w.Spec }
func (w *widget) GetStatus() *Status            { return &w.Status.Status }

func (w *widget) DeepCopyObject() runtime.Object {
	content, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	duplicate := &widget{}
	if err := json.Unmarshal(content, duplicate); err != nil {
		panic(err)
	}
	if w.Spec.Refs != nil {
		refs := *w.Spec.Refs
		if refs.Own != nil {
			refs.Own = new(*refs.Own)
		}
		duplicate.Spec.Refs = &refs
	}
	return duplicate
}

var widgetKind = schema.GroupKind{Group: "test.corbel.run", Kind: "Widget"}

func newWidget() *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", UID: "uid-1", Generation: 1}}
}

// duration makes the duration of a spec.
func duration(text string) *types.Duration {
	d := &types.Duration{}
	if err := json.Unmarshal([]byte(`"`+text+`"`), d); err != nil {
		panic(err)
	}
	return d
}
