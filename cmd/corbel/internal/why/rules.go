// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/sentence"
)

// rule explains a statement that has the cause in its words.
type rule struct {
	pattern *regexp.Regexp
	explain func(e *explainer, s statement, m []string)
}

// rules are asked in order. The words are those of the planner and of the API server.
var rules []rule

func init() { // not in the declaration, because the functions refer to the rules
	for _, row := range []struct {
		pattern string
		explain func(e *explainer, s statement, m []string)
	}{
		{`^is being deleted since (\S+), held by finalizers (.+)$`, (*explainer).finalizer},
		{`^has the finalizer (\S+), which is not ours`, (*explainer).finalizer},
		{`\bnamespace (\S+) (?:is being deleted|because it is being terminated)`, (*explainer).namespace},
		{`\b\d+ foreign instances?\b(?:.*\(listed by kubectl get ([a-z][a-z0-9.,-]*) --all-namespaces\))?`, (*explainer).instances},
		{`^(.+) changes (.+) again and again`, (*explainer).fight},
		{`^belongs to (.+?)(?:,? and the adoption policy|, which|;|$)`, (*explainer).owner},
		{`\bis not served (?:yet|by the cluster)`, (*explainer).notServed},
		{`exceeded quota: ([^,]+), (requested: (.+?), used: .+?, limited: .+?)(?:[;)]|$)`, (*explainer).quota},
		{`failed quota: ([^:]+): (must specify (.+?) for: .+)`, (*explainer).quota},
		{`\b((?:(minimum|maximum) )?(\S+) (?:usage|max limit to request ratio) per (Container|Pod|PersistentVolumeClaim) is .+)`, (*explainer).limitRange},
		{`service account \S+: serviceaccount "([^"]+)" not found`, absent("ServiceAccount", "serviceAccountName")},
		{`no PriorityClass with name (\S+) was found`, absent("PriorityClass", "priorityClassName")},
		{`RuntimeClass "([^"]+)" not found`, absent("RuntimeClass", "runtimeClassName")},
		{`violates PodSecurity "([^":]+)[^"]*": (.+)`, (*explainer).podSecurity},
		{`admission webhook "([^"]+)" denied the request(?:: (.*))?`, (*explainer).webhook},
		{`failed calling webhook "([^"]+)": (?:failed to call webhook: )?(.*)`, (*explainer).silentWebhook},
		{`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)`, (*explainer).policy},
		{`^(\S+(?:, \S+)*) cannot be changed on an existing object; ([^(]*)`, (*explainer).immutable},
		{`^([A-Z]\w*) (\S+), on which the deletion waits, has failed: (.*)`, (*explainer).deleteHook},
		{`^(containers without a readiness probe .+); pod (\S+): (container (\S+) was (re)?started .+)$`, (*explainer).unavailable},
		{`User "([^"]+)" cannot \w+ resource`, func(e *explainer, s statement, _ []string) { e.rights(s.text) }},
	} {
		rules = append(rules, rule{regexp.MustCompile(row.pattern), row.explain})
	}
}

// claimProtection keeps a claim as long as a pod uses it.
const claimProtection = "kubernetes.io/pvc-protection"

func (e *explainer) finalizer(s statement, m []string) {
	finalizers := m[len(m)-1]
	link := Link{Object: s.object, Field: "metadata.finalizers", Message: "cannot be removed while it has the finalizer " + finalizers}
	if len(m) == 3 {
		link.Since = parseTime(m[1])
	}
	command := s.object.kubectl("get", "-o", "jsonpath={.metadata.finalizers}")
	if finalizers == claimProtection { // it is the server's own: the description of the claim names the pods
		link.Message, command = "cannot be removed while a pod uses it (finalizer "+finalizers+")", s.object.kubectl("describe")
	}
	e.found(ForeignFinalizer, command, link)
}

const isBeingDeleted = "is being deleted"

// endingNamespace explains why the namespace of an object does not go away; the link is empty if it is not being deleted.
func (e *explainer) endingNamespace(o Object) (link Link, command string) {
	if o.Namespace == "" || e.remote {
		return link, ""
	}
	namespace := known("Namespace", "", o.Namespace)
	if live, _ := e.get(namespace); live != nil && live.GetDeletionTimestamp() != nil {
		return ending(namespace, *live)
	}
	return link, ""
}

