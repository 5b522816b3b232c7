// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/types"
)

// widget is a component.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Reference *reference `json:"reference,omitempty"`
	} `json:"spec,omitempty"`
	Status v1alpha1.ComponentStatus `json:"status,omitempty"`
}

// reference is a reference as package component has them.
type reference struct {
	Name   string            `json:"name"`
	loaded map[string][]byte `json:"-"`
}

var _ = reference{}.loaded

func (w *widget) DeepCopyObject() runtime.Object       { return new(*w) }
func (*widget) GetSpec() types.Unstructurable          { return nil }
func (w *widget) GetStatus() *v1alpha1.ComponentStatus { return &w.Status }

func newWidget() *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", UID: "uid-1", Generation: 1}}
}

// newFleet returns a fleet that updates one component at a time.
func newFleet(lister Lister) *Fleet {
	return New(Options{
		Self: &identity.Operator{Name: "test.corbel.run"}, Generator: func() string { return "new" },
		Limits:      &Limits{MaxUnavailable: intstr.FromInt32(1), Canaries: labels.Nothing()},
		IsSuspended: func(identity.Component) bool { return false },
		Timeout:     func(identity.Component) time.Duration { return time.Minute },
		Now:         func() time.Time { return time.Unix(1000, 0) },
		Lister:      lister,
	})
}

func newRollout(limits Limits, request func(client.ObjectKey), list func(context.Context, string) (members, error)) *rollout {
	return &rollout{limits: &limits, now: time.Now, request: request, list: list, round: round{members: members{}}}
}

// historyFrom makes a history of lines such as "3 new Failed" and "2 old Ready to 1", the latest first.
func historyFrom(text string) (history []v1alpha1.RevisionStatus) {
	for line := range strings.SplitSeq(text, ", ") {
		if line == "" {
			continue
		}
		entry := v1alpha1.RevisionStatus{}
		words := strings.Fields(line)
		fmt.Sscan(words[0], &entry.Revision)
		if words[1] != "?" {
			entry.Generator = words[1]
		}
		if entry.Result = v1alpha1.RevisionResult(words[2]); entry.Result == v1alpha1.RevisionReady {
			entry.ReadyAt = &metav1.Time{Time: time.Unix(entry.Revision, 0)}
		}
		if len(words) > 3 {
			fmt.Sscan(words[4], &entry.RollbackTo)
		}
		history = append(history, entry)
	}
	return history
}

