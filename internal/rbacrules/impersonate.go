// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"fmt"
	"strings"
)

// discoveryPaths are read as the account: which types the server has.
const discoveryPaths = `"/api", "/api/*", "/apis", "/apis/*", "/version"`

// onAccounts returns the rules that allow to do this as a service account that may do it, on a
// server with constrained impersonation. Verbs that the server checks for the account only, such as
// escalate, are left out.
func onAccounts(rules []rule) []rule {
	var all []rule
	for _, r := range rules {
		var verbs []string
		for _, verb := range strings.Split(r.verbs, ", ") {
			if verb != "escalate" && verb != "bind" {
				verbs = append(verbs, "impersonate-on:serviceaccount:"+verb)
			}
		}
		if len(verbs) > 0 {
			r.verbs = strings.Join(verbs, ", ")
			all = append(all, r)
		}
	}
	return all
}

// impersonation writes the rights of the accounts that write the objects of components, and the
// rights that the operator needs to act as them.
//
// In its own namespace an operator impersonates one account, the rights of which are in that
// namespace and the same: there the ordinary rule is no larger, and needs no ClusterRole.
func (o Operator) impersonation(out *strings.Builder, kind string, required, optional []rule) {
	ordinary := rule{"To act as the accounts that write the objects of components.", "", "serviceaccounts", o.Deployer, "impersonate"}
	name := o.Account + "-impersonate"
	if o.Namespaced {
		o.role(out, kind, name, []rule{ordinary})
	} else {
		fmt.Fprintf(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\nrules:\n", kind, name)
		fmt.Fprintf(out, "{{- if %s }}\n", constrained)
		out.WriteString(rule{"To act as the accounts that write the objects of components, for what follows only.", "authentication.k8s.io", "serviceaccounts", o.Deployer, "impersonate:serviceaccount"}.String())
		fmt.Fprintf(out, "# Which types the server has.\n- {nonResourceURLs: [%s], verbs: [\"impersonate-on:serviceaccount:get\"]}\n", discoveryPaths)
		for _, r := range onAccounts(required) {
			out.WriteString(r.String())
		}
		if len(optional) > 0 {
			out.WriteString("{{- if .Values.optionalRights }}\n")
			for _, r := range onAccounts(optional) {
				out.WriteString(r.String())
			}
			out.WriteString("{{- end }}\n")
		}
		fmt.Fprintf(out, "{{- else }}\n%s{{- end }}\n", ordinary)
		binding(out, kind+"Binding", name, "", kind, name, o.Account, o.Namespace)
	}
	o.deployers(out, kind, required, optional)
}

// deployers writes the role of the accounts that write objects, and the accounts in the namespaces
// that the values name, or in the operator's.
func (o Operator) deployers(out *strings.Builder, kind string, required, optional []rule) {
	role := o.Account + "-" + o.Deployer
	o.rules(out, kind, role, required)
	if len(optional) > 0 {
		out.WriteString("{{- if .Values.optionalRights }}\n")
		for _, r := range optional {
			out.WriteString(r.String())
		}
		out.WriteString("{{- end }}\n")
	}
	namespace := "{{ . }}"
	if o.Namespaced {
		namespace = o.Namespace
	} else {
		out.WriteString("{{- range .Values.deployers }}\n")
	}
	fmt.Fprintf(out, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: %s\n  namespace: %s\n", o.Deployer, namespace)
	binding(out, "RoleBinding", role, namespace, kind, role, o.Deployer, namespace)
	if !o.Namespaced {
		out.WriteString("{{- end }}\n")
	}
}
