// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// identity is on whose behalf dependent objects are read and written. The zero
// value is the operator itself.
type identity struct {
	user   string
	groups []string
}

const serviceAccountPrefix = "system:serviceaccount:"

func serviceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// identityOf returns the identity that the component asks for, or else the
// reconciler's default service account in the namespace of the component.
func identityOf(c Component, s settings) (identity, error) {
	if own, ok := configurationOf[ClientConfiguration](c); ok && own.GetKubeConfig() != nil {
		return identity{}, errors.New("a kubeconfig for another cluster is not supported yet")
	}
	var id identity
	if own, ok := configurationOf[ImpersonationConfiguration](c); ok {
		id = identity{user: own.GetImpersonationUser(), groups: slices.Clone(own.GetImpersonationGroups())}
	}
	if id.user == "" && len(id.groups) > 0 {
		return identity{}, errors.New("groups cannot be impersonated without a user")
	}
	if id.user == "" && s.serviceAccount != "" {
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
	id.user = serviceAccountUser(own, name)
	return id, nil
}
