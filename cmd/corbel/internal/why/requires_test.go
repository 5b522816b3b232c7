// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// requiring returns the facts of a Shop that requires objects. The message is that of its condition Ready.
func requiring(message string, required ...map[string]any) Facts {
	facts := shop("Retrying", message)
	var list []any
	for _, r := range required {
		list = append(list, r)
	}
	facts.Object.Object["spec"] = map[string]any{"requires": list}
	return facts
}

// store is a Database of a name.
func store(name string) map[string]any {
	return map[string]any{"apiVersion": "db.example.com/v1", "kind": "Database", "name": name, "inputs": map[string]any{"database.url": "url"}}
}

func storeQuestion(name string) Question {
	return Question{Verb: verbGet, Object: Object{"db.example.com", "v1", "Database", "market", name}}
}

// storeIs is a Database with this status of its condition Ready, and with further lines.
func storeIs(name, status, reason, message, spec, more string) string {
	return fmt.Sprintf(`{apiVersion: db.example.com/v1, kind: Database, metadata: {namespace: market, name: %s}, spec: {%s}, status: {reconciler: db.example.com, state: %s%s,
		conditions: [{type: Ready, status: %q, reason: %s, message: %q, lastTransitionTime: "2026-11-25T11:58:00Z"}]}}`, name, spec, reason, more, status, reason, message)
}

