// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// fetchVersion returns the types of a version by kind. The result is nil if the
// server proves that it does not serve the version: it answers 404 for the
// version and its list of groups, which only an API server can give, agrees.
func (t *Types) fetchVersion(ctx context.Context, gv schema.GroupVersion) (map[string]Resource, error) {
	list := &metav1.APIResourceList{}
	err := t.discover(ctx, list, groupVersionPath(gv)...)
	switch {
	case apierrors.IsNotFound(err):
		return nil, t.confirmAbsence(ctx, gv)
	case err != nil:
		return nil, fmt.Errorf("ask the server for the types of %s: %w", gv, err)
	case list.Kind != "APIResourceList" || list.GroupVersion != gv.String():
		return nil, protocolError("ask the server for the types of %s: it answered with %q of %q", gv, list.Kind, list.GroupVersion)
	}
	return readResources(gv, list.APIResources), nil
}

func readResources(gv schema.GroupVersion, listed []metav1.APIResource) map[string]Resource {
	kinds := map[string]Resource{}
	subresources := map[string][]string{}
	for _, r := range listed {
		if resource, subresource, ok := strings.Cut(r.Name, "/"); ok {
			subresources[resource] = append(subresources[resource], subresource)
		}
	}
	for _, r := range listed {
		if strings.Contains(r.Name, "/") {
			continue
		}
		if known, ok := kinds[r.Kind]; ok && len(known.Verbs) >= len(r.Verbs) {
			continue // two resources of one kind: the resource that can do more is the real one
		}
		kinds[r.Kind] = Resource{
			GVR: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced,
			Verbs: r.Verbs, Subresources: subresources[r.Name],
		}
	}
	return kinds
}

func (t *Types) confirmAbsence(ctx context.Context, gv schema.GroupVersion) error {
	groups, err := t.fetchGroups(ctx, gv.Group == "")
	if err != nil {
		return err
	}
	if slices.Contains(groups[gv.Group], gv.Version) {
		return &PendingTypesError{Group: gv.Group, Version: gv.Version}
	}
	return nil
}

// fetchGroups returns the versions of all groups, or of the core group. The
// preferred version of a group comes first.
func (t *Types) fetchGroups(ctx context.Context, core bool) (map[string][]string, error) {
	if core {
		versions := &metav1.APIVersions{}
		if err := t.discover(ctx, versions, "api"); err != nil {
			return nil, fmt.Errorf("ask the server for its versions: %w", err)
		}
		if versions.Kind != "APIVersions" || len(versions.Versions) == 0 {
			return nil, protocolError("ask the server for its versions: it answered with %q of %d versions", versions.Kind, len(versions.Versions))
		}
		return map[string][]string{"": versions.Versions}, nil
	}
	list := &metav1.APIGroupList{}
	if err := t.discover(ctx, list, "apis"); err != nil {
		return nil, fmt.Errorf("ask the server for its groups: %w", err)
	}
	if list.Kind != "APIGroupList" || len(list.Groups) == 0 {
		return nil, protocolError("ask the server for its groups: it answered with %q of %d groups", list.Kind, len(list.Groups))
	}
	groups := map[string][]string{}
	for _, group := range list.Groups {
		groups[group.Name] = versionsOf(group)
	}
	return groups, nil
}

func versionsOf(group metav1.APIGroup) []string {
	versions := make([]string, 0, len(group.Versions))
	for _, v := range group.Versions {
		if v.Version == group.PreferredVersion.Version {
			versions = slices.Insert(versions, 0, v.Version)
		} else {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// discover reads a document of the server's discovery.
func (t *Types) discover(ctx context.Context, into any, path ...string) error {
	body, err := do(ctx, t.objects.rest.Verb(http.MethodGet).AbsPath(path...), t.timeout)
	if err != nil {
		return err
	}
	if err := utiljson.Unmarshal(body, into); err != nil {
		return protocolError("the answer is not JSON of %d bytes", len(body))
	}
	return nil
}

// Served describes a server.
type Served struct {
	// Version is the version of the server, such as "v1.33.1".
	Version string
	// APIVersions are the versions of groups and the kinds in them, such as
	// "apps/v1" and "apps/v1/Deployment", in alphabetical order.
	APIVersions []string
}

// servedFor is how long an answer of Served is good.
const servedFor = 30 * time.Second

// servedMemory is the cached answer of Served.
type servedMemory struct {
	answer Served
	at     time.Time
	// kinds are the last known kinds by version of a group.
	kinds map[string][]string
}

// aggregated accepts everything in one document.
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

// LastServed returns the last answer of Served, however old it is, and sends no request. It
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
// with kinds that are not known at the moment has none.
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
			// An unreadable version does not hide the readable ones.
			if served, err := t.fetchVersion(ctx, gv); err == nil {
				kinds[gv.String()] = slices.Collect(maps.Keys(served))
			}
		}
	}
	return nil
}