func TestWhatARolloutKnowsOfAComponentFollowsFromItsStatus(t *testing.T) {
	for name, test := range map[string]struct {
		history     string
		annotations map[string]string
		change      func(*widget)
		skipped     bool
		want        State
	}{
		"it is new":                        {history: "", change: func(w *widget) { w.Status.AppliedGeneration = 0 }, want: Done},
		"it was never ready":               {history: "1 old Failed", change: func(w *widget) { w.Status.AppliedGeneration = 0 }, want: Done},
		"it has an earlier version":        {history: "1 old Ready", want: Waiting},
		"its version is not known":         {history: "1 ? Ready", want: Waiting},
		"it is pinned":                     {history: "1 old Ready", annotations: map[string]string{"rollout": "pin"}, want: Pinned},
		"it is rolled back to the version": {history: "1 old Ready", annotations: map[string]string{"rollback-to": "1"}, want: Pinned},
		"it is suspended":                  {history: "1 old Ready", skipped: true, want: Pinned},
		"it is updated":                    {history: "2 new Processing, 1 old Ready", want: Updating},
		"it is updated and was broken":     {history: "2 new Processing, 1 old Failed", want: Updating},
		"it is updated and suspended":      {history: "2 new Processing, 1 old Ready", skipped: true, want: Pinned},
		"it takes too long": {history: "2 new Processing, 1 old Ready", change: func(w *widget) {
			w.Status.ProcessingSince = &metav1.Time{Time: time.Unix(-100000, 0)}
		}, want: Failed},
		"its containers have to run for some time": {history: "2 new Processing, 1 old Ready", change: func(w *widget) {
			w.Status.ProcessingSince = &metav1.Time{Time: time.Unix(-100000, 0)}
			w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: vocabulary.ReasonProcessing}}
		}, want: Updating},
		"it is stalled": {history: "2 new Processing, 1 old Ready", change: func(w *widget) {
			w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
		}, want: Failed},
		"it is ready":                       {history: "2 new Ready, 1 old Ready", want: Done},
		"it was ready and is edited":        {history: "3 new Processing, 2 new Ready, 1 old Ready", want: Done},
		"it was ready and an edit failed":   {history: "3 new Failed, 2 new Ready, 1 old Ready", want: Done},
		"it failed":                         {history: "2 new Failed, 1 old Ready", want: Failed},
		"it failed and was failed before":   {history: "2 new Failed, 1 old Failed", want: Done},
		"it failed and is edited":           {history: "3 new Processing, 2 new Failed, 1 old Ready", want: Updating},
		"it failed again":                   {history: "3 new Failed, 2 new Superseded, 1 old Ready", want: Failed},
		"it failed and is ignored":          {history: "2 new Failed, 1 old Ready", annotations: map[string]string{"rollout": "ignore"}, want: Done},
		"it failed and was rolled back":     {history: "3 old Ready to 1, 2 new Failed, 1 old Ready", want: Failed},
		"it was rolled back by hand":        {history: "3 old Ready to 1, 2 new Superseded, 1 old Ready", annotations: map[string]string{"rollback-to": "1"}, want: Failed},
		"it was rolled back by hand, ready": {history: "3 old Ready to 1, 2 new Ready, 1 old Ready", annotations: map[string]string{"rollback-to": "1"}, want: Done},
		"the version before failed":         {history: "3 old Ready to 1, 2 bad Failed, 1 old Ready", want: Waiting},
		"the version comes back":            {history: "3 bad Failed, 2 new Ready, 1 old Ready", want: Waiting},
		"no other version is known":         {history: "4 new Processing", want: Done},
	} {
		w := newWidget()
		w.Status.History, w.Status.AppliedGeneration = historyFrom(test.history), 1
		if len(w.Status.History) > 0 {
			w.Status.Revision = w.Status.History[0].Revision
		}
		w.Annotations = map[string]string{}
		for suffix, value := range test.annotations {
			w.Annotations["test.corbel.run/"+suffix] = value
		}
		if test.change != nil {
			test.change(w)
		}
		if got := newFleet(Lister{}).Member(w, "new", test.skipped); got.State != test.want {
			t.Errorf("%s: %s, want %s", name, got.State, test.want)
		}
	}
}

// The component was brought to another version that renders the same, and the operator goes back.
func TestARolloutGoesBackFromAVersionThatRendersTheSame(t *testing.T) {
	w := newWidget()
	w.Status.History, w.Status.AppliedGeneration, w.Status.Revision = historyFrom("1 other Ready"), 1, 1
	revision.Of(w).SetProcessing(revision.Processing{Generator: "=first"})
	for generator, want := range map[string]State{"first": Done, "third": Waiting} {
		if got := newFleet(Lister{}).Member(w, revision.GeneratorID(generator), false); got.State != want {
			t.Errorf("%s: %s, want %s", generator, got.State, want)
		}
	}
}

// A forged status can stop a roll-out, so the message names the last writer of the status.
func TestARolloutNamesWhoWroteTheStatusOfAFailure(t *testing.T) {
	w := newWidget()
	w.Status.History, w.Status.AppliedGeneration, w.Status.Revision = historyFrom("2 new Failed, 1 old Ready"), 1, 2
	w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Error", Message: "it is down"}}
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	w.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "operator", Subresource: "status", Time: at(1)}, {Manager: "mallory", Subresource: "status", Time: at(2)},
		{Manager: "operator", Subresource: "status"}, {Manager: "kubectl-edit", Time: at(3)},
	}
	if got := newFleet(Lister{}).Member(w, "new", false); got.Why != "it is down (status written by mallory)" {
		t.Errorf("got %q", got.Why)
	}
}