// namespace is for users who may not read the namespace.
func (e *explainer) namespace(s statement, m []string) {
	link, command := ending(known("Namespace", "", strings.TrimRight(m[1], ",;")), unstructured.Unstructured{})
	e.found(NamespaceEnds, command, Link{Object: s.object, Message: "cannot be created"}, link)
}

// ending explains why a namespace does not go away, as its conditions say.
func ending(o Object, live unstructured.Unstructured) (link Link, command string) {
	link, command = Link{Object: o, Message: isBeingDeleted, Since: live.GetDeletionTimestamp()}, kubectl(o.Name, "get", "all")
	for _, kind := range []string{"NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"} {
		if said := conditionOf(live, kind); said != nil && text(*said, "status") == "True" {
			link.Message += ": " + sentence.OneLine(text(*said, "message"))
			break
		}
	}
	if said := conditionOf(live, "NamespaceContentRemaining"); said != nil {
		if resource := remaining.FindStringSubmatch(text(*said, "message")); resource != nil {
			link.Field, command = resource[1], kubectl(o.Name, "get", resource[1])
		}
	}
	return link, command
}

// remaining is the resource of which a namespace still has objects, as its condition says.
var remaining = regexp.MustCompile(`([a-z][a-z0-9.-]*[a-z])\.? has \d+ resource instances`)

// conditionOf returns a condition of the status of an object; nil if it has none of the type.
func conditionOf(object unstructured.Unstructured, kind string) *unstructured.Unstructured {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if content, ok := c.(map[string]any); ok && content["type"] == kind {
			return &unstructured.Unstructured{Object: content}
		}
	}
	return nil
}

// instances explains a type that others use. The message has no command if it names all instances.
func (e *explainer) instances(s statement, m []string) {
	resources, command := m[1], s.object.kubectl("get", "-o", "yaml")
	if resources == "" && s.object.Kind == "CustomResourceDefinition" {
		resources = s.object.Name
	}
	if resources != "" {
		command = kubectl("", "get", resources, "--all-namespaces")
	}
	e.found(ForeignInstance, command, Link{Object: s.object, Message: s.text})
}

// unavailable explains a workload of which a container does not run for long enough yet, or not since it was restarted.
func (e *explainer) unavailable(s statement, m []string) {
	pod, code := known("Pod", s.object.Namespace, m[2]), map[bool]Code{true: Crash, false: Unclassified}[m[5] != ""]
	e.found(code, logsOf(pod, m[4], m[5] != ""), Link{Object: s.object, Message: m[1]}, Link{Object: pod, Message: m[3]})
}

func (e *explainer) fight(s statement, m []string) {
	e.found(FieldConflict, s.object.kubectl("get", "-o", "yaml", "--show-managed-fields"),
		Link{Object: s.object, Field: m[2], Message: m[1] + " changes it again and again"})
}

func (e *explainer) owner(s statement, _ []string) {
	e.found(OwnerConflict, s.object.kubectl("get", "-o", "yaml"), Link{Object: s.object, Message: s.text})
}

// servedType is a type as messages name it, such as "queue.example.com/v1 Queue".
var servedType = regexp.MustCompile(`type (?:([^/\s]+)/)?(\S+) (\S+) is not served`)

func (e *explainer) notServed(s statement, _ []string) {
	group := s.object.Group
	if m := servedType.FindStringSubmatch(s.text); m != nil {
		group = m[1]
	}
	e.found(TypeNotServed, kubectl("", "api-resources", "--api-group="+group), Link{Object: s.object, Field: "apiVersion", Message: s.text})
}

// refused explains an object, or a pod of a workload, that is refused because of another object; field is in the former. The words may
// be old: an object that is gone by now, or is there by now if it is missed, is no cause.
func (e *explainer) refused(s statement, field string, missed bool, code Code, command string, cause Link) {
	if live, answered := e.get(cause.Object); answered && (live == nil) != missed {
		cause.Field = ""
		cause.Message, command = e.outdated(s, map[bool]string{true: "exists now", false: "is gone"}[missed])
	}
	e.found(code, command, notCreated(s.object, field), cause)
}

