// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"

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
	rules = []rule{
		{regexp.MustCompile(`^is being deleted since (\S+), held by finalizers (.+)$`), (*explainer).finalizer},
		{regexp.MustCompile(`^has the finalizer (\S+), which is not ours`), (*explainer).finalizer},
		{regexp.MustCompile(`\bnamespace (\S+) is being deleted`), (*explainer).namespace},
		{regexp.MustCompile(`\bforeign instances?\b.*\(listed by (kubectl [^)]+)\)`), (*explainer).instances},
		{regexp.MustCompile(`^(.+) changes (.+) again and again`), (*explainer).fight},
		{regexp.MustCompile(`^belongs to (.+?)(?:,? and the adoption policy|, which|;|$)`), (*explainer).owner},
		{regexp.MustCompile(`\bis not served (?:yet|by the cluster)`), (*explainer).notServed},
		{regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+?)(?:[;)]|$)`), (*explainer).quota},
		{regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: (.*))?`), (*explainer).webhook},
		{regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)`), (*explainer).webhook},
		{regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)`), (*explainer).policy},
		{regexp.MustCompile(`^(\S+(?:, \S+)*) cannot be changed on an existing object; ([^(]*)`), (*explainer).immutable},
		{regexp.MustCompile(`^([A-Z]\w*) (\S+), on which the deletion waits, has failed: (.*)`), (*explainer).deleteHook},
		{regexp.MustCompile(`^(containers without a readiness probe .+); pod (\S+): (container (\S+) was (re)?started .+)$`), (*explainer).unavailable},
		{regexp.MustCompile(`User "([^"]+)" cannot \w+ resource`), func(e *explainer, s statement, _ []string) { e.rights(s.text) }},
	}
}

func (e *explainer) finalizer(s statement, m []string) {
	finalizers := m[len(m)-1]
	link := Link{Object: s.object, Field: "metadata.finalizers", Message: "cannot be removed while it has the finalizer " + finalizers}
	if len(m) == 3 {
		link.Since = parseTime(m[1])
	}
	e.found(ForeignFinalizer, s.object.kubectl("get", "-o", "jsonpath={.metadata.finalizers}"), link)
}

// namespace explains why a namespace does not go away, as its conditions say.
func (e *explainer) namespace(s statement, m []string) {
	o := known("Namespace", "", strings.TrimRight(m[1], ",;"))
	link, command := Link{Object: o, Message: "is being deleted"}, kubectl(o.Name, "get", "all")
	if live, _ := e.get(o); live != nil {
		if at := live.GetDeletionTimestamp(); at != nil {
			link.Since = at
		}
		for _, kind := range []string{"NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"} {
			if said := conditionOf(*live, kind); said != nil && text(*said, "status") == "True" {
				link.Message += ": " + sentence.OneLine(text(*said, "message"))
				break
			}
		}
		if said := conditionOf(*live, "NamespaceContentRemaining"); said != nil {
			if resource := remaining.FindStringSubmatch(text(*said, "message")); resource != nil {
				link.Field = resource[1]
				command = kubectl(o.Name, "get", resource[1])
			}
		}
	}
	e.found(NamespaceEnds, command, Link{Object: s.object, Message: "cannot be created"}, link)
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

func (e *explainer) instances(s statement, m []string) {
	e.found(ForeignInstance, sentence.Command(strings.Fields(m[1])...), Link{Object: s.object, Message: s.text})
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

// quota explains a refusal by a quota, of the object itself or of a pod of it.
func (e *explainer) quota(s statement, m []string) {
	links := []Link{{Object: s.object, Message: "cannot be created"}}
	if isWorkload(s.object) {
		links[0].Message = "its pods cannot be created"
	}
	name, _, _ := strings.Cut(m[2], "=")
	o := known("ResourceQuota", s.object.Namespace, m[1])
	e.found(Quota, o.kubectl("describe"), append(links, Link{Object: o, Field: "spec.hard[" + name + "]",
		Message: fmt.Sprintf("requested: %s, used: %s, limited: %s", m[2], m[3], m[4])})...)
}

// webhook looks for the configuration of a webhook, which has another name.
func (e *explainer) webhook(s statement, m []string) {
	link := Link{Object: known("ValidatingWebhookConfiguration", "", m[1]), Field: "webhooks[" + m[1] + "]", Message: "refuses it: " + m[2]}
	command := "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		answer, ok := e.ask(Question{Verb: verbList, Object: known(kind, "", "")})
		if !ok {
			break
		}
		if configuration, found := holding(answer.Objects, m[1]); found {
			link.Object = known(kind, "", configuration.GetName())
			command = link.Object.kubectl("get", "-o", "yaml")
			break
		}
	}
	e.found(AdmissionRefused, command, Link{Object: s.object, Message: "is refused by an admission webhook"}, link)
}

// holding returns the configuration that has the webhook.
func holding(configurations []unstructured.Unstructured, webhook string) (unstructured.Unstructured, bool) {
	for _, configuration := range configurations {
		webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
		for _, entry := range webhooks {
			if content, ok := entry.(map[string]any); ok && content["name"] == webhook {
				return configuration, true
			}
		}
	}
	return unstructured.Unstructured{}, false
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

// maxMessage is how much of a message is repeated that is not understood.
const maxMessage = 300

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
	link := Link{Object: s.object, Message: s.text}
	command := s.object.kubectl("get", "-o", "yaml")
	links := []Link{link}
	if live, _ := e.get(s.object); live != nil {
		if available := conditionOf(*live, "Available"); available != nil {
			links[0].Since = parseTime(text(*available, "lastTransitionTime"))
		}
		if name := text(*live, "spec", "service", "name"); name != "" {
			service := known("Service", text(*live, "spec", "service", "namespace"), name)
			links[0].Field = "spec.service"
			message := "serves the API, and does not answer"
			if strings.Contains(s.text, "not present") || strings.Contains(s.text, "ServiceNotFound") {
				message = "serves the API, and does not exist"
			}
			links = append(links, Link{Object: service, Message: message})
			command = service.kubectl("get") + " && " + kubectl(service.Namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+name)
		}
	}
	e.found(APIServiceDown, command, links...)
}
