// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/test/env"
)

const name = "test.corbel.run"

var options = Options{Name: name, Component: schema.GroupResource{Group: "example.com", Resource: "shops"}, User: "operator"}

// line is one request of a forged log, in words: the user, the verb and the object, how the object
// looked afterwards, and what was sent. Without owner there is no label and no annotation.
type line struct {
	user, verb, object string
	// answer is "uid=u1 owner=main label=main annotation=value rv=5 deleting finalizer=x", or "gone".
	answer string
	sent   string
	items  string // of a component's record: "a:u1 b:"
	// definitions are those of the record, in the form of items.
	definitions string
	// ready is the status of condition Ready of a component, and revision the result of its revision; empty if it has neither.
	ready, revision string
	as              string
}

func (l line) event() env.AuditEvent {
	kind, id, _ := strings.Cut(l.object, " ")
	e := env.AuditEvent{User: l.user, Verb: l.verb, Namespace: "shop", Name: id, Code: 200, Impersonated: l.as, Sent: json.RawMessage(l.sent)}
	object := map[string]any{"apiVersion": "v1", "kind": kind}
	metadata := map[string]any{"name": id, "namespace": "shop"}
	labels, annotations, finalizers := map[string]string{}, map[string]string{}, []string{}
	e.Resource = strings.ToLower(kind) + "s"
	if kind == "Shop" {
		e.Group = "example.com"
		object["apiVersion"] = "example.com/v1"
		objects := map[string]string{}
		for _, text := range strings.Fields(l.items) {
			of, uid, _ := strings.Cut(text, ":")
			objects["v1 ConfigMap shop/"+of] = fmt.Sprintf(`{"uid":%q}`, uid)
		}
		for _, text := range strings.Fields(l.definitions) {
			of, uid, _ := strings.Cut(text, ":")
			objects["v1 CustomResourceDefinition shop/"+of] = fmt.Sprintf(`{"uid":%q}`, uid)
		}
		status := map[string]any{"inventory": map[string]any{"format": 3, "objects": objects}, "revision": 2}
		if l.revision != "" {
			status["history"] = []any{map[string]any{"revision": 2, "result": l.revision}, map[string]any{"revision": 1, "result": "Ready"}}
			status["conditions"] = []any{map[string]any{"type": "Ready", "status": l.ready}}
		}
		object["status"] = status
	}
	for _, word := range strings.Fields(l.answer) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "metadata":
			object["apiVersion"], object["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
		case "gone":
			e.Answered = json.RawMessage(`{"kind":"Status","status":"Success"}`)
			return e
		case "uid":
			metadata["uid"] = value
		case "rv":
			metadata["resourceVersion"] = value
		case "owner":
			labels[name+"/owner-id"] = "id-" + value
			annotations[name+"/owner"] = "example.com/Shop/shop/" + value + "/uid-" + value
		case "label":
			labels[name+"/owner-id"] = "id-" + value
		case "shared":
			labels[name+"/shared"], annotations[name+"/shared"] = "true", "hash "+value
		case "type":
			object["type"] = value
		case "deleting":
			metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		case "finalizer":
			finalizers = append(finalizers, value)
		default:
			annotations[key] = value
		}
	}
	metadata["labels"], metadata["annotations"], metadata["finalizers"] = labels, annotations, finalizers
	object["metadata"] = metadata
	e.Answered, _ = json.Marshal(object)
	return e
}

func recorded(items string) line {
	return line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main finalizer=" + name, items: items}
}

// status is a write of a component's status.
func status(user, ready, revision string) line {
	return line{user: user, verb: "patch", object: "Shop main", answer: "uid=uid-main finalizer=" + name, items: "a:u1", ready: ready, revision: revision}
}

// definition is a write to a definition that is shared or is going to be.
func definition(verb, answer string) line {
	return line{user: "operator", verb: verb, object: "CustomResourceDefinition a", answer: answer, sent: `{"metadata":{"resourceVersion":"1"}}`}
}

func created(answer string) line {
	return line{user: "operator", verb: "create", object: "ConfigMap a", answer: answer}
}