func notCreated(o Object, field string) Link {
	if isWorkload(o) {
		return Link{Object: o, Field: field, Message: "its pods cannot be created"}
	}
	return Link{Object: o, Field: field, Message: "cannot be created"}
}

// outdated says that a cause is none any more. Controllers try again after up to minutes.
func (e *explainer) outdated(s statement, state string) (message, command string) {
	if !isWorkload(s.object) {
		return state + "; the operator tries again by itself", e.component().corbel("reconcile")
	}
	return fmt.Sprintf("%s; the %s controller tries again by itself", state, strings.Replace(s.object.Kind, "Deployment", "ReplicaSet", 1)), s.object.kubectl("describe")
}

// absent explains a pod with a field that names an object that does not exist.
func absent(kind, field string) func(e *explainer, s statement, m []string) {
	return func(e *explainer, s statement, m []string) {
		o := known(kind, "", m[1])
		if kind == "ServiceAccount" {
			o.Namespace = s.object.Namespace
		}
		e.refused(s, "spec.template.spec."+field, true, MissingReference, o.listing(), Link{Object: o, Message: "does not exist"})
	}
}

func (e *explainer) quota(s statement, m []string) {
	var fields []string
	for resource := range strings.SplitSeq(m[3], ",") {
		name, _, _ := strings.Cut(resource, "=")
		fields = append(fields, "spec.hard["+name+"]")
	}
	o := known("ResourceQuota", s.object.Namespace, m[1])
	e.refused(s, "", false, Quota, o.kubectl("describe"), Link{Object: o, Field: strings.Join(fields, ", "), Message: m[2]})
}

// limitRange looks for the LimitRange that has the bound, because the server does not name it.
func (e *explainer) limitRange(s statement, m []string) {
	o := known("LimitRange", s.object.Namespace, "")
	answer, ok := e.ask(Question{Verb: verbList, Object: o})
	bound := map[string]string{"minimum": "min", "maximum": "max", "": "maxLimitRequestRatio"}[m[2]]
	for _, limits := range typed[corev1.LimitRange](answer.Objects) {
		for _, limit := range limits.Spec.Limits {
			bounds := map[string]corev1.ResourceList{"min": limit.Min, "max": limit.Max, "maxLimitRequestRatio": limit.MaxLimitRequestRatio}
			if _, found := bounds[bound][corev1.ResourceName(m[3])]; found && string(limit.Type) == m[4] {
				o.Name = limits.Name
				e.found(Quota, o.kubectl("describe"), notCreated(s.object, ""), Link{Object: o, Field: fmt.Sprintf("spec.limits[%s].%s[%s]", m[4], bound, m[3]), Message: m[1]})
				return
			}
		}
	}
	link, command := Link{Object: s.object, Message: m[1]}, o.listing()
	if ok && answer.exists() {
		var state string
		state, command = e.outdated(s, "the LimitRange is gone")
		link.Message += "; " + state
	}
	e.found(Quota, command, link)
}

// podSecurity explains a pod that is not as the labels of its namespace require.
func (e *explainer) podSecurity(s statement, m []string) {
	o := known("Namespace", "", s.object.Namespace)
	e.found(AdmissionRefused, o.kubectl("get", "--show-labels"), notCreated(s.object, "spec.template.spec"),
		Link{Object: o, Field: "metadata.labels[pod-security.kubernetes.io/enforce]", Message: "allows no pods beyond the level " + m[1] + ": " + m[2]})
}

func (e *explainer) webhook(s statement, m []string) {
	e.byWebhook(s, m[1], AdmissionRefused, "is refused by an admission webhook", Link{Field: "webhooks[" + m[1] + "]", Message: "refuses it: " + m[2]})
}

// silentWebhook explains a webhook that gives no answer, by its Service.
func (e *explainer) silentWebhook(s statement, m []string) {
	webhook := e.byWebhook(s, m[1], WebhookDown, "cannot be written, because an admission webhook gives no valid answer",
		Link{Field: "webhooks[" + m[1] + "].failurePolicy", Message: "gets no valid answer, and the failurePolicy is Fail: " + m[2]})
	if name := text(webhook, "clientConfig", "service", "name"); name != "" {
		e.chain.Notices = append(e.chain.Notices, "until the webhook answers, only the failurePolicy Ignore or the deletion of "+e.chain.Cause().Object.String()+" lets requests pass")
		service, command := e.backend(known("Service", text(webhook, "clientConfig", "service", "namespace"), name))
		e.found(WebhookDown, command, service)
	}
}

