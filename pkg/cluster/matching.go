// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Matching returns the types that match a pattern, each in one version, as the
// server serves them at this moment: types come and go at run time. Versions of
// matching groups whose types the server cannot tell, because an aggregated
// server is out of order, are returned as unknown if a matching type may be in
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
		versions, err := t.versions(ctx, pattern)
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