func TestNoPauseEndsEarly(t *testing.T) {
	w := newWidget()
	w.Status.History, w.Status.AppliedGeneration = historyFrom("2 new Ready, 1 old Ready"), 1
	if got := newFleet(Lister{}).Member(w, "new", false); !got.ReadyAt.Equal(w.Status.History[0].ReadyAt.Add(time.Second)) {
		t.Errorf("it counts as ready since %s", got.ReadyAt)
	}
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "shop", Name: name} }

// What reconciles find while the components are listed counts, and what goes meanwhile stays gone.
func TestAListThatIsLateOverwritesNothing(t *testing.T) {
	var f *rollout
	var requested []client.ObjectKey
	waiting, done := Member{State: Waiting}, Member{State: Done}
	fail := true
	list := func(context.Context, string) (members, error) {
		if fail {
			return nil, errors.New("no answer")
		}
		f.set("new", key("b"), done)
		f.remove(key("c"))
		all := members{}
		for name, state := range map[string]State{"a": Updating, "b": Updating, "c": Updating, "d": Waiting, "e": Waiting} {
			all[key(name)] = Member{State: state}
		}
		return all, nil
	}
	f = newRollout(Limits{MaxUnavailable: intstr.FromInt32(2)}, func(k client.ObjectKey) { requested = append(requested, k) }, list)
	f.set("new", key("a"), done)
	if may, err := f.mayStart(t.Context(), "new", key("d"), waiting); may || err == nil {
		t.Errorf("without a list: %t, %v", may, err)
	}
	fail = false
	for name, want := range map[string]bool{"d": true, "e": true} {
		if may, err := f.mayStart(t.Context(), "new", key(name), waiting); may != want || err != nil {
			t.Errorf("%s: %t, %v", name, may, err)
		}
	}
	if may, _ := f.mayStart(t.Context(), "new", key("f"), waiting); may {
		t.Error("a third one starts")
	}
	requested = nil
	f.set("new", key("e"), done)
	f.set("new", key("e"), done)
	if !slices.Equal(requested, []client.ObjectKey{key("f")}) {
		t.Errorf("requested: %v", requested)
	}
}

func TestWhatIsKnownOfAnotherGeneratorIsDropped(t *testing.T) {
	list := func(_ context.Context, generator string) (members, error) {
		return members{key("a"): {State: map[string]State{"old": Done, "new": Waiting}[generator]}}, nil
	}
	f := newRollout(Limits{MaxUnavailable: intstr.FromInt32(1)}, func(client.ObjectKey) {}, list)
	f.set("old", key("a"), Member{State: Done})
	if may, err := f.mayStart(t.Context(), "new", key("b"), Member{State: Waiting}); may || err != nil {
		t.Errorf("b starts before a: %t, %v", may, err)
	}
	f.set("old", key("a"), Member{State: Done})
	if may, err := f.mayStart(t.Context(), "new", key("a"), Member{State: Waiting}); !may || err != nil {
		t.Errorf("a does not start: %t, %v", may, err)
	}
}

func TestAtMostAsManyStartAtOnceHoweverManyAsk(t *testing.T) {
	list := func(context.Context, string) (members, error) {
		all := members{}
		for i := range 50 {
			all[key(fmt.Sprintf("c%02d", i))] = Member{State: Waiting}
		}
		return all, nil
	}
	f := newRollout(Limits{MaxUnavailable: intstr.FromString("10%")}, func(client.ObjectKey) {}, list)
	var mu sync.Mutex
	var started []string
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprintf("c%02d", i)
			if may, err := f.mayStart(t.Context(), "new", key(name), Member{State: Waiting}); err != nil {
				t.Error(err)
			} else if may {
				mu.Lock()
				started = append(started, name)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(started)
	if want := []string{"c00", "c01", "c02", "c03", "c04"}; !slices.Equal(started, want) {
		t.Errorf("started: %v", started)
	}
}

// lists answers lists of components from a few, and refuses those of all namespaces.
type lists struct {
	client.Client
	items  []unstructured.Unstructured
	refuse error
	asked  []string
}

func (l *lists) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if metadata, ok := list.(*metav1.PartialObjectMetadataList); ok { // of the cache
		for _, item := range l.items {
			metadata.Items = append(metadata.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: item.GetNamespace(), Name: item.GetName()}})
		}
		return nil
	}
	l.asked = append(l.asked, asked.Namespace+":"+asked.Continue)
	if asked.Namespace == "" && l.refuse != nil {
		return l.refuse
	}
	page := list.(*unstructured.UnstructuredList)
	for _, item := range l.items {
		if asked.Namespace == "" || asked.Namespace == item.GetNamespace() {
			page.Items = append(page.Items, item)
		}
	}
	if asked.Namespace == "" && asked.Continue == "" {
		half := len(page.Items) / 2
		page.Items = page.Items[:half]
		page.SetContinue(fmt.Sprint(half))
	} else if asked.Continue != "" {
		page.Items = page.Items[len(page.Items)/2:]
		page.Items = append(page.Items, storedWidget("elsewhere", "a", "1 old Ready")) // the cache does not have it
	}
	return nil
}

