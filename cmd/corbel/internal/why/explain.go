// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// explainer goes from the component to the cause, as far as the answers lead. It notes which
// question would lead further.
type explainer struct {
	facts Facts
	now   time.Time
	chain Chain
	open  []Question
	// remote: the dependents live in another cluster than the component, so they are not read.
	remote bool
	// runs: a Lease or a Deployment shows that the operator runs.
	runs bool
}

// Explain returns what the facts show. It is pure. A part that would need a further request is
// left out.
func Explain(facts Facts, now time.Time) Chain {
	chain, _ := explain(facts, now)
	return chain
}

// explain also returns the questions that would lead further.
func explain(facts Facts, now time.Time) (Chain, []Question) {
	e := &explainer{facts: facts, now: now}
	e.explain()
	return e.chain, e.open
}

// ask returns the answer to a question; it returns false, and notes the question, as long as there is none.
func (e *explainer) ask(q Question) (Answer, bool) {
	answer, ok := e.facts.Answers[q]
	switch {
	case e.remote:
		const text = "the dependents: they live in the cluster of the kubeconfig in the spec"
		if !slices.Contains(e.chain.Unknown, text) {
			e.chain.Unknown = append(e.chain.Unknown, text)
		}
		return Answer{}, false
	case !ok:
		if !slices.Contains(e.open, q) {
			e.open = append(e.open, q)
		}
	case answer.Err != nil && !answer.isMissing() && q.Object.Kind != "Namespace": // a namespace is read to be sure, and most users may not
		if text := unknown(q, answer.Err); !slices.Contains(e.chain.Unknown, text) {
			e.chain.Unknown = append(e.chain.Unknown, text)
		}
	}
	return answer, ok
}

// get asks for one object. It returns nil if there is none, or if it is not known.
func (e *explainer) get(o Object) (found *unstructured.Unstructured, answered bool) {
	answer, ok := e.ask(Question{Verb: verbGet, Object: o})
	if !ok || !answer.exists() || len(answer.Objects) == 0 {
		return nil, ok && answer.isMissing()
	}
	return &answer.Objects[0], true
}

// events returns the messages of the warnings about an object, the newest first, each in one line and without credentials.
func (e *explainer) events(o Object) []string {
	answer, ok := e.ask(Question{Verb: verbList, Object: known("Event", o.Namespace, ""),
		Fields: "involvedObject.kind=" + o.Kind + ",involvedObject.name=" + o.Name})
	if !ok {
		return nil
	}
	warnings := slices.DeleteFunc(slices.Clone(answer.Objects), func(event unstructured.Unstructured) bool {
		return text(event, "type") != "Warning"
	})
	slices.SortStableFunc(warnings, func(a, b unstructured.Unstructured) int { return strings.Compare(when(b), when(a)) })
	var messages []string
	for _, event := range warnings {
		messages = append(messages, confidential.Filter(sentence.OneLine(text(event, "message"))))
	}
	return messages
}

// when is the time of an event, in an order of texts.
func when(event unstructured.Unstructured) string {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		if at := text(event, path...); at != "" {
			return at
		}
	}
	return ""
}