// byWebhook explains a refusal, and returns the webhook, which has another name than its configuration.
func (e *explainer) byWebhook(s statement, name string, code Code, said string, link Link) (webhook unstructured.Unstructured) {
	link.Object = Object{Kind: "Webhook", Name: name}
	command, all := "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations", true
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		answer, ok := e.ask(Question{Verb: verbList, Object: known(kind, "", "")})
		all = all && ok && answer.exists()
		for _, configuration := range answer.Objects {
			webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
			for _, entry := range webhooks {
				if content, ok := entry.(map[string]any); ok && content["name"] == name {
					link.Object, webhook.Object = known(kind, "", configuration.GetName()), content
					command = link.Object.kubectl("get", "-o", "yaml")
				}
			}
		}
	}
	if all && webhook.Object == nil {
		link.Field = ""
		link.Message, command = e.outdated(s, "is gone")
	}
	e.found(code, command, Link{Object: s.object, Message: said}, link)
	return webhook
}

func (e *explainer) policy(s statement, m []string) {
	o := known("ValidatingAdmissionPolicy", "", m[1])
	e.found(AdmissionRefused, o.kubectl("get", "-o", "yaml"), Link{Object: s.object, Message: "is refused by an admission policy"},
		Link{Object: o, Message: "refuses it: " + m[3]})
}

func (e *explainer) immutable(s statement, m []string) {
	path, _, _ := strings.Cut(m[1], ",")
	e.found(ImmutableField, s.object.kubectl("get", "-o", "jsonpath={."+path+"}"),
		Link{Object: s.object, Field: m[1], Message: "cannot be changed on an existing object; " + strings.TrimSpace(m[2])})
}

// forbidden is what the server answers to a request without a right.
var forbidden = regexp.MustCompile(`User "([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// lacking is the beginning of what the operator says about missing rights.
var lacking = regexp.MustCompile(`(\S+(?: \S+)?) lacks rights: ((?:in namespace \S+ )?rules: (?:\[\{.*?\}\]|\S+))`)

// rights explains which right is missing, and who lacks it.
func (e *explainer) rights(message string) {
	link := Link{Object: e.component(), Message: sentence.Shorten(message, maxMessage)}
	command := "kubectl auth can-i --list"
	if m := lacking.FindStringSubmatch(message); m != nil {
		link.Message, link.Field = m[1]+" lacks rights", m[2]
	}
	if m := forbidden.FindStringSubmatch(message); m != nil {
		resource := m[3]
		if m[4] != "" {
			resource += "." + m[4]
		}
		link.Object = userObject(m[1])
		link.Message = fmt.Sprintf("may not %s %s", m[2], resource)
		if m[5] != "" {
			link.Message += " in namespace " + m[5]
		}
		command = kubectl(m[5], "auth", "can-i", m[2], resource, "--as="+m[1])
	}
	e.found(RightsMissing, command, link)
}

// maxMessage is how much of a message is repeated that is not understood. It is the greatest length of a message of an event.
const maxMessage = 1024

// userObject names a user; a service account is an object.
func userObject(user string) Object {
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return known("ServiceAccount", namespace, name)
		}
	}
	return Object{Kind: "User", Name: user}
}

// deleteHook explains an object that runs before or after the deletion, such as a Job that fails.
func (e *explainer) deleteHook(_ statement, m []string) {
	e.workload(named(m[1], m[2], e.facts.Status.Inventory), m[3])
	e.chain.Code = HookFailed
}

func (e *explainer) apiService(s statement) {
	links := []Link{{Object: s.object, Message: s.text}}
	command := s.object.kubectl("get", "-o", "yaml")
	if live, _ := e.get(s.object); live != nil {
		if available := conditionOf(*live, "Available"); available != nil {
			links[0].Since = parseTime(text(*available, "lastTransitionTime"))
		}
		if name := text(*live, "spec", "service", "name"); name != "" {
			var service Link
			links[0].Field = "spec.service"
			service, command = e.backend(known("Service", text(*live, "spec", "service", "namespace"), name))
			links = append(links, service)
		}
	}
	e.found(APIServiceDown, command, links...)
}
