// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

// patchAs patches the object as a field manager.
func (b *bench) patchAs(manager string, d *plan.Desired, kind types.PatchType, patch string) {
	b.t.Helper()
	content := check.Must(yaml.YAMLToJSON([]byte(patch)))(b.t)
	check.NoError(b.t, check.ErrorOf(b.target.Objects().Patch(b.t.Context(), b.resource(d), d.Key.Namespace, d.Key.Name, kind, content, manager)))
}

// at returns the field of the live object at a path, as text.
func (b *bench) at(d *plan.Desired, path ...string) string {
	b.t.Helper()
	var value any = b.live(d).Object
	for _, key := range path {
		switch container := value.(type) {
		case map[string]any:
			value = container[key]
		case []any:
			value = nil
			for _, element := range container {
				if fields, _ := element.(map[string]any); fields["name"] == key {
					value = element
				}
			}
		}
	}
	return fmt.Sprint(value)
}

var applyVerbs = []plan.Verb{plan.VerbMerge, plan.VerbOverride}

// workload is a Deployment with more lines in its spec and in its container.
func workload(namespace, name, spec, container string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: ` + namespace + `}
spec: {` + spec + `selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i` + container + `}]}}}`
}

func TestWhatKubectlSetIsTakenOverBeforeItExcludesTheManifest(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	env := `, env: [{name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`
	edit := `{spec: {template: {spec: {containers: [{name: c, env: [{name: P, value: edited, valueFrom: null}]}]}}}}`
	for name, tc := range map[string]struct {
		// watched: the plan does not see the managers, so that the refusal shows them.
		watched  bool
		requests string
	}{
		"seen":    {false, "GET, PATCH, PATCH"},
		"watched": {true, "PATCH, GET, PATCH, PATCH"},
	} {
		d := b.desired(workload(namespace, unique("d"), "", env), v1alpha1.UpdatePolicySsaOverride)
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.patchAs("kubectl-set", d, types.StrategicMergePatchType, edit)
		b.otherClient(d, `{metadata: {labels: {theirs: "1"}}}`)
		s := b.seen(plan.VerbOverride, d, b.observe(d))
		s.Reclaims = s.Reclaims && !tc.watched
		b.requests()
		b.must(s)
		check.SameNamed(t, name+": the requests were", tc.requests, methods(b.requests()))
		got := b.at(d, "spec", "template", "spec", "containers", "c", "env", "P")
		if strings.Contains(got, "edited") || !strings.Contains(got, "metadata.name") || b.at(d, "metadata", "labels", "theirs") != "1" {
			t.Errorf("%s: env is %s", name, got)
		}
	}
	// Also when another client has created it, and it is adopted.
	d := b.desired(workload(namespace, unique("d"), "", env), v1alpha1.UpdatePolicySsaOverride)
	live := parse(t, workload(namespace, d.Key.Name, "", `, env: [{name: P, value: x}]`))
	check.NoError(t, check.ErrorOf(b.target.Objects().Create(t.Context(), b.resource(d), live, "kubectl-create")))
	b.must(b.seen(plan.VerbOverride, d, b.observe(d)))
	// A merge takes nothing, and says which client can end it.
	d.Policies.Update = v1alpha1.UpdatePolicySsaMerge
	b.patchAs("kubectl-set", d, types.StrategicMergePatchType, edit)
	result := b.run(b.seen(plan.VerbMerge, d, b.observe(d)))
	if result.Err == nil || !strings.Contains(result.Err.Error(), "env.0.value is set by the field manager kubectl-set") ||
		!strings.Contains(result.Err.Error(), reconciler+"/update-policy: replace") {
		t.Errorf("got %v", result.Err)
	}
}

func TestADefaultThatExcludesAFieldOfTheManifestIsReplaced(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for _, verb := range applyVerbs {
		d := b.desired(workload(namespace, unique("d"), "", ""), writes[verb])
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.patchAs("hpa", d, types.MergePatchType, `{metadata: {labels: {theirs: "1"}}, spec: {replicas: 5}}`)
		b.patchAs("mesh", d, types.StrategicMergePatchType, `{spec: {template: {spec: {containers: [{name: side, image: s}]}}}}`)
		seen := b.observe(d)
		b.requests()
		d = b.desired(workload(namespace, d.Key.Name, "strategy: {type: Recreate}, ", ""), writes[verb])
		b.must(b.seen(verb, d, seen))
		check.SameNamed(t, string(verb)+": the requests were", "PATCH, GET, PATCH, PATCH, PATCH", methods(b.requests()))
		check.SameNamed(t, string(verb)+": strategy", "map[type:Recreate]", b.at(d, "spec", "strategy"))
		if b.at(d, "spec", "replicas") != "5" || b.at(d, "metadata", "labels", "theirs") != "1" || b.at(d, "spec", "template", "spec", "containers", "side", "image") != "s" {
			t.Errorf("%s: the fields of others are gone: %v", verb, b.live(d))
		}
		seen = b.observe(d)
		b.requests()
		b.must(b.seen(verb, d, seen))
		check.SameNamed(t, string(verb)+": the next write took", "PATCH", methods(b.requests()))
	}
}

func TestARestartIsNotUndoneByTheNextWrite(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	const restart = `{spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}}}`
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for verb, want := range map[plan.Verb]string{plan.VerbReplace: "PUT", plan.VerbMerge: "PATCH", plan.VerbOverride: "PATCH"} {
			text := strings.Replace(workload(namespace, unique("d"), "", ""), "kind: Deployment", "kind: "+kind, 1)
			d := b.desired(text, writes[verb])
			b.must(step(plan.VerbCreate, d, plan.Observation{}))
			b.patchAs("kubectl-rollout", d, types.StrategicMergePatchType, restart)
			s := b.seen(verb, d, b.observe(d))
			s.Reclaims = false // as it is watched
			s.Desired = b.desired(strings.Replace(text, "spec: {", "spec: {minReadySeconds: 1, ", 1), writes[verb])
			b.requests()
			b.must(s)
			check.SameNamed(t, string(verb)+" "+kind+": the requests were", want, methods(b.requests()))
			if got := b.at(d, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"); got != "now" || b.at(d, "spec", "minReadySeconds") != "1" {
				t.Errorf("%s %s: restarted %s", verb, kind, got)
			}
		}
	}
}

func TestAnApplyDoesNotTakeOverWhatIsIgnored(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for verb, want := range map[plan.Verb]string{plan.VerbMerge: "map[a:1 added:1 tuned:1]", plan.VerbOverride: "map[a:1 tuned:1]"} {
		d := b.desired(withData(namespace, unique("m"), `{a: "1"}`), writes[verb])
		d.Policies.IgnoreFields = []string{"/data/tuned", "/metadata/annotations"}
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		b.patchAs("kubectl-edit", d, types.MergePatchType, `{metadata: {annotations: {note: x}}, data: {tuned: "1", added: "1"}}`)
		b.must(b.seen(verb, d, b.observe(d)))
		check.SameNamed(t, string(verb)+": the data", want, fmt.Sprint(data(b, d)))
		check.SameNamed(t, string(verb)+": the annotation", "x", b.at(d, "metadata", "annotations", "note"))
		if observe.Owns(b.live(d), "corbel", "f:data", "f:tuned") {
			t.Errorf("%s: the ignored field is ours", verb)
		}
	}
}

// A conflict between the requests of an override leaves what it corrects, so that it is planned again.
func TestAConflictInAnOverrideLeavesTheDrift(t *testing.T) {
	b := newBench(t)
	d := b.desired(withData(b.namespace(), "map", `{a: "1"}`), v1alpha1.UpdatePolicySsaOverride)
	accepted := b.must(step(plan.VerbCreate, d, plan.Observation{}))
	b.patchAs("kubectl-edit", d, types.MergePatchType, `{data: {a: "2", added: "1"}}`)
	s := b.seen(plan.VerbOverride, d, b.observe(d))
	b.gate.Counts = func(r *http.Request) bool { return r.Method == http.MethodPatch }
	b.gate.Aim(2, false, func() error {
		b.otherClient(d, `{metadata: {labels: {theirs: "1"}}}`)
		return nil
	})
	if result := b.run(s); !execute.IsConflict(result.Err) {
		t.Fatalf("got %+v", result)
	}
	again := b.observe(d)
	if again.AppliedHash == accepted.AppliedHash {
		t.Fatal("nothing is left to be planned")
	}
	b.must(b.seen(plan.VerbOverride, d, again))
	check.Same(t, "map[a:1]", fmt.Sprint(data(b, d)))
}

// Server-side apply refuses manifests that a PUT takes. Trying again does not help.
func TestAManifestThatNoApplyTakesIsAMistake(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for _, container := range []string{`, env: [{name: P, value: a}, {name: P, value: b}]`, `, nosuchfield: 1`, `, ports: x`} {
		for _, verb := range append(applyVerbs, plan.VerbCreate) {
			name := unique("d")
			d := b.desired(workload(namespace, name, "", ""), v1alpha1.UpdatePolicySsaMerge)
			seen := plan.Observation{}
			if verb != plan.VerbCreate {
				b.must(step(plan.VerbCreate, d, plan.Observation{}))
				seen = b.observe(d)
			}
			d = b.desired(workload(namespace, name, "", container), v1alpha1.UpdatePolicySsaMerge)
			b.requests()
			result := b.run(b.seen(verb, d, seen))
			if !execute.IsMistake(result.Err) || !strings.Contains(result.Err.Error(), reconciler+"/update-policy: replace") {
				t.Errorf("%s%s: got %v", verb, container, result.Err)
			}
			check.SameNamed(t, string(verb)+container+": the requests were", "PATCH", methods(b.requests()))
		}
	}
}

// exclusive are pairs of values of a field that exclude each other, of built-in kinds: an object with the first one becomes
// one with the second, and back, under server-side apply as under replace.
var exclusive = map[string]struct{ object, first, second string }{
	"strategy":              {`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, X}}`, `strategy: {type: RollingUpdate}`, `strategy: {type: Recreate}`},
	"strategy by default":   {`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, X}}`, `paused: false`, `strategy: {type: Recreate}`},
	"stateful update":       {`{apiVersion: apps/v1, kind: StatefulSet, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, X}}`, `minReadySeconds: 0`, `updateStrategy: {type: OnDelete}`},
	"daemon update":         {`{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, X}}`, `minReadySeconds: 0`, `updateStrategy: {type: OnDelete}`},
	"volume":                {podTemplate(`volumes: [{name: v, X}], containers: [{name: c, image: i}]`), `emptyDir: {}`, `configMap: {name: m}`},
	"volume by default":     {podTemplate(`volumes: [{name: v X}], containers: [{name: c, image: i}]`), ``, `, hostPath: {path: /x}`},
	"env":                   {podTemplate(`containers: [{name: c, image: i, env: [{name: P, X}]}]`), `value: x`, `valueFrom: {fieldRef: {fieldPath: metadata.name}}`},
	"env source":            {podTemplate(`containers: [{name: c, image: i, env: [{name: P, valueFrom: {X}}]}]`), `configMapKeyRef: {name: m, key: k}`, `secretKeyRef: {name: s, key: k}`},
	"probe":                 {podTemplate(`containers: [{name: c, image: i, livenessProbe: {X}}]`), `httpGet: {port: 80}`, `tcpSocket: {port: 80}`},
	"lifecycle":             {podTemplate(`containers: [{name: c, image: i, lifecycle: {preStop: {X}}}]`), `exec: {command: [a]}`, `httpGet: {port: 80}`},
	"seccomp":               {podTemplate(`securityContext: {seccompProfile: {X}}, containers: [{name: c, image: i}]`), `type: Localhost, localhostProfile: p`, `type: RuntimeDefault`},
	"disruption budget":     {`{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {a: b}}, X}}`, `minAvailable: 1`, `maxUnavailable: 1`},
	"session affinity":      {`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}], X}}`, `sessionAffinity: ClientIP`, `sessionAffinity: None`},
	"service type":          {`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}], X}}`, `type: NodePort`, `type: ClusterIP`},
	"load balancer":         {`{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}], X}}`, `type: LoadBalancer, externalTrafficPolicy: Local`, `type: ClusterIP`},
	"ingress backend":       {`{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {X}}}`, `service: {name: s, port: {number: 80}}`, `resource: {apiGroup: g.example.com, kind: K, name: r}`},
	"ingress port":          {`{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: s, port: {X}}}}}`, `number: 80`, `name: http`},
	"metric of an HPA":      {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}, metrics: [{type: Resource, resource: {name: cpu, target: {X}}}]}}`, `type: Utilization, averageUtilization: 50`, `type: AverageValue, averageValue: 1`},
	"peer of a policy":      {`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}, ingress: [{from: [{X}]}]}}`, `podSelector: {}`, `ipBlock: {cidr: 10.0.0.0/8}`},
	"webhook client":        {`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a.example.com, sideEffects: None, failurePolicy: Ignore, admissionReviewVersions: [v1], rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [x]}], clientConfig: {X}}]}`, `service: {name: s, namespace: default}`, `url: "https://example.com/x"`},
	"priority level":        {`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {X}}}}`, `type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 9}`, `type: Reject`},
	"subjects of a flow":    {`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, spec: {priorityLevelConfiguration: {name: catch-all}, rules: [{nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["/x"]}], subjects: [{X}]}]}}`, `kind: User, user: {name: u}`, `kind: Group, group: {name: g}`},
	"binding of parameters": {`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, spec: {policyName: p, validationActions: [Warn], paramRef: {parameterNotFoundAction: Allow, X}}}`, `name: p`, `selector: {matchLabels: {a: b}}`},
}