// Namespaced returns all namespaced types, each in the server's preferred version, ordered by
// group and kind. Groups with types that the server cannot list, because their aggregated server
// is not available, are returned as unreadable, with the reason: a caller that wants to know
// everything in a namespace has to reckon with them.
func (t *Types) Namespaced(ctx context.Context) (readable []Resource, unreadable map[schema.GroupVersion]error, err error) {
	limited, cancel := context.WithTimeout(ctx, 2*t.timeout)
	defer cancel()
	client, err := t.objects.boundTo(limited)
	if err != nil {
		return nil, nil, err
	}
	// The variant of this method that takes a context is not in all supported versions of client-go.
	lists, err := discovery.NewDiscoveryClient(client).ServerPreferredNamespacedResources()
	unreadable, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if partial && ctx.Err() != nil { // the caller ended the request, so the error is not about the server
		err, partial = ctx.Err(), false
	}
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("ask the server for all its types: %w", err)
	}
	for _, list := range lists {
		resources, err := readPreferred(list)
		if err != nil {
			return nil, nil, err
		}
		readable = append(readable, resources...)
	}
	slices.SortFunc(readable, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return readable, unreadable, nil
}

func readPreferred(list *metav1.APIResourceList) ([]Resource, error) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return nil, protocolError("the server lists types of %q, which is no version of a group", list.GroupVersion)
	}
	var resources []Resource
	for _, r := range readResources(gv, list.APIResources) {
		if r.Namespaced {
			resources = append(resources, r)
		}
	}
	return resources, nil
}

// Matching returns the types that match a pattern, each in one version, as the
// server serves them at this moment: types come and go at run time. Versions of
// matching groups with types that the server cannot list, because an aggregated
// server is not available, are returned as unknown if a matching type may be in
// them. Groups that do not match are not asked for.
func (t *Types) Matching(ctx context.Context, pattern v1alpha1.TypeInfo) (matching []Resource, unknown []schema.GroupVersion, err error) {
	groups, err := t.matchingGroups(ctx, pattern.Group)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		found := map[string]Resource{} // by kind
		var silent []schema.GroupVersion
		for _, version := range groups[group] {
			gv := schema.GroupVersion{Group: group, Version: version}
			kinds, err := t.Kinds(ctx, gv)
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if err != nil {
				silent = append(silent, gv)
				continue
			}
			for kind, resource := range kinds {
				if _, known := found[kind]; !known && pattern.Matches(group, kind) {
					found[kind] = resource
				}
			}
		}
		if _, known := found[pattern.Kind]; !known {
			unknown = append(unknown, silent...)
		}
		matching = append(matching, slices.SortedFunc(maps.Values(found), func(a, b Resource) int {
			return cmp.Compare(a.Kind, b.Kind)
		})...)
	}
	return matching, unknown, nil
}

// matchingGroups returns the versions of the groups that match.
func (t *Types) matchingGroups(ctx context.Context, pattern string) (map[string][]string, error) {
	if !strings.Contains(pattern, "*") {
		versions, err := t.Versions(ctx, pattern)
		return map[string][]string{pattern: versions}, err
	}
	groups, err := t.fetchGroups(ctx, false)
	if err != nil {
		return nil, err
	}
	if pattern == "*" {
		core, err := t.fetchGroups(ctx, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(groups, core)
	}
	any := v1alpha1.TypeInfo{Group: pattern, Kind: "*"}
	maps.DeleteFunc(groups, func(group string, _ []string) bool { return !any.Matches(group, "") })
	return groups, nil
}
