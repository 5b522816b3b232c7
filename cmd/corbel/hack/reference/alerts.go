// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// alert is an alert that is not about the reason of a component.
type alert struct {
	name, meaning, look, do string
}

// operatorAlerts have the names of alerts in cmd/corbel/internal/scaffold/templates/ops; test/ops compares them.
var operatorAlerts = []alert{
	{"OperatorDown", "No process reconciles the components: no replica runs, none is leader, or the metrics cannot be scraped. Dependent objects stay as they are.",
		"kubectl get pods,leases -A -l app.kubernetes.io/name=<operator>\nkubectl -n <namespace> logs deployment/<operator> --previous",
		"Correct the error in the log or in the events of the pods. If the pods run and one is leader, correct the scraping."},
	{"DependentsDrift", "Another client changed dependent objects more than 12 times in an hour, and the operator repaired each change.",
		"kubectl get events -A --field-selector reason=DriftRepaired\nkubectl get events -A --field-selector reason=FieldConflict",
		"The events name the client and the fields. Change the manifest, name the fields in the annotation ignore-fields, or stop the other client."},
	{"WritesFail", "The server refuses writes of dependent objects, or does not answer them. The label `class` has the [class of the failure](metrics.md#labels).",
		"kubectl get <components> -A -o wide",
		"The message of Ready names the object and the answer of the server. Correct the manifest (Invalid, Immutable), the admission policy or webhook (Denied) or the rights (Forbidden)."},
	{"OrphansFound", "Objects had the label and the annotation of a component, and were in no inventory. The operator adopts or removes them.",
		"kubectl get events -A --field-selector reason=OrphanFound",
		"Look for a second operator of the same name, and for a backup that was restored. If there is neither, report a bug."},
	{"RendersHeldBack", "The manifests of a component change with every rendering, although nothing that they are made of has changed. The operator keeps the last ones.",
		"kubectl -n <namespace> logs deployment/<operator> | grep 'held back'    # with the option --zap-log-level=debug",
		"Find the random value or the time in the chart or the generator, and report it as [a generated value](../howto-helm.md#values-that-are-generated-once)."},
	{"RequestsFail", "More than a tenth of the requests to API servers, including target clusters, fail.",
		"kubectl get --raw '/readyz?verbose'\nkubectl get apiservices",
		"Look at the API server, at etcd, and at webhooks."},
	{"ReconcilesSlow", "Every tenth reconcile takes more than a minute.",
		"kubectl -n <namespace> top pods",
		"The panel \"Time by part of the reconcile\" shows the slow part: execute and read are requests, render is the generator, hooks are those of the operator. Raise MaxConcurrentReconciles if components wait for each other."},
	{"Other", "The metrics do not name the reason of the component, because there are more than 64 different ones.",
		"kubectl get <components> -A -o wide", "Read the condition Ready."},
}

// alerts writes the section that alerts about the operator link to.
func (p *page) alerts() {
	p.line("\n## Alerts\n\nThe alerts in the folder `ops` of a project of `corbel init` lead to this page, see [Operations](../howto-operations.md). An alert about components leads to the section of the reason.\n" +
		"This command finds the components:\n\n" +
		"`kubectl get shops -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.status.conditions[?(@.type==\"Ready\")].reason}: {.status.conditions[?(@.type==\"Ready\")].message}{\"\\n\"}{end}'`")
	for _, a := range operatorAlerts {
		p.line("\n### %s\n\n%s\n", a.name, a.meaning)
		for line := range strings.SplitSeq(a.look, "\n") {
			p.line("- `%s`", line)
		}
		p.line("\n%s", a.do)
	}
}