func podTemplate(spec string) string {
	return `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {` + spec + `}}}}`
}

func TestFieldsThatExcludeEachOtherChangePlacesUnderServerSideApply(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	for name, pair := range exclusive {
		for _, verb := range applyVerbs {
			for _, created := range []v1alpha1.UpdatePolicy{v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicyReplace} {
				t.Run(name+" "+string(verb)+" after "+string(created), func(t *testing.T) {
					b.t = t
					object := unique("x")
					desired := func(value string, policy v1alpha1.UpdatePolicy) *plan.Desired {
						manifest := parse(t, strings.Replace(pair.object, "X", value, 1))
						manifest.SetName(object)
						if resource, err := b.target.Types().Resolve(t.Context(), manifest.GroupVersionKind()); err == nil && resource.Namespaced {
							manifest.SetNamespace(namespace)
						}
						text := check.Must(yaml.Marshal(manifest.Object))(t)
						return b.desired(string(text), policy)
					}
					live := b.must(step(plan.VerbCreate, desired(pair.first, created), plan.Observation{}))
					for _, value := range []string{pair.second, pair.first, pair.second} {
						d := desired(value, writes[verb])
						eventually(t, "no controller writes the object meanwhile", func() bool {
							result := b.run(b.seen(verb, d, live))
							if result.Err != nil && !execute.IsConflict(result.Err) {
								t.Fatalf("%s: %v", value, result.Err)
							}
							live = b.observe(d)
							return result.Err == nil
						})
						check.SameNamed(t, value, "", b.differs(d))
					}
				})
			}
		}
	}
	b.t = t
}

// differs says at which fields an object differs from its manifest.
func (b *bench) differs(d *plan.Desired) string {
	b.t.Helper()
	if drift := observe.DriftOf(b.live(d), d, "corbel"); len(drift.Fields) > 0 {
		return drift.String()
	}
	return ""
}
