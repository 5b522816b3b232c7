// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Operator is an operator that needs rights.
type Operator struct {
	// Account is the name of the service account and the roles.
	Account string
	// Group and Resource are those of the component.
	Group, Resource string
	// Namespace is that of the operator; it may be an expression of a template.
	Namespace string
	// Namespaced gives it rights in its own namespace only.
	Namespaced bool
}

// dependentVerbs are what the reconciler does with dependent objects, under every policy.
const dependentVerbs = "[get, list, watch, create, update, patch, delete]"

// rule is a rule with the reason for it.
type rule struct{ why, group, resources, names, verbs string }

func (r rule) String() string {
	names := ""
	if r.names != "" {
		names = ", resourceNames: " + r.names
	}
	return fmt.Sprintf("# %s\n- {apiGroups: [%q], resources: [%s]%s, verbs: %s}\n", inComment(r.why), r.group, quoted(r.resources), names, r.verbs)
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

// YAML returns the manifests of the service account, the roles and their bindings. Rights for kinds
// whose definition a cluster may lack have a role of their own. Kinds without a namespace are an error
// for an operator with rights in one namespace.
func (o Operator) YAML(kinds []Kind) (string, error) {
	if o.Namespaced {
		var without []string
		for _, k := range kinds {
			if !k.Namespaced {
				without = append(without, k.Kind)
			}
		}
		if len(without) > 0 {
			return "", fmt.Errorf("--namespaced: objects of these kinds have no namespace: %s", strings.Join(without, ", "))
		}
	}
	var required, optional []rule
	for _, k := range kinds {
		rules := rulesOf(k)
		if k.Optional {
			optional = append(optional, rules...)
		} else {
			required = append(required, rules...)
		}
	}
	kind := "ClusterRole"
	if o.Namespaced {
		kind = "Role"
	}
	own := []rule{
		{"The components.", o.Group, o.Resource, "", "[get, list, watch, update, patch]"},
		{"Their status.", o.Group, o.Resource + "/status", "", "[patch]"},
		{"What happens to them.", "events.k8s.io", "events", "", "[create, patch]"},
		{"Why a workload is not ready.", "", "pods", "", "[list]"},
		{"Revisions and large inventories, beside the components.", "", "secrets", "", "[get, list, create, patch, delete]"},
	}
	if !o.Namespaced {
		own = append(own, rule{"The uid of kube-system identifies the cluster; other namespaces may end.", "", "namespaces", "", "[get, list, watch]"})
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Kind == "CustomResourceDefinition" || k.Kind == "Namespace" }) {
		own = append(own, rule{"What a crash has left of the option TypeFence.", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "[list]"})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", o.Account, o.Namespace)
	o.role(&out, kind, o.Account, append(own, required...))
	o.role(&out, "Role", o.Account+"-own", []rule{
		{"The key of the digests.", "", "secrets", "", "[get, create]"},
		{"The leader election.", "coordination.k8s.io", "leases", "", "[get, create, update]"},
		{"What happens to it.", "", "events", "", "[create, patch]"},
	})
	if o.Namespaced {
		o.role(&out, "ClusterRole", o.Account+"-cluster", []rule{
			{"The uid of kube-system identifies the cluster; the option ClusterUID does without.", "", "namespaces", "[kube-system]", "[get]"},
		})
	}
	if len(optional) > 0 {
		out.WriteString("{{- if .Values.optionalRights }}\n")
		o.role(&out, kind, o.Account+"-optional", optional)
		out.WriteString("{{- end }}\n")
	}
	return out.String(), nil
}

// role writes a role and its binding.
func (o Operator) role(out *strings.Builder, kind, name string, rules []rule) {
	namespace := ""
	if kind == "Role" {
		namespace = "\n  namespace: " + o.Namespace
	}
	fmt.Fprintf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s%s\nrules:\n", kind, name, namespace)
	for _, r := range rules {
		out.WriteString(r.String())
	}
	fmt.Fprintf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata:\n  name: %s%s\n", kind, name, namespace)
	fmt.Fprintf(out, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\n", kind, name)
	fmt.Fprintf(out, "subjects:\n- {kind: ServiceAccount, name: %s, namespace: %q}\n", o.Account, o.Namespace)
}

// rulesOf returns the rules for the objects of a kind.
func rulesOf(k Kind) []rule {
	if k.Read {
		return []rule{{"A template looks it up: " + whereOf(k) + ".", k.Group, k.Resource, "", "[get, list]"}}
	}
	if k.Defined {
		return []rule{{k.Kind + ": objects of others keep the definition from being deleted.", k.Group, k.Resource, "", "[list]"}}
	}
	rules := []rule{{whyOf(k), k.Group, k.Resource, "", dependentVerbs}}
	if k.Group != "rbac.authorization.k8s.io" {
		return rules
	}
	role := "roles"
	if strings.HasPrefix(k.Kind, "Cluster") {
		role = "clusterroles"
	}
	if strings.HasSuffix(k.Kind, "Binding") {
		return append(rules, rule{"To bind roles with rights that the operator does not hold itself.", k.Group, "roles, clusterroles", "", "[bind]"})
	}
	return append(rules, rule{"To write roles with rights that the operator does not hold itself.", k.Group, role, "", "[escalate]"})
}

// whyOf returns what needs the kind.
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