func TestARequirementIsFollowed(t *testing.T) {
	const waits = "requires Database market/main: not Ready: it starts"
	on := func(name string) string {
		return `requires: [{apiVersion: db.example.com/v1, kind: Database, name: ` + name + `}]`
	}
	const head = `Shop market/corner is not Ready since 3m (Processing, Retrying, 12/15)
└─ Shop market/corner: requires Database market/main: not Ready: it starts (since 3m)
   field: spec.requires[0]
`
	circle := func(names ...string) Facts {
		facts := requiring("requires Database market/"+names[0]+": not Ready: it waits", store(names[0]))
		for i, name := range names {
			next := names[(i+1)%len(names)]
			facts.with(storeQuestion(name), storeIs(name, "Unknown", "Retrying", "requires Database market/"+next+": not Ready: it waits", on(next), ""))
		}
		return facts
	}
	certificate := map[string]any{"apiVersion": "certs.example.com/v1", "kind": "Certificate", "name": "tls", "namespace": "certs", "condition": "self.status.phase == 'Issued'"}
	for _, test := range []struct {
		name  string
		facts Facts
		want  string
	}{
		{"an object that does not exist", requiring(waits, store("main")).without(storeQuestion("main")), head +
			"   └─ Database market/main: does not exist\nTry: kubectl -n market get database.db.example.com\n"},
		{"a component that waits for its Deployment",
			requiring(waits, store("main")).with(storeQuestion("main"), storeIs("main", "Unknown", "Processing", "Deployment market/web: 0 of 1 replicas ready", "", "")).
				with(get("Deployment", "market", "web"), web).with(list("Pod", "market", "app=web", ""), podOf+`{containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}`).
				with(get("Secret", "market", "db"), `{data: {url: x}}`),
			head + `   └─ Database market/main: condition Ready is Unknown: Processing: Deployment market/web: 0 of 1 replicas ready
      └─ Deployment market/web: 0 of 1 replicas ready
         └─ Pod market/web-1: CrashLoopBackOff (exit code 1), 4 restarts
Try: kubectl -n market logs web-1 -c app --previous
`},
		{"a component that is suspended", requiring(waits, store("main")).with(storeQuestion("main"), storeIs("main", "Unknown", "Suspended", "suspended", "suspend: true", "")),
			head + `   └─ Database market/main: suspended (since 2m)
      field: spec.suspend
Try: kubectl -n market patch database.db.example.com main --type=merge -p '{"spec":{"suspend":false}}'
`},
		{"an output that does not exist", requiring("requires Database market/main: it has no output url yet", store("main")).with(storeQuestion("main"), storeIs("main", "True", "Ready", "all is well", "", "")),
			`Shop market/corner is not Ready since 3m (Processing, Retrying, 12/15)
└─ Database market/main: it has no output url yet
Try: kubectl -n market get database main -o yaml
`},
		{"a condition that does not compile", func() Facts {
			f := requiring(`spec.requires[0].condition: "self.": character 6: Syntax error: no viable alternative at input '.'`, store("main"))
			f.Status.Conditions[0].Reason = "SpecInvalid"
			return f
		}(), `Shop market/corner is not Ready since 3m (Processing, SpecInvalid, 12/15)
└─ Shop market/corner: spec.requires[0].condition: "self.": character 6: Syntax error: no viable alternative at input '.'
Try: kubectl -n market get shop.shop.example.com corner -o yaml
`},
		{"an object that the operator may not read", func() Facts {
			f := requiring(`spec.requires[0]: requires Database market/main: read it: the operator lacks rights: in namespace market rules: [{apiGroups: [db.example.com], resources: [databases], verbs: [get, list, watch]}]; add them to its role, which a project has in deploy/templates/rbac.yaml: databases.db.example.com "main" is forbidden: User "system:serviceaccount:shops:shop-operator" cannot get resource "databases" in API group "db.example.com" in the namespace "market"`, store("main"))
			f.Status.Conditions[0].Reason = "Forbidden"
			return f
		}(), `Shop market/corner is not Ready since 3m (Processing, Forbidden, 12/15)
└─ ServiceAccount shops/shop-operator: may not get databases.db.example.com in namespace market
   field: in namespace market rules: [{apiGroups: [db.example.com], resources: [databases], verbs: [get, list, watch]}]
Try: kubectl -n market auth can-i get databases.db.example.com --as=system:serviceaccount:shops:shop-operator
`},
		{"an object that is no component", requiring("requires Certificate certs/tls: not Ready: the condition is false", certificate).
			with(Question{Verb: verbGet, Object: Object{"certs.example.com", "v1", "Certificate", "certs", "tls"}}, `{status: {phase: Asked}}`),
			`Shop market/corner is not Ready since 3m (Processing, Retrying, 12/15)
└─ Shop market/corner: requires Certificate certs/tls: not Ready: the condition is false (since 3m)
   field: spec.requires[0]
   └─ Certificate certs/tls: ready-when is false: self.status.phase == 'Issued'
Try: kubectl -n certs get certificate.certs.example.com tls -o yaml
`},
		{"components that require each other", circle("a", "b"), `Shop market/corner is not Ready since 3m (Processing, Retrying, 12/15)
└─ Shop market/corner: requires Database market/a: not Ready: it waits (since 3m)
   field: spec.requires[0]
   └─ Database market/a: requires Database market/b: not Ready: it waits (since 2m)
      field: spec.requires[0]
      └─ Database market/b: requires Database market/a: not Ready: it waits (since 2m)
         field: spec.requires[0]
         └─ Database market/a: requires in turn what waits for it: remove a requirement from one of the specs
Try: kubectl -n market get database.db.example.com a -o yaml
`},
		{"a long way", circle("a", "b", "c", "d", "e", "f"), `Shop market/corner is not Ready since 3m (Processing, Retrying, 12/15)
└─ Shop market/corner: requires Database market/a: not Ready: it waits (since 3m)
   field: spec.requires[0]
   └─ Database market/a: requires Database market/b: not Ready: it waits (since 2m)
      field: spec.requires[0]
      └─ Database market/b: requires Database market/c: not Ready: it waits (since 2m)
         field: spec.requires[0]
         └─ Database market/c: requires Database market/d: not Ready: it waits (since 2m)
            field: spec.requires[0]
            └─ Database market/d: requires Database market/e: not Ready: it waits (since 2m)
               field: spec.requires[0]
               └─ Database market/e: condition Ready is Unknown: Retrying: requires Database market/f: not Ready: it waits
Try: corbel why database.db.example.com e -n market
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			chain, open := explain(test.facts, now)
			check.Same(t, test.want, chain.Text(now))
			for _, q := range open {
				if q.Object.Kind != "Namespace" {
					t.Errorf("%s is not answered", q)
				}
			}
		})
	}
}
