// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/cluster"
)

// Operator is an operator that needs rights.
type Operator struct {
	// Account is the name of the service account and the roles.
	Account string
	// Group and Resource are the component's. Group is also the name of the reconciler.
	Group, Resource string
	// More are the types of further components of the operator.
	More []schema.GroupResource
	// Namespace is the namespace of the operator; it may be an expression of a template.
	Namespace string
	// Namespaced gives it rights in its own namespace only, by Roles.
	Namespaced bool
	// Deployer is the name of the service account, in the namespace of each component, that writes its
	// objects; the operator impersonates it. Empty: the operator writes them itself.
	Deployer string
	// CreatesNamespaces is set if objects may be in namespaces that are created for them.
	CreatesNamespaces bool
	// ReadsSecrets is set if specs refer to Secrets.
	ReadsSecrets bool
}

// dependentVerbs are the reconciler's verbs for dependent objects, under every policy.
const dependentVerbs = "get, list, watch, create, update, patch, delete"

// rule is a rule with the reason for it. Lists are separated by commas.
type rule struct{ why, group, resources, names, verbs string }

func (r rule) String() string {
	names := ""
	if r.names != "" {
		names = ", resourceNames: [" + quoted(r.names) + "]"
	}
	verbs := r.verbs
	if strings.Contains(verbs, ":") {
		verbs = quoted(verbs)
	}
	return fmt.Sprintf("# %s\n- {apiGroups: [%q], resources: [%s]%s, verbs: [%s]}\n", inComment(r.why), r.group, quoted(r.resources), names, verbs)
}

// policy returns the rule as the API has it.
func (r rule) policy() rbacv1.PolicyRule {
	p := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: strings.Split(r.resources, ", "), Verbs: strings.Split(r.verbs, ", ")}
	if r.names != "" {
		p.ResourceNames = strings.Split(r.names, ", ")
	}
	return p
}

// quoted quotes names that are separated by commas.
func quoted(names string) string {
	parts := strings.Split(names, ", ")
	for i, part := range parts {
		parts[i] = strconv.Quote(part)
	}
	return strings.Join(parts, ", ")
}

// inComment returns a text, such as the name of a file, for a comment of a template.
func inComment(text string) string {
	return strings.NewReplacer("{{", "{ {", "}}", "} }").Replace(strings.Join(strings.Fields(text), " "))
}

// constrained is the condition of a template for a server that offers constrained impersonation
// (KEP-5284): an account can be impersonated for some verbs on some resources only.
const constrained = `semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version`

