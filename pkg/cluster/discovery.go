// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
			continue // two resources of one kind: the one that can do more is the real one
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
