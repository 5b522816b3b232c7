// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
)

// runbookAlert is an alert that is not about the reason of a component.
type runbookAlert struct {
	name, meaning, look, do string
}

// runbookAlerts have the names of alerts in cmd/corbel/internal/scaffold/templates/ops; test/ops compares them.
var runbookAlerts = []runbookAlert{
	{"OperatorDown", "No process reconciles the components: no replica runs, none has become leader, or the metrics cannot be scraped. Dependent objects go on as they are; drift is not repaired, and changes and deletions wait.",
		"kubectl get pods,leases -A -l app.kubernetes.io/name=<operator>\nkubectl -n <namespace> logs deployment/<operator> --previous",
		"correct what the log and the events of the pods say. If the pods run and one is leader, correct the scraping."},
	{"DependentsDrift", "Dependent objects were changed by another client more than 12 times in an hour, and each time it was undone.",
		"kubectl get events -A --field-selector reason=DriftRepaired\nkubectl get events -A --field-selector reason=FieldConflict",
		"the events name the client and the fields. Let one of the two own them: change the manifest, name the fields in the annotation ignore-fields, or stop the other client."},
	{"WritesFail", "The server refuses writes of dependent objects, or does not answer them. The label `class` says why; [metrics.md](reference/metrics.md#labels) lists the classes.",
		"kubectl get <components> -A -o wide",
		"the message of condition Ready names the object and the answer of the server: correct the manifest (Invalid, Immutable), the admission policy or webhook (Denied) or the rights (Forbidden)."},
	{"OrphansFound", "Objects had the label and the annotation of a component, and were in no inventory. They are dependents from now on, or are removed.",
		"kubectl get events -A --field-selector reason=OrphanFound",
		"look for a second operator of the same name, and for a backup that was restored. If there is neither, report it."},
	{"RendersHeldBack", "The manifests of a component change with every rendering, although nothing that they are made of has changed. The last ones are kept.",
		"kubectl -n <namespace> logs deployment/<operator> | grep 'held back'    # with the option --zap-log-level=debug",
		"find the function that makes random values, or the time, in the chart or the generator, and let it report them, see [Values that are generated once](howto-helm.md#values-that-are-generated-once)."},
	{"RequestsFail", "More than a tenth of the requests to API servers are answered by an error of the server, or not at all.",
		"kubectl get --raw '/readyz?verbose'\nkubectl get apiservices",
		"look at the API server, at etcd, and at the webhooks that the requests pass. Requests to target clusters count, too. The operator tries again by itself."},
	{"ReconcilesSlow", "Every tenth reconcile takes more than a minute.",
		"kubectl -n <namespace> top pods",
		"the panel \"Time by part of the reconcile\" of the dashboard says where the time goes: execute and read are requests, render is the generator, hooks are those of the operator. Raise MaxConcurrentReconciles if components wait for each other."},
	{"Other", "The reason of a component that the metrics do not name: a hook or a generator has made up more than 64 different ones.",
		"kubectl get <components> -A -o wide", "the condition Ready has the reason and the message."},
}

// runbook writes the page that alerts link to.
func (r *reference) runbook() (*page, error) {
	p := newPage("Runbook", "What to do about an alert of the folder `ops` of a project of `corbel init`, see [Operations](howto-operations.md). An alert about components links to\n"+
		"the section of their reason. This finds them, with `shops` for your components:\n\n"+
		"`kubectl get shops -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.status.conditions[?(@.type==\"Ready\")].reason}: {.status.conditions[?(@.type==\"Ready\")].message}{\"\\n\"}{end}'`\n\n"+
		"The message of condition Ready names the object that is in the way. `kubectl describe` shows the events, [conditions.md](reference/conditions.md) the conditions of each reason.")
	p.line("\n## Alerts about the operator")
	for _, alert := range runbookAlerts {
		p.line("\n### %s\n\n%s\n", alert.name, alert.meaning)
		for line := range strings.SplitSeq(alert.look, "\n") {
			p.line("- `%s`", line)
		}
		p.line("\n%s", capitalized(alert.do))
	}
	p.line("\n## Reasons of components")
	for _, c := range r.conditionReasons() {
		p.line("\n### %s\n\n%s\n", c.text(), strings.Join(c.comment.paragraphsAbout(c.name, c.text()), "\n\n"))
		p.line("What to do: %s", c.comment.value(keyWhatToDo))
	}
	return p, nil
}