// YAML returns the manifests of the service account, the roles and their bindings. Kinds that
// a cluster may lack have their rights in a role of their own. Kinds without a namespace are an
// error for an operator with rights in one namespace, and for an operator that acts as accounts of
// namespaces.
func (o Operator) YAML(kinds []Kind) (string, error) {
	if err := o.check(kinds); err != nil {
		return "", err
	}
	required, optional := o.dependents(kinds)
	kind := "ClusterRole"
	if o.Namespaced {
		kind = "Role"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", o.Account, o.Namespace)
	own := o.own()
	if o.Deployer == "" {
		own = append(own, required...)
	}
	o.role(&out, kind, o.Account, own)
	o.role(&out, "Role", o.Account+"-own", o.inOwnNamespace())
	if o.Deployer != "" {
		o.impersonation(&out, kind, required, optional)
		return out.String(), nil
	}
	if len(optional) > 0 {
		out.WriteString("{{- if .Values.optionalRights }}\n")
		o.role(&out, kind, o.Account+"-optional", optional)
		out.WriteString("{{- end }}\n")
	}
	return out.String(), nil
}

// check returns an error if there are kinds without a namespace, and rights in namespaces only.
func (o Operator) check(kinds []Kind) error {
	var without []string
	for _, k := range kinds {
		if !k.Namespaced {
			without = append(without, k.Kind)
		}
	}
	switch {
	case len(without) == 0:
		return nil
	case o.Namespaced:
		return fmt.Errorf("--namespaced: objects of these kinds have no namespace: %s", strings.Join(without, ", "))
	case o.Deployer != "":
		return fmt.Errorf("--impersonate: objects of these kinds have no namespace, and the service accounts have rights in namespaces only: %s", strings.Join(without, ", "))
	}
	return nil
}

// whatNamespacesHold is the rule to find out whether a namespace among the manifests can be deleted. Without it the namespace
// stays, and the component waits in its deletion. A namespace that was created for objects is orphaned instead.
var whatNamespacesHold = rule{"What is in a namespace, of any type: one that holds objects of others is not deleted.", "*", "*", "", "list"}

// own returns the rules for the operator's own requests.
func (o Operator) own() []rule {
	var own []rule
	for _, of := range append([]schema.GroupResource{{Group: o.Group, Resource: o.Resource}}, o.More...) {
		own = append(own, rule{"The components.", of.Group, of.Resource, "", "get, list, watch, update, patch"},
			rule{"Their status.", of.Group, of.Resource + "/status", "", "patch"})
	}
	own = append(own, rule{"What happens to them.", "events.k8s.io", "events", "", "create, patch"},
		rule{"Revisions and large inventories, beside the components.", "", "secrets", "", "get, list, create, patch, delete"})
	if o.ReadsSecrets {
		own = append(own, rule{"The Secrets that specs refer to.", "", "secrets", "", "get, list, watch"})
	}
	if o.Namespaced {
		return own
	}
	uid := rule{"Its uid identifies the cluster.", "", "namespaces", "kube-system", "get"}
	if o.Deployer != "" {
		uid = rule{"The uid of kube-system identifies the cluster; and whether the namespace of components is being deleted.", "", "namespaces", "", "get"}
		own = append(own, rule{"Whether the account of components exists, when their namespace is being deleted.", "", "serviceaccounts", o.Deployer, "get"})
	}
	return append(own, uid)
}

// inOwnNamespace returns the rules for the operator's own namespace.
func (o Operator) inOwnNamespace() []rule {
	rules := []rule{
		{"The key of the digests.", "", "secrets", "", "get, create"},
		{"The leader election.", "coordination.k8s.io", "leases", "", "get, create, update"},
	}
	if o.Namespaced {
		rules = append(rules, rule{"Its uid identifies the cluster.", "", "namespaces", o.Namespace, "get"})
	}
	return rules
}

// dependents returns the rules for the objects of components, and, apart, the rules for kinds that a
// cluster may lack.
func (o Operator) dependents(kinds []Kind) (required, optional []rule) {
	namespaces := rule{"The namespaces that objects are in: while one is being deleted, nothing is created.", "", "namespaces", "", "get"}
	if o.CreatesNamespaces {
		namespaces = rule{"The namespaces that objects are in: those that do not exist are created.", "", "namespaces", "", "get, list, watch, create, patch, delete"}
	}
	required = append(required, rule{"Why a workload is not ready.", "", "pods, events", "", "list"}, namespaces)
	if !o.Namespaced && o.Deployer == "" && slices.ContainsFunc(kinds, Kind.isNamespace) {
		required = append(required, whatNamespacesHold)
	}
	for _, k := range kinds {
		if k.Optional {
			optional = append(optional, rulesOf(k)...)
		} else {
			required = append(required, rulesOf(k)...)
		}
	}
	if !o.Namespaced && o.Deployer == "" { // definitions have no namespace, and accounts have rights in theirs
		required, optional = append(required, whetherGone(kinds, false)...), append(optional, whetherGone(kinds, true)...)
	}
	return required, optional
}

// Uses returns the rules for all that Corbel can do for components of which these are the kinds of
// objects, with any option and in any branch of their templates. A right that is not among them is of no
// use.
func (o Operator) Uses(kinds []Kind) []rbacv1.PolicyRule {
	o.CreatesNamespaces = true
	required, optional := o.dependents(kinds)
	dependents := slices.Concat(required, optional)
	all := slices.Concat(o.own(), o.inOwnNamespace(), dependents, onAccounts(dependents), []rule{
		{"What specs refer to.", "", "secrets, configmaps", "", "get, list, watch"},
		{"Whether an account exists.", "", "serviceaccounts", "", "get"},
		{"", "", "serviceaccounts, users, groups", "", "impersonate"},
		{"", "authentication.k8s.io", "serviceaccounts", "", "impersonate:serviceaccount"},
		{"", "authentication.k8s.io", "users, groups", "", "impersonate:user-info"},
		{"The leader election of controller-runtime.", "", "events", "", "create, patch"},
		{"", "apiextensions.k8s.io", "customresourcedefinitions", "", "get, list, watch"},
		{"", "apiregistration.k8s.io", "apiservices", "", "get, list, watch"},
	})
	policies := make([]rbacv1.PolicyRule, 0, len(all))
	for _, r := range all {
		policies = append(policies, r.policy())
	}
	return policies
}

// Escalates reports whether roles or bindings are among the kinds that are written: the user that
// writes them may grant rights that it does not hold itself.
func Escalates(kinds []Kind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Group == rbacv1.GroupName && !k.Read && !k.Defined })
}