// storedWidget makes a stored component.
func storedWidget(namespace, name, history string) unstructured.Unstructured {
	w := newWidget()
	w.Namespace, w.Name = namespace, name
	w.Status.History, w.Status.AppliedGeneration = historyFrom(history), 1
	w.Status.Revision = w.Status.History[0].Revision
	return stored(w)
}

func stored(w *widget) unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		panic(err)
	}
	return unstructured.Unstructured{Object: content}
}

func TestTheFleetIsListedWhereTheOperatorMayListIt(t *testing.T) {
	broken, going := storedWidget("y", "broken", "1 old Ready"), storedWidget("y", "going", "1 old Ready")
	broken.Object["status"] = "text"
	referring := storedWidget("x", "a", "1 old Ready")
	referring.Object["spec"] = map[string]any{"reference": map[string]any{"name": "a"}}
	going.SetDeletionTimestamp(new(metav1.Unix(1000, 0)))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("no"))
	for name, test := range map[string]struct {
		refuse error
		asked  []string
		fails  bool
	}{
		"in all namespaces":        {nil, []string{":", ":2"}, false},
		"in those that it watches": {forbidden, []string{":", "x:", "y:"}, false},
		"nowhere":                  {errors.New("no answer"), []string{":"}, true},
	} {
		l := &lists{refuse: test.refuse, items: []unstructured.Unstructured{referring, storedWidget("x", "b", "2 new Processing, 1 old Ready"), broken, going}}
		found, err := newFleet(Lister{Server: l, Cache: l, New: func() identity.Component { return &widget{} }}).list(t.Context(), "new")
		if !slices.Equal(l.asked, test.asked) || (err != nil) != test.fails {
			t.Errorf("%s: asked %q, %v", name, l.asked, err)
		}
		states := map[string]State{}
		for key, c := range found {
			states[key.String()] = c.State
		}
		want := map[string]State{"x/a": Waiting, "x/b": Updating}
		if !test.fails && !maps.Equal(states, want) {
			t.Errorf("%s: %v", name, states)
		}
	}
}

// warnings are the events of a roll-out.
type warnings []string

func (w *warnings) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	*w = append(*w, reason+": "+fmt.Sprintf(note, args...))
}

