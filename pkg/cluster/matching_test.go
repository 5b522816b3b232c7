// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
)

// serveType creates a definition of kind Foo in the group and waits until it is served.
func serveType(t *testing.T, target cluster.Target, group string) {
	t.Helper()
	create(t, target, definition(group, "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]"))
	eventually(t, "the type is served", func() bool {
		found, _, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: group, Kind: "Foo"})
		return err == nil && len(found) == 1
	})
}

// breakGroup creates an APIService whose server does not exist, and waits until the server lists it.
func breakGroup(t *testing.T, target cluster.Target, group string) {
	t.Helper()
	create(t, target, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}`)
	eventually(t, "the group is listed", func() bool {
		versions, err := target.Types().Versions(t.Context(), group)
		return err == nil && len(versions) == 1
	})
}

func TestAPatternCoversTheTypesThatAreServedNow(t *testing.T) {
	target := real(t)
	suffix := unique("s") + ".example.com"
	serveType(t, target, "a."+suffix)
	serveType(t, target, "b."+suffix)
	breakGroup(t, target, "broken."+suffix)
	breakGroup(t, target, unique("elsewhere")+".example.org")

	for name, tc := range map[string]struct{ pattern, matching, unknown string }{
		"a type":                     {"a." + suffix + "/Foo", "foos.a." + suffix, ""},
		"a kind that nobody has":     {"a." + suffix + "/Bar", "", ""},
		"all kinds of a group":       {"a." + suffix + "/*", "foos.a." + suffix, ""},
		"a group that nobody has":    {"c." + suffix + "/*", "", ""},
		"all groups below a name":    {"*." + suffix + "/*", "foos.a." + suffix + " foos.b." + suffix, "broken." + suffix + "/v1"},
		"a kind in all groups below": {"*." + suffix + "/Foo", "foos.a." + suffix + " foos.b." + suffix, "broken." + suffix + "/v1"},
		"the broken group":           {"broken." + suffix + "/Foo", "", "broken." + suffix + "/v1"},
		"another suffix":             {"*.not." + suffix + "/*", "", ""},
		"the core group":             {"/ConfigMap", "configmaps", ""},
	} {
		t.Run(name, func(t *testing.T) {
			group, kind, _ := strings.Cut(tc.pattern, "/")
			found, unknown, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: group, Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, resource := range found {
				names = append(names, resource.GVR.GroupResource().String())
			}
			if got := strings.Join(names, " "); got != tc.matching {
				t.Errorf("got %q, want %q", got, tc.matching)
			}
			if got := strings.Trim(fmt.Sprint(unknown), "[]"); got != tc.unknown {
				t.Errorf("unknown: got %q, want %q", got, tc.unknown)
			}
		})
	}
	everything, _, err := target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: "*", Kind: "*"})
	if err != nil || len(everything) < 50 {
		t.Errorf("everything: got %d types, %v", len(everything), err)
	}
}
