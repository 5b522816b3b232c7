// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/env"
)

const (
	readRole    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: read}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]}"
	readBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: read},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]}`
)

func TestAnIdentityWithRightsInItsNamespaceWatchesItAndGoesOnWithoutThem(t *testing.T) {
	environment := env.Shared(t)
	tenant, err := environment.ConfigFor("tenant")
	if err != nil {
		t.Fatal(err)
	}
	l := onServer(t, environment.Config(), tenant, Options{Retry: time.Second})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.keep(maps)
	if _, known, watched := l.store.Look(maps, "one"); known || watched {
		t.Errorf("without rights: %t, %t", known, watched)
	}

	l.create(readRole)
	binding := l.create(readBinding)
	l.sees(maps, "one", "first")
	if sent := l.requests.take(); slices.ContainsFunc(sent, func(request string) bool { return request[:4] == "list" }) {
		t.Errorf("a list although watches begin with one: %q", sent)
	}
	l.patch(maps, "one", `{"data":{"text":"second"}}`)
	l.hears("a: one Content")

	bindings := l.place("rbac.authorization.k8s.io", "v1", "RoleBinding")
	l.remove(bindings, binding)
	l.requests.take()
	l.eventually("the watch is not believed any more", func() bool {
		l.requests.cut()
		_, _, watched := l.store.Look(maps, "one")
		return !watched
	})
	l.patch(maps, "one", `{"data":{"text":"third"}}`)
	l.create(readBinding)
	l.sees(maps, "one", "third")
}

func TestAnAPIServerThatComesBackIsWatchedAgain(t *testing.T) {
	environment := env.New(t, env.Options{})
	l := onServer(t, environment.Config(), environment.Config(), Options{Stale: time.Second})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.configMap("gone", "first")
	l.keep(maps)
	l.sees(maps, "one", "first")
	if err := environment.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	l.eventually("it is not believed any more", func() bool {
		_, _, watched := l.store.Look(maps, "one")
		return !watched
	})
	if err := environment.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.sees(maps, "one", "first")
	l.patch(maps, "one", `{"data":{"text":"second"}}`)
	l.sees(maps, "one", "second")
	l.hears("a: one Content")
}