// The next process sees in the conditions that the event was sent.
func TestARolloutThatHasStoppedIsAConditionOfEachFailureAndOneEvent(t *testing.T) {
	const want = "the roll-out of the new version has stopped, and 2 components are not updated: 2 components failed, and at most 2 may be unavailable: " +
		"shop/a: it is down; shop/b: it is down; correct the cause, or set the annotation test.corbel.run/rollout: ignore on those that are not to count"
	var events warnings
	var requested []string
	a, b := newWidget(), newWidget()
	for name, w := range map[string]*widget{"a": a, "b": b} {
		w.Name, w.Status.AppliedGeneration, w.Status.Revision, w.Status.History = name, 1, 2, historyFrom("2 new Failed, 1 old Ready")
		w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Error", Message: "it is down"}}
	}
	start := func() *Fleet {
		l := &lists{items: []unstructured.Unstructured{stored(a), stored(b), storedWidget("shop", "c", "1 old Ready"), storedWidget("shop", "d", "1 old Ready")}}
		f := newFleet(Lister{Server: l, Cache: l, New: func() identity.Component { return &widget{} }})
		f.Limits.MaxUnavailable, f.Telemetry = intstr.FromInt32(2), telemetry.New(telemetry.Options{Recorder: &events})
		f.rollout.request = func(key client.ObjectKey) { requested = append(requested, key.Name) }
		return f
	}
	said := func(w *widget) string {
		if condition := conditions.Get(identity.Conditions(w), v1alpha1.ConditionRolloutStopped); condition != nil {
			return condition.Message
		}
		return ""
	}
	f := start()
	if err := f.rollout.load(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, w := range []*widget{a, b} {
			f.Report(t.Context(), w, false)
			if got := said(w); got != want {
				t.Errorf("the condition of %s is %q", w.Name, got)
			}
		}
		f = start()
	}
	if !slices.Equal([]string(events), []string{"RolloutStopped: " + want}) {
		t.Errorf("events %q", events)
	}

	// What is ignored gives its place to the next one.
	f.Report(t.Context(), b, false)
	requested, a.Annotations = nil, map[string]string{"test.corbel.run/rollout": "ignore"}
	f.Report(t.Context(), a, false)
	f.Written(key("a"))
	f.Report(t.Context(), b, false)
	if said(a) != "" || said(b) != "" || !slices.Equal(requested, []string{"c", "b"}) {
		t.Errorf("conditions %q and %q; requested are %v", said(a), said(b), requested)
	}
}

func TestACanaryHasTheLabelsOfTheOption(t *testing.T) {
	f, w := newFleet(Lister{}), newWidget()
	f.Limits.Canaries = labels.SelectorFromSet(labels.Set{"tier": "canary"})
	for _, tier := range []string{"canary", "gold"} {
		w.Labels = map[string]string{"tier": tier}
		if got := f.Member(w, "new", false).Canary; got != (tier == "canary") {
			t.Errorf("%s: canary %t", tier, got)
		}
	}
}

func TestMistakesInTheAnnotationRollout(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "pin": "", "promote": "", "ignore": "",
		"Pin": `annotation test.corbel.run/rollout: "Pin" must be "pin", "promote" or "ignore"`,
	} {
		f, w := newFleet(Lister{}), newWidget()
		w.Annotations = map[string]string{"test.corbel.run/rollout": value}
		_, err := f.Annotation(w)
		if got := fmt.Sprint(err); err != nil && got != want || (err == nil) != (want == "") {
			t.Errorf("%q: %s", value, got)
		}
		if value != "pin" {
			continue
		}
		f.Generator = func() string { return "" }
		if _, err := f.Annotation(w); err == nil || !strings.Contains(err.Error(), "reports no digest") {
			t.Errorf("without a digest: %v", err)
		}
		f.NoHistory = true
		if _, err := f.Annotation(w); err == nil || !strings.Contains(err.Error(), "keeps no manifests") {
			t.Errorf("without a history: %v", err)
		}
	}
}

// A component that waits for its approval does not ask for its turn, and takes no place.
func TestAComponentThatDoesNotAskTakesNoPlace(t *testing.T) {
	w := newWidget()
	w.Status = v1alpha1.ComponentStatus{Revision: 1, AppliedGeneration: 1, History: historyFrom("1 old Ready")}
	f := newFleet(Lister{})
	if got := f.reconciled(w, false).State; got != Unable {
		t.Errorf("before it asks it is %s", got)
	}
	f.note(client.ObjectKeyFromObject(w)).turn = waitsForTurn
	if got := f.reconciled(w, false).State; got != Waiting {
		t.Errorf("while it waits for its turn it is %s", got)
	}
	f.Start(client.ObjectKeyFromObject(w))
	if got := f.reconciled(w, false).State; got != Unable {
		t.Errorf("in the next reconcile, before it asks, it is %s", got)
	}
}
