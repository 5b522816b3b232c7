// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/clients"
	"github.com/corbel-run/corbel/pkg/cluster"
)

func TestAnIdentityHasOneTarget(t *testing.T) {
	pool := clients.New(&rest.Config{Host: "http://127.0.0.1:1"}, cluster.Options{})
	defer pool.Close()
	get := func(user string, groups ...string) cluster.Target {
		t.Helper()
		target, err := pool.Impersonated(user, groups)
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	local, err := pool.Local()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pool.Local(); again != local || err != nil {
		t.Errorf("got another target, %v", err)
	}
	if get("jane", "a", "b") != get("jane", "b", "a", "b") {
		t.Error("the order of groups makes a difference")
	}
	different := []cluster.Target{local, get("jane"), get("jane", "a"), get("jane", "b"), get("jane", "a", "b"), get("jane", `a""b`), get(`jane""a`), get("janea")}
	for i, target := range different {
		for _, other := range different[:i] {
			if target == other {
				t.Errorf("identity %d shares its target with another", i)
			}
		}
	}
}

func TestTheImpersonatedIdentityIsSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		who := request.Header.Get("Impersonate-User") + " " + strings.Join(request.Header.Values("Impersonate-Group"), ",")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"` + who + `"}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	pool := clients.New(config, cluster.Options{})
	defer pool.Close()

	jane, err := pool.Impersonated("jane", []string{"b", "a"})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := jane.UID(t.Context()); who != "jane a,b" || err != nil {
		t.Errorf("got %q, %v", who, err)
	}
	local, err := pool.Local()
	if err != nil {
		t.Fatal(err)
	}
	if who, err := local.UID(t.Context()); who != " " || err != nil {
		t.Errorf("got %q, %v", who, err)
	}
	if config.Impersonate.UserName != "" {
		t.Error("the configuration was changed")
	}
}

func TestMistakesAreErrorsAndNeverTheLocalIdentity(t *testing.T) {
	pool := clients.New(&rest.Config{Host: "http://127.0.0.1:1"}, cluster.Options{})
	if target, err := pool.Impersonated("", []string{"system:masters"}); err == nil || target != nil {
		t.Errorf("got %v, %v", target, err)
	}
	if target, err := clients.New(nil, cluster.Options{}).Local(); err == nil || target != nil {
		t.Errorf("got %v, %v", target, err)
	}
	pool.Close()
	if _, err := pool.Local(); !errors.Is(err, clients.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestTargetsAreAskedForByManyAtOnce(t *testing.T) {
	pool := clients.New(&rest.Config{Host: "http://127.0.0.1:1"}, cluster.Options{})
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			if i == 25 {
				pool.Close()
			}
			if _, err := pool.Impersonated([]string{"jane", "john"}[i%2], nil); err != nil && !errors.Is(err, clients.ErrClosed) {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
