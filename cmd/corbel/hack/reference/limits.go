// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

type limitGroup struct {
	title    string
	packages []string
}

// limitGroups are the sections of the page of limits: the packages in each.
var limitGroups = []limitGroup{
	{"Components", []string{
		"pkg/component", "pkg/component/internal/references", "pkg/component/internal/verdict", "pkg/component/internal/rendering", "pkg/component/internal/telemetry",
		"pkg/result", "internal/session", "internal/backoff", "internal/lease", "pkg/reconciler", "pkg/reconciler/internal/policy", "pkg/reconciler/internal/plan",
	}},
	{"Objects and inventories", []string{"pkg/manifests", "pkg/reconciler/internal/desired", "internal/inventory", "api/v1alpha1", "pkg/reconciler/internal/execute", "pkg/reconciler/internal/observe"}},
	{"History", []string{"internal/revisions"}},
	{"Previews", []string{"internal/preview"}},
	{"Helm releases", []string{"internal/helmrelease", "cmd/corbel/internal/helmrecord"}},
	{"Files and generators", []string{
		"pkg/manifests/internal/files", "internal/document", "pkg/manifests/internal/templates", "pkg/manifests/internal/lookup",
		"pkg/manifests/helm", "pkg/manifests/gotemplate", "pkg/manifests/kustomize", "pkg/manifests/krm", "pkg/manifests/transform",
	}},
	{"Expressions", []string{"pkg/status"}},
	{"Target clusters", []string{"internal/kubeconfig", "internal/target", "internal/cluster", "pkg/component/internal/targets"}},
	{"Messages, events and metrics", []string{"pkg/conditions", "internal/events", "internal/metrics"}},
	{"Other controllers", []string{"pkg/changes", "pkg/lifecycle/external", "pkg/steps"}},
	{"The page", []string{"cmd/corbel/ui"}},
}

// limits writes the page of the limits.
func (r *reference) limits() (*page, error) {
	p := newPage("Limits", "Limits that are constants of the code. What can be changed is in [options.md](options.md) and [spec.md](spec.md).")
	all := r.all(func(c *constantOf) bool { return c.comment.values[keyLimit] != "" })
	for _, g := range limitGroups {
		p.line("\n## %s", g.title)
		p.line("")
		for _, times := range []bool{true, false} {
			for _, folder := range g.packages {
				for _, c := range all {
					if c.pkg.path == folder && c.duration == times {
						p.item(c.number(), c.comment.value(keyLimit))
					}
				}
			}
		}
	}
	for _, c := range all {
		if !slices.ContainsFunc(limitGroups, func(g limitGroup) bool { return slices.Contains(g.packages, c.pkg.path) }) {
			r.lack("the limits of package %s have no section in cmd/corbel/hack/reference/limits.go", c.pkg.path)
		}
	}
	return p, nil
}