func text(object unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// found ends the explanation: the links lead to a cause of the code, and the command is the next to type.
func (e *explainer) found(code Code, command string, links ...Link) {
	e.chain.Code, e.chain.Command = code, sentence.OneLine(command)
	e.chain.Links = append(e.chain.Links, links...)
}

// component is the component as an object.
func (e *explainer) component() Object {
	gvk := e.facts.Object.GroupVersionKind()
	return Object{gvk.Group, gvk.Version, gvk.Kind, e.facts.Object.GetNamespace(), e.facts.Object.GetName()}
}

// annotation is the name of an annotation of the component.
func (e *explainer) annotation(name string) string {
	prefix := e.facts.Reconciler
	if prefix == "" {
		prefix = e.component().Group
	}
	return prefix + "/" + name
}

func (e *explainer) explain() {
	c, status := &e.chain, e.facts.Status
	c.Component, c.State, c.Progress = e.component(), status.State, status.Progress
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	observed := ready != nil && status.ObservedGeneration == e.facts.Object.GetGeneration()
	deleting := e.facts.Object.GetDeletionTimestamp() != nil
	if ready != nil {
		c.Reason, c.Since = ready.Reason, &ready.LastTransitionTime
		c.Ready = ready.Status == metav1.ConditionTrue && observed && !deleting
	}
	down, settled := e.operator(ready != nil)
	_, e.remote, _ = unstructured.NestedFieldNoCopy(e.facts.Object.Object, "spec", "kubeConfig")
	switch {
	case !settled:
	case c.Ready:
		if to := e.facts.Object.GetAnnotations()[e.annotation(vocabulary.AnnotationRollbackTo)]; to != "" {
			c.Notices = append(c.Notices, fmt.Sprintf("it is rolled back to revision %s, so changes of its spec are not applied; \"%s\" ends that",
				to, c.Component.corbel("rollback", "--end")))
		}
		if len(down.links) > 0 {
			last := down.links[len(down.links)-1]
			c.Notices = append(c.Notices, fmt.Sprintf("the operator does not run, so changes are not noticed: %s: %s", last.Object, last.Message))
			c.Command = down.command
		}
		e.noteServices()
	case len(down.links) > 0:
		e.found(down.code, down.command, down.links...)
	case ready == nil:
		message := "no operator has reconciled it yet, although one runs: perhaps it watches other namespaces or selects other labels"
		if !e.runs {
			message = "no operator has reconciled it yet: perhaps none runs, or it watches other namespaces or selects other labels"
		}
		e.found(NotSelected, c.Component.kubectl("get", "-o", "yaml"), Link{Object: c.Component, Message: message})
	case !observed && !deleting && ready.Status == metav1.ConditionTrue: // what the condition says is about an earlier generation
		c.Since = nil
		e.found(Unclassified, e.operatorLogs(), Link{Object: c.Component, Message: "the latest change is not reconciled yet; the generation before was ready"})
	default:
		e.byCondition(*ready)
		e.noteRevision()
		e.noteDeleteHook()
		if !observed && !deleting {
			c.Notices = append(c.Notices, "the latest change of the component is not reconciled yet")
		}
	}
}

// byCondition explains what the condition Ready says.
func (e *explainer) byCondition(ready metav1.Condition) {
	switch ready.Reason {
	case vocabulary.ReasonSuspended:
		e.suspended(ready.Message)
		return
	case vocabulary.ReasonForbidden:
		e.rights(ready.Message)
		return
	case vocabulary.ReasonRolledBack: // what failed is not there any more
		command := e.component().kubectl("describe")
		if rollback := e.facts.Status.Rollback; rollback != nil {
			command = e.component().corbel("diff", "--revision", fmt.Sprintf("%d..%d", rollback.To, rollback.From))
		}
		e.found(Unclassified, command, Link{Object: e.component(), Message: ready.Message, Field: "status.rollback"})
		return
	case vocabulary.ReasonSpecInvalid:
		if m := patchError.FindStringSubmatch(ready.Message); m != nil { // what was rendered need not exist
			e.found(Unclassified, e.component().kubectl("get", "-o", "jsonpath={.spec.patches}"), Link{Object: e.component(), Message: m[1], Field: "spec.patches"})
			return
		}
	case vocabulary.ReasonApprovalRequired:
		// The plan first: an approval without a look at it is none.
		e.found(Unclassified, e.component().corbel("plan"), Link{Object: e.component(), Message: ready.Message,
			Field: annotationField(e.annotation(vocabulary.AnnotationApprove))})
		return
	}
	if e.required(ready.Message) {
		return
	}
	said := statements(ready.Message, e.facts.Status.Inventory)
	for i, s := range said {
		if c := e.component(); s.object.String() == c.String() {
			said[i].object = c
		}
	}
	e.heldBack(said)
	for i, s := range said {
		if _, waits := waitsFor(s.text, e.facts.Status.Inventory); !waits {
			e.noteOthers(s.object, said[i+1:])
			e.blame(s, ready.Message)
			return
		}
	}
	for _, s := range said { // all wait: the first says for which object
		if first, _ := waitsFor(s.text, e.facts.Status.Inventory); first.Name != "" {
			e.blame(statement{object: first, text: "is not ready"}, ready.Message)
			return
		}
	}
	e.blame(statement{object: e.component(), text: ready.Message}, ready.Message)
}

// ofManifests are the causes that a revision can bring. A quota, a node or an operator is no part of a revision.
var ofManifests = []Code{ImagePull, Crash, OutOfMemory, MissingReference, ProbeFails, AdmissionRefused, ImmutableField, HookFailed, JobFailed, Unclassified}

// noteRevision notes how to compare the revision with an earlier one that was ready.
func (e *explainer) noteRevision() {
	history := e.facts.Status.History
	if len(history) == 0 || history[0].ReadyAt != nil || history[0].RollbackTo != 0 || e.facts.Status.Rollback != nil ||
		e.facts.Object.GetDeletionTimestamp() != nil || !slices.Contains(ofManifests, e.chain.Code) {
		return
	}
	ready := slices.IndexFunc(history, func(r v1alpha1.RevisionStatus) bool { return r.ReadyAt != nil })
	if ready < 0 {
		return
	}
	from, to := history[ready].Revision, history[0].Revision
	e.chain.Notices = append(e.chain.Notices, fmt.Sprintf("new in revision %d: %s", to, e.component().corbel("diff", "--revision", fmt.Sprintf("%d..%d", from, to))))
}

// noteDeleteHook notes how a deletion goes on without a hook that does not end.
func (e *explainer) noteDeleteHook() {
	if e.facts.Object.GetDeletionTimestamp() == nil || e.chain.Code == Unclassified || len(e.chain.Links) == 0 {
		return
	}
	first := e.chain.Links[0].Object
	for _, item := range e.facts.Status.Inventory.Items {
		if (item.RunOn == "pre-delete" || item.RunOn == "post-delete") && first == (Object{item.Group, item.Version, item.Kind, item.Namespace, item.Name}) {
			e.chain.Notices = append(e.chain.Notices, "the deletion goes on without its hooks after: "+
				e.component().kubectl("annotate", e.annotation(vocabulary.AnnotationSkipDeleteHooks)+"=true"))
			return
		}
	}
}

// maxNamed is how many objects are named that wait for the cause, or are to blame, too.
const maxNamed = 3

// heldBack notes which dependents wait for others: those that the message names, and those that were never written.
func (e *explainer) heldBack(said []statement) {
	var names []string
	blamed := map[Object]bool{}
	for _, s := range said {
		if _, waits := waitsFor(s.text, e.facts.Status.Inventory); waits {
			names = append(names, fmt.Sprintf("%s (%s)", s.object, s.text))
		}
		blamed[s.object] = true
	}
	for _, item := range e.facts.Status.Inventory.Items {
		o := Object{item.Group, item.Version, item.Kind, item.Namespace, item.Name}
		if item.UID == "" && item.Origin == vocabulary.OriginManifest && item.RunOn == "" && item.Phase == vocabulary.PhaseApplied && !blamed[o] && e.facts.Object.GetDeletionTimestamp() == nil {
			names = append(names, o.String())
		}
	}
	e.chain.HeldBack = limited(names)
}

// noteOthers notes which other dependents are to blame, too.
func (e *explainer) noteOthers(blamed Object, said []statement) {
	var names []string
	for _, s := range said {
		_, waits := waitsFor(s.text, e.facts.Status.Inventory)
		isDependent := slices.ContainsFunc(e.facts.Status.Inventory.Items, func(item v1alpha1.InventoryItem) bool {
			return s.object == Object{item.Group, item.Version, item.Kind, item.Namespace, item.Name}
		})
		if name := s.object.String(); isDependent && !waits && s.object != blamed && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		e.chain.Notices = append(e.chain.Notices, "there is more: "+strings.Join(limited(names), ", "))
	}
}

// limited keeps the first names of many.
func limited(names []string) []string {
	if more := len(names) - maxNamed; more > 0 {
		return append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
	}
	return names
}

// blame explains what is said about one object. Some causes show in the words; for others the object is read. A namespace that is being
// deleted comes before its objects.
func (e *explainer) blame(s statement, message string) {
	if link, command := e.endingNamespace(s.object); link.Object.Name != "" {
		if !strings.Contains(s.text, "finalizer") {
			e.found(NamespaceEnds, command, Link{Object: s.object, Message: s.text}, link)
			return
		}
		e.chain.Links = append(e.chain.Links, Link{Object: link.Object, Since: link.Since, Message: isBeingDeleted})
	}
	isCut := isWorkload(s.object) && (strings.Contains(s.text, "…") || strings.Contains(s.text, "...")) // the workload has the whole sentence
	if !isCut && e.byWords(s) {
		return
	}
	// The first statement may be about less than the whole, such as a hook in Go that failed.
	if m := hookError.FindStringSubmatch(message); m != nil {
		e.found(HookFailed, e.operatorLogs(), Link{Object: e.component(), Message: message})
		return
	}
	if m := missingObject.FindStringSubmatch(message); m != nil {
		e.missingReference(m)
		return
	}
	switch {
	case isWorkload(s.object):
		e.workload(s.object, s.text)
	case s.object.Kind == "PersistentVolumeClaim":
		e.claim(s.object, s.text)
	case s.object.Kind == "APIService":
		e.apiService(s)
	default:
		e.found(Unclassified, s.object.kubectl("get", "-o", "yaml"), Link{Object: s.object, Message: s.text})
	}
}

// byWords explains a statement by the first rule that it matches, if any does.
func (e *explainer) byWords(s statement) bool {
	for _, rule := range rules {
		if m := rule.pattern.FindStringSubmatch(s.text); m != nil {
			rule.explain(e, s, m)
			return true
		}
	}
	return false
}

var (
	hookError = regexp.MustCompile(`\b(?:pre|post)-(?:reconcile|delete) hook \d+: `)
	// patchError is what a patch in the spec does not do.
	patchError = regexp.MustCompile(`^generator: patches of the component: (.+)$`)
	// missingObject is a reference of the spec that leads nowhere.
	missingObject = regexp.MustCompile(`(spec\.[^:\s]+): (Secret|ConfigMap) (\S+?)/(\S+) (does not exist|has no key (\S+))`)
)

// missingReference explains a reference of the spec to what does not exist.
func (e *explainer) missingReference(m []string) {
	code, o := MissingReference, known(m[2], m[3], m[4])
	if strings.Contains(strings.ToLower(m[1]), "kubeconfig") {
		code = KubeconfigMissing
	}
	command := o.listing()
	if m[6] != "" {
		command = keysCommand(o)
	}
	e.found(code, command, Link{Object: e.component(), Field: m[1], Message: fmt.Sprintf("refers to %s", o)}, Link{Object: o, Message: m[5]})
}

func (e *explainer) suspended(message string) {
	component, annotations := e.component(), e.facts.Object.GetAnnotations()
	suspend, policy := e.annotation(vocabulary.AnnotationSuspend), e.annotation(v1alpha1.AnnotationManagementPolicy)
	link := Link{Object: component, Message: message, Since: e.chain.Since}
	var command string
	switch {
	case annotations[suspend] != "" && annotations[suspend] != "false":
		link.Field, command = annotationField(suspend), component.corbel("resume")
	case strings.Contains(message, "management policy") && annotations[policy] != "":
		link.Field, command = annotationField(policy), component.kubectl("annotate", policy+"-")
	case strings.Contains(message, "management policy"):
		// The annotation of the namespace counts for all components in it.
		link = Link{Object: known("Namespace", "", component.Namespace), Field: annotationField(policy), Message: message}
		command = link.Object.kubectl("annotate", policy+"-")
	default:
		link.Field = "spec.suspend"
		command = component.kubectl("patch", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	}
	e.found(Suspended, command, link)
}

func annotationField(name string) string { return "metadata.annotations[" + name + "]" }
