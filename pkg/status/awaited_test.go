// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKindsThatOthersCallCurrentTooEarly(t *testing.T) {
	const (
		balancer   = `v1 Service {metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1`
		unassigned = "has no address yet; if that lasts, no controller in this cluster assigns addresses to "
		gateway    = `gateway.networking.k8s.io/v1 Gateway {metadata: {name: a, generation: 2}, spec: {}, status: {conditions: [`
		route      = `gateway.networking.k8s.io/v1 HTTPRoute {metadata: {name: a, namespace: shop, generation: 2}, spec: {parentRefs: [{name: g, sectionName: http}]}, status: {parents: [`
		parent     = `{parentRef: {name: g, namespace: shop, sectionName: http}, conditions: [`
		cert       = `cert-manager.io/v1 Certificate {metadata: {name: a, generation: 2}`
		release    = `helm.toolkit.fluxcd.io/v2 HelmRelease {metadata: {name: a, generation: 2}, spec: {suspend: `
		volume     = `v1 PersistentVolume {metadata: {name: a}, status: {phase: `
	)
	for _, tt := range []analysis{
		{"a Service without an address", balancer + `}}`, Options{}, Status{NotReady, unassigned + "Services of type LoadBalancer"}},
		{"an empty address", balancer + `}, status: {loadBalancer: {ingress: [{}]}}}`, Options{}, Status{NotReady, unassigned + "Services of type LoadBalancer"}},
		{"a Service of a class", balancer + `, loadBalancerClass: example.com/lb}}`, Options{}, Status{NotReady, unassigned + "Services of the load balancer class example.com/lb"}},
		{"a Service that a controller has taken up", `v1 Service {metadata: {name: a, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`, Options{}, Status{NotReady, "has no address yet, its load balancer is being set up"}},
		{"a Service with an IP address", balancer + `}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, Options{}, Status{Readiness: Ready}},
		{"a Service with a host name", balancer + `}, status: {loadBalancer: {ingress: [{hostname: a.example.com}]}}}`, Options{}, Status{Readiness: Ready}},
		{"a Service of another type", `v1 Service {metadata: {name: a}, spec: {type: NodePort}}`, Options{}, Status{Readiness: Ready}},
		{"a Service of Knative", `serving.knative.dev/v1 Service {metadata: {name: a}, spec: {}}`, Options{}, Status{NotReady, "has no condition Ready yet"}},
		{"a Service for which ready-when says more", balancer + `}}`, when(t, "self.spec.clusterIP != ''"), Status{Readiness: Ready}},

		{"a Gateway without a controller", `gateway.networking.k8s.io/v1 Gateway {metadata: {name: a}}`, Options{}, Status{NotReady, "has no condition Accepted yet"}},
		{"a Gateway that is not programmed", gateway + `{type: Accepted, status: "True"}, {type: Programmed, status: Unknown, reason: Pending, message: "Waiting for controller"}]}}`, Options{}, Status{NotReady, "condition Programmed is Unknown: Pending: Waiting for controller"}},
		{"a Gateway that was programmed before its change", gateway + `{type: Accepted, status: "True", observedGeneration: 2}, {type: Programmed, status: "True", observedGeneration: 1}]}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"a Gateway that is programmed", gateway + `{type: Accepted, status: "True", observedGeneration: 2}, {type: Programmed, status: "True", observedGeneration: 2}]}}`, Options{}, Status{Readiness: Ready}},
		{"a GatewayClass", `gateway.networking.k8s.io/v1 GatewayClass {metadata: {name: a}, status: {conditions: [{type: Accepted, status: "True"}]}}`, Options{}, Status{Readiness: Ready}},
		{"a route that no parent knows", route + `]}}`, Options{}, Status{NotReady, "is not accepted by parent shop/g, section http yet; if that lasts, no controller in this cluster looks after it"}},
		{"a route that its parent refuses", route + parent + `{type: Accepted, status: "False", reason: NoMatchingListenerHostname}]}]}}`, Options{}, Status{NotReady, "parent shop/g, section http: condition Accepted is False: NoMatchingListenerHostname"}},
		{"a route to nowhere", route + parent + `{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "False", reason: BackendNotFound}]}]}}`, Options{}, Status{NotReady, "parent shop/g, section http: condition ResolvedRefs is False: BackendNotFound"}},
		{"a route that was accepted before its change", route + parent + `{type: Accepted, status: "True", observedGeneration: 1}]}]}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"a route that is accepted", route + parent + `{type: Accepted, status: "True", observedGeneration: 2}]}]}}`, Options{}, Status{Readiness: Ready}},
		{"a route that a former parent refuses", route + parent + `{type: Accepted, status: "True"}]}, {parentRef: {name: old}, conditions: [{type: Accepted, status: "False", reason: NoMatchingParent}]}]}}`, Options{}, Status{Readiness: Ready}},
		{"a route of another kind", `gateway.networking.k8s.io/v1 GRPCRoute {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},

		{"a Certificate without a status", cert + `}`, Options{}, Status{NotReady, "has no condition Ready yet"}},
		{"a Certificate that is Ready since before its change", cert + `, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"a Certificate that is Ready", cert + `, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, Options{}, Status{Readiness: Ready}},
		{"an ExternalSecret without a status", `external-secrets.io/v1 ExternalSecret {metadata: {name: a}}`, Options{}, Status{NotReady, "has no condition Ready yet"}},
		{"a HelmRelease that is not Ready", release + `false}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: InstallFailed, message: m}]}}`, Options{}, Status{NotReady, "InstallFailed: m"}},
		{"a HelmRelease without a status", release + `false}}`, Options{}, Status{NotReady, "has no condition Ready yet"}},
		{"a HelmRelease that is suspended", release + `true}}`, Options{}, Status{Readiness: Ready}},

		{"a ReplicationController without a status", `v1 ReplicationController {metadata: {name: a}, spec: {replicas: 0}}`, Options{}, Status{NotReady, "the rollout is not complete yet"}},
		{"a ReplicationController that starts", `v1 ReplicationController {metadata: {name: a}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}}`, Options{}, Status{NotReady, "1 of 2 replicas ready"}},
		{"a ReplicationController that is done", `v1 ReplicationController {metadata: {name: a}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`, Options{}, Status{Readiness: Ready}},
		{"a volume that is not there yet", volume + `Pending}}`, Options{}, Status{NotReady, "is not available yet"}},
		{"a volume that can be claimed", volume + `Available}}`, Options{}, Status{Readiness: Ready}},
		{"a volume that has failed", volume + `Failed, message: m}}`, Options{}, Status{Failed, "has failed: m"}},
		{"a snapshot", `snapshot.storage.k8s.io/v1 VolumeSnapshot {metadata: {name: a}, status: {readyToUse: true}}`, Options{}, Status{Readiness: Ready}},
		{"a snapshot that cannot be taken", `snapshot.storage.k8s.io/v1 VolumeSnapshot {metadata: {name: a}, status: {readyToUse: false, error: {message: m}}}`, Options{}, Status{NotReady, "is not ready to use yet: m"}},

		{"an Ingress without an address", `networking.k8s.io/v1 Ingress {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},
		{"an autoscaler without metrics", `autoscaling/v2 HorizontalPodAutoscaler {metadata: {name: a}, status: {conditions: [{type: ScalingActive, status: "False"}]}}`, Options{}, Status{Readiness: Ready}},
		{"an admission policy", `admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},
		{"a CronJob", `batch/v1 CronJob {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},
	} {
		tt.check(t)
	}
	// Each kind of the table waits for a status, if its spec asks for something.
	for gk := range awaited {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"type": "LoadBalancer", "clusterIP": "10.0.0.1", "parentRefs": []any{map[string]any{"name": "g"}},
		}}}
		obj.SetGroupVersionKind(gk.WithVersion("v1"))
		if s := Analyze(obj, Options{}); s.Readiness != NotReady || s.Message == "" {
			t.Errorf("%s without a status: %+v", gk, s)
		}
		if _, twice := rules[gk]; twice {
			t.Errorf("%s has two rules", gk)
		}
	}
}