func deleted(sent string) line {
	return line{user: "operator", verb: "delete", object: "ConfigMap a", answer: "gone", sent: sent}
}

const demandsUID = `{"preconditions":{"uid":"u1"}}`

func TestForgedLogs(t *testing.T) {
	good := []line{recorded("a:"), created("uid=u1 owner=main"), recorded("a:u1")}
	tests := []struct {
		name string
		log  []line
		want []string // the rules that are broken
	}{
		{name: "a whole life", log: append(slices.Clone(good), deleted(demandsUID), recorded(""),
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting"})},
		{name: "what has lost its annotation is deleted", log: append(slices.Clone(good),
			line{user: "other", verb: "patch", object: "ConfigMap a", answer: "uid=u1 label=main rv=2"}, deleted(demandsUID))},
		{name: "what a webhook has kept without its annotation is deleted", log: []line{recorded("a:"), {
			user: "operator", verb: "create", object: "ConfigMap a", answer: "uid=u1 label=main",
			sent: `{"metadata":{"labels":{"` + name + `/owner-id":"id-main"},"annotations":{"` + name + `/owner":"example.com/Shop/shop/main/uid-main"}}}`,
		}, recorded("a:u1"), deleted(demandsUID)}},
		{name: "what has the label of another is deleted", log: append(slices.Clone(good),
			line{user: "other", verb: "patch", object: "ConfigMap a", answer: "uid=u1 label=other rv=2"}, deleted(demandsUID)), want: []string{"S2"}},
		{name: "the Secret of the revisions is created and changed", log: append(slices.Clone(good),
			line{user: "operator", verb: "create", object: "Secret main-revisions-0123456789", answer: "uid=u2 rv=3"},
			line{user: "operator", verb: "patch", object: "Secret main-revisions-0123456789", answer: "uid=u2 rv=4"})},
		{name: "the Secret of the outputs is created and changed", log: append(slices.Clone(good),
			line{user: "operator", verb: "create", object: "Secret main-outputs", answer: "uid=u2 rv=3 type=" + name + "/outputs"},
			line{user: "operator", verb: "patch", object: "Secret main-outputs", answer: "uid=u2 rv=4 type=" + name + "/outputs", sent: `{"metadata":{"resourceVersion":"3"}}`})},
		{name: "the Secret of the outputs is written blindly", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "Secret main-outputs", answer: "uid=u2 rv=4 type=" + name + "/outputs", sent: `{"data":{}}`}), want: []string{"S2"}},
		{name: "another Secret gets the outputs", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "Secret main-outputs", answer: "uid=u2 rv=4 type=Opaque", sent: `{"metadata":{"resourceVersion":"3"}}`}), want: []string{"S2"}},
		{name: "created before the record", log: []line{recorded(""), created("uid=u1 owner=main")}, want: []string{"S1"}},
		{name: "created after a record that a killed server did not log", log: []line{
			{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main rv=5 finalizer=" + name}, created("uid=u1 owner=main"),
			{user: "operator", verb: "patch", object: "Shop main", sent: `{"metadata":{"resourceVersion":"7"}}`, answer: "uid=uid-main rv=9 finalizer=" + name, items: "a:u1"},
		}},
		{name: "created before a record that is logged", log: []line{
			{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main rv=5 finalizer=" + name}, created("uid=u1 owner=main"),
			{user: "operator", verb: "patch", object: "Shop main", sent: `{"metadata":{"resourceVersion":"5"}}`, answer: "uid=uid-main rv=9 finalizer=" + name, items: "a:u1"},
		}, want: []string{"S1"}},
		{name: "created after a record of a component whose creation is answered late", log: []line{
			{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main rv=5 finalizer=" + name, items: "a:"},
			{user: "other", verb: "create", object: "Shop main", answer: "uid=uid-main rv=2"}, created("uid=u1 owner=main"),
		}},
		{name: "created for a component that is gone", log: []line{
			recorded("a:"), {user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting"}, created("uid=u1 owner=main"),
		}, want: []string{"S1"}},
		{name: "recorded without a finalizer", log: []line{
			{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main", items: "a:"}, created("uid=u1 owner=main"),
		}, want: []string{"S12"}},
		{name: "what another component owns is written", log: []line{
			recorded("a:"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1 owner=other"},
			{user: "operator", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2"},
		}, want: []string{"S2"}},
		{name: "what another component owns is adopted under always", log: []line{
			recorded("a:"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1 owner=other"},
			{user: "operator", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2 " + name + "/adoption-policy=always"},
		}},
		{name: "what Helm owns is written", log: []line{
			recorded("a:"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1 meta.helm.sh/release-name=web"},
			{user: "operator", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2"},
		}, want: []string{"S2"}},
		{name: "an object without an owner is written under never", log: []line{
			recorded("a:"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1"},
			{user: "operator", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2 " + name + "/adoption-policy=never"},
		}, want: []string{"S2"}},
		{name: "an object without an owner is adopted", log: []line{
			recorded("a:"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1"},
			{user: "operator", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2"},
		}},
		{name: "what was stolen is deleted", log: append(slices.Clone(good),
			line{user: "other", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=other rv=2"}, deleted(demandsUID)), want: []string{"S2"}},
		{name: "an object without an owner is deleted, and is recorded under another uid", log: []line{
			recorded("a:u0"), {user: "other", verb: "create", object: "ConfigMap a", answer: "uid=u1"}, deleted(demandsUID),
		}, want: []string{"S2"}},
		{name: "our label is removed from an object that another owner has adopted", log: append(slices.Clone(good),
			line{user: "other", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=other rv=2"},
			line{user: "operator", verb: "patch", object: "ConfigMap a", answer: "uid=u1 rv=3"}), want: []string{"S2"}},
		{name: "our label is removed from what Helm has annotated, too", log: append(slices.Clone(good),
			line{user: "other", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2 meta.helm.sh/release-name=web"},
			line{user: "operator", verb: "patch", object: "ConfigMap a", answer: "uid=u1 rv=3 meta.helm.sh/release-name=web"})},
		{name: "what Helm has annotated, too, is deleted", log: append(slices.Clone(good),
			line{user: "other", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=main rv=2 meta.helm.sh/release-name=web"}, deleted(demandsUID)), want: []string{"S2"}},
		{name: "deleted blindly", log: append(slices.Clone(good), deleted(`{}`)), want: []string{"S3"}},
		{name: "a collection is deleted", log: append(slices.Clone(good), line{user: "operator", verb: "deletecollection", object: "ConfigMap "}), want: []string{"S3"}},
		{name: "dropped", log: append(slices.Clone(good), recorded("")), want: []string{"S4"}},
		{name: "dropped, as it was stolen", log: append(slices.Clone(good),
			line{user: "other", verb: "update", object: "ConfigMap a", answer: "uid=u1 owner=other rv=2"}, recorded(""))},
		{name: "dropped, because another client deleted it", log: append(slices.Clone(good),
			line{user: "other", verb: "delete", object: "ConfigMap a", answer: "gone"}, recorded(""))},
		{name: "dropped, as the deletion was answered with what was deleted", log: append(slices.Clone(good),
			line{user: "operator", verb: "delete", object: "ConfigMap a", answer: "uid=u1 owner=main", sent: demandsUID}, recorded(""))},
		{name: "dropped while a finalizer holds it back", log: append(slices.Clone(good),
			line{user: "operator", verb: "delete", object: "ConfigMap a", answer: "uid=u1 owner=main deleting finalizer=x rv=2", sent: demandsUID}, recorded(""))},
		{name: "orphaned and dropped", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "ConfigMap a", answer: "uid=u1 rv=2"}, recorded(""))},
		{name: "the finalizer goes, and everything stays as it is, as the component asks for", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting " + name + "/management-policy=skip", items: "a:u1"})},
		{name: "the finalizer goes, and everything stays without our label, as the component asks for", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "ConfigMap a", answer: "uid=u1 rv=2"},
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting " + name + "/management-policy=detach-on-delete", items: "a:u1"})},
		{name: "the finalizer goes, and a detached object has our label", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting " + name + "/management-policy=detach-on-delete", items: "a:u1"}), want: []string{"S12"}},
		{name: "the finalizer goes, and a client that asks for metadata alone has taken our label off a detached object", log: append(slices.Clone(good),
			line{user: "other", verb: "patch", object: "ConfigMap a", answer: "uid=u1 rv=2 metadata"},
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting " + name + "/management-policy=detach-on-delete", items: "a:u1"})},
		{name: "a definition is shared from its creation on, and is upgraded", log: []line{
			recorded(""), definition("create", "uid=u1 shared=1.0.0"), definition("update", "uid=u1 shared=1.10.0 rv=2"), definition("update", "uid=u1 shared=1.10.0 rv=3"),
		}},
		{name: "a definition of a component becomes a shared one", log: []line{
			{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main finalizer=" + name, definitions: "a:"},
			definition("create", "uid=u1 owner=main"), definition("update", "uid=u1 shared=1.0.0 rv=2"), recorded(""),
		}},
		{name: "a shared definition is replaced by one of a lower version", log: []line{
			definition("create", "uid=u1 shared=1.10.0"), definition("update", "uid=u1 shared=1.9.0 rv=2"),
		}, want: []string{"P10"}},
		{name: "a shared definition is deleted", log: []line{definition("create", "uid=u1 shared=1.0.0"),
			{user: "operator", verb: "delete", object: "CustomResourceDefinition a", answer: "gone", sent: demandsUID}}, want: []string{"S7"}},
		{name: "a shared definition gets the label of a component", log: []line{recorded(""), definition("create", "uid=u1 shared=1.0.0"),
			definition("update", "uid=u1 shared=1.0.0 owner=main rv=2")}, want: []string{"S1"}},
		{name: "what is no definition is shared", log: []line{created("uid=u1 shared=1.0.0")}, want: []string{"S1"}},
		{name: "a shared definition loses its label", log: []line{definition("create", "uid=u1 shared=1.0.0"), definition("update", "uid=u1 rv=2")}, want: []string{"S2"}},
		{name: "what Helm owns is shared", log: []line{
			{user: "other", verb: "create", object: "CustomResourceDefinition a", answer: "uid=u1 meta.helm.sh/release-name=web"}, definition("update", "uid=u1 shared=1.0.0 rv=2"),
		}, want: []string{"S2"}},
		{name: "a shared definition is written blindly", log: []line{definition("create", "uid=u1 shared=1.0.0"),
			{user: "operator", verb: "patch", object: "CustomResourceDefinition a", answer: "uid=u1 shared=1.1.0 rv=2", sent: `{}`}}, want: []string{"S2"}},
		{name: "a component says that it is ready with a revision that was ready", log: append(slices.Clone(good), status("operator", "True", "Ready"))},
		{name: "a component says that it is not ready with a new revision", log: append(slices.Clone(good), status("operator", "Unknown", "Processing"))},
		{name: "another client says that a component is ready", log: append(slices.Clone(good), status("other", "True", "Processing"))},
		{name: "a component says that it is ready with a new revision", log: append(slices.Clone(good), status("operator", "True", "Processing")), want: []string{"S25"}},
		{name: "a component says that it is ready with a revision that failed", log: append(slices.Clone(good), status("operator", "True", "Failed")), want: []string{"S25"}},
		{name: "the finalizer goes too early", log: append(slices.Clone(good),
			line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting", items: "a:u1"}), want: []string{"S12"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var events []env.AuditEvent
			for _, l := range test.log {
				events = append(events, l.event())
			}
			violations, checked := Violations(events, options)
			var got []string
			for _, v := range violations {
				got = append(got, v.Rule)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the rules that are broken (-want +got):\n%s%v", diff, violations)
			}
			if checked == 0 && !strings.Contains(test.name, "collection") {
				t.Error("nothing was checked")
			}
		})
	}
}

func TestRequestsActAsTheyMust(t *testing.T) {
	impersonated := options
	impersonated.Impersonated = "system:serviceaccount:shop:deployer"
	for as, want := range map[string]int{impersonated.Impersonated: 0, "": 1, "system:serviceaccount:shop:other": 1} {
		create := created("uid=u1 owner=main")
		create.as = as
		violations, _ := Violations([]env.AuditEvent{recorded("a:").event(), create.event()}, impersonated)
		if len(violations) != want || want > 0 && violations[0].Rule != "S18" {
			t.Errorf("as %q: got %v, want %d of S18", as, violations, want)
		}
	}
}

// complaints collects what a check says.
type complaints struct {
	testing.TB
	said []string
}

func (c *complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func TestALogWithoutWritesShowsNothing(t *testing.T) {
	c := &complaints{}
	Check(c, []env.AuditEvent{recorded("a:").event()}, options)
	if len(c.said) != 1 || !strings.Contains(c.said[0], "has written no dependent") {
		t.Errorf("got %q", c.said)
	}
}

func TestAnUnansweredWriteMayHaveBeenDone(t *testing.T) {
	away := line{user: "operator", verb: "patch", object: "Shop main", answer: "uid=uid-main deleting"}
	for name, log := range map[string][]line{
		"a deletion":           {recorded("a:"), created("uid=u1 owner=main"), deleted(demandsUID), away},
		"a write of a record":  {recorded(""), recorded("a:"), created("uid=u1 owner=main"), recorded("a:u1")},
		"a write of an object": {recorded("a:"), created("uid=u1 owner=main"), {user: "operator", verb: "patch", object: "ConfigMap a", answer: "uid=u1"}, recorded("")},
	} {
		for _, code := range []int{0, 499, 504} {
			unanswered := len(log) - 2
			if name == "a write of a record" {
				unanswered = 1
			}
			var events []env.AuditEvent
			for i, l := range log {
				event := l.event()
				if i == unanswered {
					event.Code, event.Answered = code, nil
				}
				events = append(events, event)
			}
			if violations, _ := Violations(events, options); len(violations) > 0 {
				t.Errorf("%s, answered with %d: got %v", name, code, violations)
			}
			events[unanswered].Code = 409
			if violations, _ := Violations(events, options); len(violations) == 0 {
				t.Errorf("%s that was refused: nothing was found", name)
			}
		}
	}
}

func TestAKilledServerMayHaveDoneWhatItsLogLacks(t *testing.T) {
	var events []env.AuditEvent
	start := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for i, l := range []line{recorded("a:"), created("uid=u1 owner=main"), recorded("a:u1"), recorded("")} {
		event := l.event()
		event.Time = start.Add(time.Duration(i) * time.Minute)
		events = append(events, event)
	}
	for _, test := range []struct {
		minute float64
		want   int
	}{{0.5, 1}, {1.5, 0}, {2.5, 0}, {3.5, 1}} {
		lossy := options
		lossy.Killed = []time.Time{start.Add(-time.Minute), start.Add(time.Duration(test.minute * float64(time.Minute)))}
		if violations, _ := Violations(events, lossy); len(violations) != test.want {
			t.Errorf("killed after %v minutes: got %v, want %d of S4", test.minute, violations, test.want)
		}
		restored := options
		restored.Restored = []time.Time{start.Add(time.Duration(test.minute * float64(time.Minute)))}
		if violations, _ := Violations(events, restored); len(violations) != test.want {
			t.Errorf("restored after %v minutes: got %v", test.minute, violations)
		}
	}
}

func TestFailedAndDryRequestsChangeNothing(t *testing.T) {
	refused, dry := deleted(`{}`).event(), deleted(`{}`).event()
	refused.Code, dry.URI = 409, "/api/v1/namespaces/shop/configmaps/a?dryRun=All"
	events := []env.AuditEvent{recorded("a:").event(), created("uid=u1 owner=main").event(), refused, dry}
	if violations, checked := Violations(events, options); len(violations) > 0 || checked != 1 {
		t.Errorf("got %v, and %d checked", violations, checked)
	}
}
