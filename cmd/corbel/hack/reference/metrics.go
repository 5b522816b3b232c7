// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/internal/metrics"
)

// labelHelp explains a label of metrics.
type labelHelp struct {
	// label is the name, and metric the only metric that has this meaning; empty: all.
	label, metric, help string
	// folder and typ are the type of the constants that are the values, or what the names of constants without a
	// type begin with; empty if there is none.
	folder, typ string
	// otherwise is written for a value that is empty.
	otherwise string
}

var labelHelps = []labelHelp{
	{label: "controller", help: "The name of the controller: kind and group of the component, such as `shop.shop.example.com`; the name of the reconciler if package reconciler is used without a component."},
	{label: "result", help: "What came out of the reconcile.", folder: "internal/metrics", typ: "Result"},
	{label: "phase", metric: "corbel_phase_duration_seconds", help: "The part of the reconcile.", folder: "internal/metrics", typ: "Phase"},
	{label: "phase", metric: "corbel_dependents", help: "The phase in the inventory; a large inventory that this process has not read yet, or could not write, counts as `Applied`.",
		folder: "internal/vocabulary", typ: "Phase", otherwise: "Applied"},
	{label: "state", help: "The state of the component.", folder: "api/v1alpha1", typ: "State"},
	{label: "reason", metric: "corbel_components", help: "The reason of condition Ready, see [reasons.md](reasons.md); `Other` for further ones."},
	{label: "verb", metric: "corbel_writes_total", help: "What the plan asked for.", folder: ofPlan, typ: "Verb"},
	{label: "verb", metric: "corbel_write_errors_total", help: "What the plan asked for; `dry-run` comes before the deletion of an object that is recreated.", folder: ofPlan, typ: "Verb"},
	{label: "reason", metric: "corbel_writes_total", help: "Why the plan asked for the write.", folder: ofPlan, typ: "Reason"},
	{label: "class", help: "Why the write failed.", folder: "pkg/reconciler/internal/execute", typ: "Class"},
	{label: "verb", metric: "corbel_requests_total", help: "The verb of the request: `read`, `watch`, `create`, `update`, `patch`, `apply`, `delete` or `other`."},
	{label: "code", help: "The class of the answer: `2xx`, `3xx`, `4xx` or `5xx`; `error` if there was none."},
}

const watched = `
## What to watch

[Alerts and a dashboard](../howto-operations.md) of a project of ` + "`corbel init`" + ` watch these metrics:

- ` + "`corbel_components{state=\"Error\"}`" + ` above zero for long: the condition Ready of these components says why.
- ` + "`rate(corbel_writes_total{reason=\"drifted\"}[1h])`" + ` that does not end: another client writes the same objects.
- ` + "`corbel_renders_held_back_total`" + ` that grows: a generator renders different manifests each time, and does not report it (` + "`manifests.NoteRandom`" + `).
- ` + "`corbel_orphans_found_total`" + ` that grows: something was orphaned; the events of the components name the objects.`

const profiles = `
## Memory and profiles

An operator keeps a record of a few hundred bytes of each dependent that it watches, and at most 128 MiB of compressed manifests; [performance](../evidence/performance.md#memory) has figures.

The profiles of Go show other uses of memory and time. Give the manager an address to serve the profiles:

<!-- code of pkg/component/example_guides_test.go -->
` + "```go" + `
manager, err := ctrl.NewManager(config, ctrl.Options{PprofBindAddress: "127.0.0.1:8082"})
` + "```" + `

Then ` + "`go tool pprof http://127.0.0.1:8082/debug/pprof/heap`" + ` shows the heap, ` + "`.../profile`" + ` the processor, and ` + "`.../goroutine`" + ` the goroutines.`

// metrics writes the page of the metrics.
func (r *reference) metrics() (*page, error) {
	p := newPage("Metrics", "Corbel registers these metrics with the registry of controller-runtime, so the metrics endpoint of the manager serves them. No label has the name or the namespace of an object.")
	p.line("%s", watched)
	p.line("\n## All metrics")
	p.table("name", "type", "labels", "meaning")
	for _, m := range metrics.Declared() {
		if m.Help == "" {
			r.lack("metric %s lacks a help", m.Name)
		}
		p.row(code(m.Name), m.Type, strings.Join(m.Labels, ", "), escape(m.Help))
		for _, label := range m.Labels {
			if !slices.ContainsFunc(labelHelps, func(h labelHelp) bool { return h.label == label && cmp.Or(h.metric, m.Name) == m.Name }) {
				r.lack("label %s of metric %s has no row in cmd/corbel/hack/reference/metrics.go", label, m.Name)
			}
		}
	}
	p.line("\n## Labels")
	p.table("label", "of", "meaning", "values")
	for _, h := range labelHelps {
		var values []string
		for _, c := range r.all(func(c *constantOf) bool {
			return h.typ != "" && c.pkg.path == h.folder && (c.typ == h.typ || c.typ == "" && strings.HasPrefix(c.name, h.typ))
		}) {
			values = append(values, code(cmp.Or(c.text(), h.otherwise)))
		}
		if h.typ != "" && len(values) == 0 {
			r.lack("type %s of package %s has no constants", h.typ, h.folder)
		}
		of := "all metrics that have it"
		if h.metric != "" {
			of = code(h.metric)
		}
		p.row(code(h.label), of, h.help, strings.Join(values, ", "))
	}
	p.line("%s", profiles)
	return p, nil
}
