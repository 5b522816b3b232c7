// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/types"
)

const serviceAccountPrefix = "system:serviceaccount:"

// ServiceAccountUser returns the user name of a service account. An empty namespace is filled
// in by CompleteUser.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// CompleteUser fills in the namespace of a service account that is impersonated. Its groups
// are derived from its name by the API server.
func CompleteUser(access target.Access, namespace string) (target.Access, error) {
	account, ok := strings.CutPrefix(access.User, serviceAccountPrefix)
	if !ok {
		return access, nil
	}
	own, name, ok := strings.Cut(account, ":")
	if !ok || name == "" {
		return target.Access{}, fmt.Errorf("user %q is no service account: must have the form %s<namespace>:<name>", access.User, serviceAccountPrefix)
	}
	if own == "" {
		own = namespace
	}
	if own == "" {
		return target.Access{}, fmt.Errorf("service account %q: a component without a namespace must name the namespace of the service account", name)
	}
	if problems := validation.IsDNS1123Label(own); len(problems) > 0 {
		return target.Access{}, fmt.Errorf("service account %q: namespace %q: %s", name, own, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return target.Access{}, fmt.Errorf("service account %q: %s", name, strings.Join(problems, ", "))
	}
	access.User = ServiceAccountUser(own, name)
	return access, nil
}

// UserOf names the user of an access in messages.
func UserOf(access target.Access) string {
	switch {
	case access.User != "":
		return access.User
	case access.Kubeconfig != nil:
		return "the identity of the kubeconfig"
	default:
		return "the operator"
	}
}

// MissingServiceAccount returns a sentence if an impersonated service account does not exist: the
// server grants the rights of other accounts of its namespace, and does not report that. It is
// empty if the account exists, or if the reader may not know.
func MissingServiceAccount(ctx context.Context, reader client.Reader, access target.Access) string {
	account, ok := strings.CutPrefix(access.User, serviceAccountPrefix)
	if !ok || access.Kubeconfig != nil {
		return ""
	}
	namespace, name, _ := strings.Cut(account, ":")
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); !types.IsGone(err, name) {
		return ""
	}
	return fmt.Sprintf("ServiceAccount %s/%s, which is impersonated, does not exist", namespace, name)
}

// ExplainImpersonation adds to an error which user must be impersonated, and by which rules, if the
// server forbids that. It does so for any request, also those of a generator.
func ExplainImpersonation(access target.Access, err error) error {
	if access.User == "" || !strings.Contains(err.Error(), "cannot impersonate") {
		return err
	}
	rule := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"impersonate"}}
	}
	var missing rights.Missing
	var clusterWide []rbacv1.PolicyRule
	user := "user " + access.User
	if account, ok := strings.CutPrefix(access.User, serviceAccountPrefix); ok {
		namespace, name, _ := strings.Cut(account, ":")
		user = fmt.Sprintf("ServiceAccount %s/%s, which the component names (serviceAccountName) or the option DefaultServiceAccount", namespace, name)
		missing = rights.Missing{{Namespace: namespace, Rules: []rbacv1.PolicyRule{rule("serviceaccounts", name)}}}
	} else {
		clusterWide = append(clusterWide, rule("users", access.User))
	}
	if len(access.Groups) > 0 {
		clusterWide = append(clusterWide, rule("groups", access.Groups...))
	}
	if len(clusterWide) > 0 {
		missing = append(missing, rights.Missing{{Rules: clusterWide}}...)
	}
	by := UserOf(target.Access{Kubeconfig: access.Kubeconfig})
	return verdict.MessageError{Err: err, Message: fmt.Sprintf("%s cannot impersonate %s; it lacks rights: %s; %s", by, user, missing, err)}
}
