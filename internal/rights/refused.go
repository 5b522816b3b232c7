// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refusal matches the text by which every API server names a missing right, whatever authorizer it asks.
// A text that was cut off before its end names no right.
var refusal = regexp.MustCompile(`User "[^"]*" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)" (?:in the namespace "([^"]+)"|at the cluster scope)`)

// tooMuch is part of the answer to a user who writes a role or a binding with rules that the user does not hold.
const tooMuch = "is attempting to grant RBAC permissions not currently held"

// Refused returns the right that the message of an answer 403 names; written is the object that the
// request wrote, nil for a read. There is none for a quota, or if the user may not impersonate another
// one: then the right is one of the user who impersonates.
//
// The server checks escalate with the name in the request, which a creation does not have, so the rule
// for it has no name. It checks bind with the name of the role.
func Refused(message string, written *unstructured.Unstructured) (Right, bool) {
	if found := refusal.FindStringSubmatch(message); found != nil {
		right := Right{Verb: found[1], Resource: found[2], Group: found[3], Namespace: found[4]}
		return right, right.Verb != "impersonate"
	}
	if written == nil || !strings.Contains(message, tooMuch) {
		return Right{}, false
	}
	right, kind := Right{Group: rbacv1.GroupName, Namespace: written.GetNamespace(), Verb: "escalate"}, written.GetKind()
	if strings.HasSuffix(kind, "Binding") {
		right.Verb = "bind"
		kind, _, _ = unstructured.NestedString(written.Object, "roleRef", "kind")
		right.Name, _, _ = unstructured.NestedString(written.Object, "roleRef", "name")
	}
	right.Resource = strings.ToLower(kind) + "s"
	return right, true
}
