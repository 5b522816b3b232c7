// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"
)

// Served is what a server is and offers.
type Served struct {
	// Version is that of the server, such as "v1.33.1".
	Version string
	// APIVersions are the versions of groups and the kinds in them, such as
	// "apps/v1" and "apps/v1/Deployment", in alphabetical order.
	APIVersions []string
}

// servedFor is how long an answer of Served is good.
const servedFor = 30 * time.Second

// servedMemory is what Served learned.
type servedMemory struct {
	answer Served
	at     time.Time
	// kinds are the last known kinds by version of a group.
	kinds map[string][]string
}

// aggregated asks for everything in one document.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// Served returns the version of the server and all that it serves. An API that
// another server stands behind is listed also while that server is down, with
// the kinds that were known before. The answer may be half a minute old.
func (t *Types) Served(ctx context.Context) (Served, error) {
	return shared(ctx, t, "served", func(ctx context.Context) (Served, error) {
		t.lock.RLock()
		memory := t.memory
		t.lock.RUnlock()
		if !memory.at.IsZero() && time.Since(memory.at) < servedFor {
			return memory.answer.clone(), nil
		}
		info := &version.Info{}
		if err := t.discover(ctx, info, "version"); err != nil {
			return Served{}, err
		}
		kinds := map[string][]string{}
		for _, root := range []string{"api", "apis"} {
			if err := t.addKinds(ctx, root, kinds); err != nil {
				return Served{}, err
			}
		}
		memory = memory.renewed(info.GitVersion, kinds)
		t.lock.Lock()
		t.memory = memory
		t.lock.Unlock()
		return memory.answer.clone(), nil
	})
}

// LastServed returns the last answer of Served, however old it is, and asks nothing. It
// reports whether there is one.
func (t *Types) LastServed() (last Served, known bool) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	return t.memory.answer.clone(), !t.memory.at.IsZero()
}

func (s Served) clone() Served {
	s.APIVersions = slices.Clone(s.APIVersions)
	return s
}

// renewed remembers kinds of versions that have none at the moment.
func (m servedMemory) renewed(serverVersion string, kinds map[string][]string) servedMemory {
	all := map[string]bool{}
	for gv, list := range kinds {
		if len(list) == 0 {
			kinds[gv] = m.kinds[gv]
		}
		all[gv] = true
		for _, kind := range kinds[gv] {
			all[path.Join(gv, kind)] = true
		}
	}
	answer := Served{Version: serverVersion, APIVersions: slices.Sorted(maps.Keys(all))}
	return servedMemory{answer: answer, at: time.Now(), kinds: kinds}
}

// addKinds reads the versions of groups below a path, with their kinds. A version
// whose kinds are not known at the moment has none.
func (t *Types) addKinds(ctx context.Context, root string, kinds map[string][]string) error {
	request := t.objects.rest.Verb(http.MethodGet).AbsPath(root).SetHeader("Accept", aggregated)
	body, err := do(ctx, request, t.timeout)
	if err != nil {
		return err
	}
	list := &apidiscovery.APIGroupDiscoveryList{}
	if err := utiljson.Unmarshal(body, list); err != nil {
		return protocolError("the answer is not JSON of %d bytes", len(body))
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return t.addKindsSingly(ctx, root == "api", kinds)
	}
	for _, group := range list.Items {
		for _, v := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: v.Version}.String()
			kinds[gv] = kindsOf(v)
		}
	}
	return nil
}

func kindsOf(v apidiscovery.APIVersionDiscovery) []string {
	var kinds []string
	for _, resource := range v.Resources {
		if resource.ResponseKind != nil && resource.ResponseKind.Kind != "" {
			kinds = append(kinds, resource.ResponseKind.Kind)
		}
		for _, sub := range resource.Subresources {
			if sub.ResponseKind != nil && sub.ResponseKind.Kind != "" {
				kinds = append(kinds, sub.ResponseKind.Kind)
			}
		}
	}
	return kinds
}

// addKindsSingly is for servers that cannot answer in one document.
func (t *Types) addKindsSingly(ctx context.Context, core bool, kinds map[string][]string) error {
	groups, err := t.fetchGroups(ctx, core)
	if err != nil {
		return err
	}
	for group, versions := range groups {
		for _, v := range versions {
			gv := schema.GroupVersion{Group: group, Version: v}
			kinds[gv.String()] = nil
			// That one cannot be read is no reason to know nothing.
			if served, err := t.fetchVersion(ctx, gv); err == nil {
				kinds[gv.String()] = slices.Collect(maps.Keys(served))
			}
		}
	}
	return nil
}