// role writes a role and its binding to the operator.
func (o Operator) role(out *strings.Builder, kind, name string, rules []rule) {
	o.rules(out, kind, name, rules)
	binding(out, kind+"Binding", name, o.namespaceOf(kind), kind, name, o.Account, o.Namespace)
}

// namespaceOf returns the namespace of a role of a kind.
func (o Operator) namespaceOf(kind string) string {
	if kind == "Role" {
		return o.Namespace
	}
	return ""
}

// rules writes a role.
func (o Operator) rules(out *strings.Builder, kind, name string, rules []rule) {
	fmt.Fprintf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s%s\nrules:\n", kind, name, inNamespace(o.namespaceOf(kind)))
	for i, r := range rules {
		if !slices.Contains(rules[:i], r) { // two kinds may need the same one
			out.WriteString(r.String())
		}
	}
}

// binding writes the binding of a role to a service account.
func binding(out *strings.Builder, kind, name, namespace, roleKind, role, account, ofNamespace string) {
	fmt.Fprintf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s%s\n", kind, name, inNamespace(namespace))
	fmt.Fprintf(out, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\n", roleKind, role)
	fmt.Fprintf(out, "subjects:\n- {kind: ServiceAccount, name: %s, namespace: %q}\n", account, ofNamespace)
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return "\n  namespace: " + namespace
}

// whetherGone returns the rules to find out whether a type that is not served any more is gone for good, and its
// objects with it. Without them the deletion of a component waits for objects that nothing can delete.
func whetherGone(kinds []Kind, optional bool) []rule {
	custom := func(k Kind) bool {
		return k.Optional == optional && !k.Read && !k.Defined && !cluster.IsBuiltIn(k.Group)
	}
	if !slices.ContainsFunc(kinds, custom) {
		return nil
	}
	return []rule{
		{"Whether a type that is not served any more is gone: by definitions.", "apiextensions.k8s.io", "customresourcedefinitions", "", "get, list"},
		{"Whether a type that is not served any more is gone: by aggregated servers.", "apiregistration.k8s.io", "apiservices", "", "list"},
	}
}

// rulesOf returns the rules for the objects of a kind.
func rulesOf(k Kind) []rule {
	if k.Read {
		return []rule{{"A template looks it up: " + whereOf(k) + ".", k.Group, k.Resource, "", "get, list"}}
	}
	if k.Defined {
		return []rule{{k.Kind + ": objects of others keep the definition from being deleted.", k.Group, k.Resource, "", "list"}}
	}
	rules := []rule{{whyOf(k), k.Group, k.Resource, "", dependentVerbs}}
	if k.Group != rbacv1.GroupName {
		return rules
	}
	role := "roles"
	if strings.HasPrefix(k.Kind, "Cluster") {
		role = "clusterroles"
	}
	if strings.HasSuffix(k.Kind, "Binding") {
		return append(rules, rule{"To bind roles with rights that the writer does not hold: users must not decide about bindings, as by the field patches.", k.Group, "roles, clusterroles", "", "bind"})
	}
	return append(rules, rule{"To write roles with rights that the writer does not hold: users must not decide about roles, as by the field patches.", k.Group, role, "", "escalate"})
}

// whyOf returns the origin of the kind.
func whyOf(k Kind) string {
	if where := whereOf(k); where != "" {
		return k.Kind + ": " + where + "."
	}
	return k.Kind + "."
}

// whereOf returns where the kind was found.
func whereOf(k Kind) string {
	origins, more := k.Origins, ""
	if len(origins) > 2 {
		more = fmt.Sprintf(" and %d more", len(origins)-2)
		origins = origins[:2]
	}
	return strings.Join(origins, ", ") + more
}
