// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// identity is on whose behalf dependent objects are read and written. The zero
// value is the operator itself.
type identity struct {
	// kubeConfig leads to another cluster; nil means the local one.
	kubeConfig []byte
	user       string
	groups     []string
}

// String names the identity in messages.
func (id identity) String() string {
	switch {
	case id.user != "":
		return id.user
	case id.kubeConfig != nil:
		return "the identity of the kubeconfig"
	default:
		return "the operator"
	}
}

const serviceAccountPrefix = "system:serviceaccount:"

func serviceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// identityOf returns the identity that the component asks for. By default that is
// the one of the kubeconfig or, in the local cluster, the reconciler's default
// service account in the namespace of the component.
func identityOf(c Component, s settings) (identity, error) {
	var id identity
	if own, ok := configurationOf[ClientConfiguration](c); ok {
		id.kubeConfig = own.GetKubeConfig()
	}
	if own, ok := configurationOf[ImpersonationConfiguration](c); ok {
		id.user, id.groups = own.GetImpersonationUser(), slices.Clone(own.GetImpersonationGroups())
	}
	if id.user == "" && len(id.groups) > 0 {
		return identity{}, errors.New("groups cannot be impersonated without a user")
	}
	// In another cluster the kubeconfig says who we are by default.
	if id.user == "" && s.serviceAccount != "" && id.kubeConfig == nil {
		id.user = serviceAccountUser("", s.serviceAccount)
	}
	return id.complete(c.GetNamespace())
}

// complete fills in the namespace of a service account. Its groups are derived
// from its name by the API server.
func (id identity) complete(namespace string) (identity, error) {
	account, ok := strings.CutPrefix(id.user, serviceAccountPrefix)
	if !ok {
		return id, nil
	}
	own, name, ok := strings.Cut(account, ":")
	if !ok || name == "" {
		return identity{}, fmt.Errorf("user %q is no service account: must have the form %s<namespace>:<name>", id.user, serviceAccountPrefix)
	}
	if own == "" {
		own = namespace
	}
	if own == "" {
		return identity{}, fmt.Errorf("service account %q: a component without a namespace must name the namespace of the service account", name)
	}
	if problems := validation.IsDNS1123Label(own); len(problems) > 0 {
		return identity{}, fmt.Errorf("service account %q: namespace %q: %s", name, own, strings.Join(problems, ", "))
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return identity{}, fmt.Errorf("service account %q: %s", name, strings.Join(problems, ", "))
	}
	id.user = serviceAccountUser(own, name)
	return id, nil
}
