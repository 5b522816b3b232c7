// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// awaited are well-known kinds that kstatus regards as current before their controllers have done
// their work: as long as there is no status, or because their conditions are unknown to it. Not
// awaited are
//
//   - Ingress: many controllers never write its status.
//   - HorizontalPodAutoscaler: without a source of metrics it never scales, which is no reason to
//     hold up the object that it scales.
//   - ValidatingAdmissionPolicy: the server enforces it, whatever its status.
var awaited = map[schema.GroupKind]func(*unstructured.Unstructured) Status{
	{Kind: "Service"}:               awaitBalancer,
	{Kind: "ReplicationController"}: awaitReplicas,
	{Kind: "PersistentVolume"}:      awaitVolume,

	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}: awaitSnapshot,

	{Group: gateways, Kind: "GatewayClass"}: awaitConditions("Accepted"),
	{Group: gateways, Kind: "Gateway"}:      awaitConditions("Accepted", "Programmed"),
	{Group: gateways, Kind: "HTTPRoute"}:    awaitParents,
	{Group: gateways, Kind: "GRPCRoute"}:    awaitParents,
	{Group: gateways, Kind: "TLSRoute"}:     awaitParents,
	{Group: gateways, Kind: "TCPRoute"}:     awaitParents,
	{Group: gateways, Kind: "UDPRoute"}:     awaitParents,

	{Group: "cert-manager.io", Kind: "Certificate"}:   awaitConditions("Ready"),
	{Group: "cert-manager.io", Kind: "Issuer"}:        awaitConditions("Ready"),
	{Group: "cert-manager.io", Kind: "ClusterIssuer"}: awaitConditions("Ready"),

	{Group: "external-secrets.io", Kind: "ExternalSecret"}:     awaitConditions("Ready"),
	{Group: "external-secrets.io", Kind: "SecretStore"}:        awaitConditions("Ready"),
	{Group: "external-secrets.io", Kind: "ClusterSecretStore"}: awaitConditions("Ready"),

	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}: awaitConditions("Ready"),
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}:        awaitConditions("Ready"),
	{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}:    awaitConditions("Ready"),
	{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}:    awaitConditions("Ready"),
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart"}:        awaitConditions("Ready"),
	{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"}:           awaitConditions("Ready"),

	{Group: "serving.knative.dev", Kind: "Service"}: awaitConditions("Ready"),
	{Group: "postgresql.cnpg.io", Kind: "Cluster"}:  awaitConditions("Ready"),
	{Group: "kafka.strimzi.io", Kind: "Kafka"}:      awaitConditions("Ready"),
	{Group: "keda.sh", Kind: "ScaledObject"}:        awaitConditions("Ready"),
}

const gateways = "gateway.networking.k8s.io"

// awaitConditions waits until the conditions are True, for the latest change of the
// object. The controller of a suspended object ignores it.
func awaitConditions(names ...string) func(*unstructured.Unstructured) Status {
	return func(obj *unstructured.Unstructured) Status {
		if suspended, _ := field(obj.Object, "spec", "suspend").(bool); suspended {
			return Status{Readiness: Ready}
		}
		for _, name := range names {
			if c, found := findCondition(obj, name); found && isOutdated(obj, c.observedGeneration) {
				return Status{Message: "the latest change is not observed yet"}
			}
			if unmet := requireTrue(obj, name); unmet != nil {
				return *unmet
			}
		}
		return Status{Readiness: Ready}
	}
}

// isOutdated reports whether something was observed of an earlier generation of the object.
func isOutdated(obj *unstructured.Unstructured, observed any) bool {
	generation, hasGeneration := integer(field(obj.Object, "metadata", "generation"))
	latest, hasObserved := integer(observed)
	return hasGeneration && hasObserved && latest < generation
}

// finalizerBalancer is on Services that a controller of load balancers manages.
const finalizerBalancer = "service.kubernetes.io/load-balancer-cleanup"

// awaitBalancer waits until a Service of type LoadBalancer has an address.
func awaitBalancer(obj *unstructured.Unstructured) Status {
	if text(obj.Object, "spec", "type") != "LoadBalancer" {
		return Status{Readiness: Ready}
	}
	addresses, _ := field(obj.Object, "status", "loadBalancer", "ingress").([]any)
	for _, address := range addresses {
		if text(address, "ip") != "" || text(address, "hostname") != "" {
			return Status{Readiness: Ready}
		}
	}
	message := "has no address yet"
	for _, finalizer := range obj.GetFinalizers() {
		if finalizer == finalizerBalancer {
			return Status{Message: message + ", its load balancer is being set up"}
		}
	}
	what := "Services of type LoadBalancer"
	if class := text(obj.Object, "spec", "loadBalancerClass"); class != "" {
		what = "Services of the load balancer class " + class
	}
	return Status{Message: fmt.Sprintf("%s; if that lasts, no controller in this cluster assigns addresses to %s", message, what)}
}

func awaitReplicas(obj *unstructured.Unstructured) Status {
	w := replicas(obj)
	w.updated = w.desired
	observed := field(obj.Object, "status", "observedGeneration") != nil
	if observed && w.ready >= w.desired && w.existing <= w.desired {
		return Status{Readiness: Ready}
	}
	return Status{Message: explain(w.progress(), replicaFailure(obj))}
}

func awaitVolume(obj *unstructured.Unstructured) Status {
	switch phase := text(obj.Object, "status", "phase"); phase {
	case "Available", "Bound", "Released":
		return Status{Readiness: Ready}
	case "Failed":
		return Status{Readiness: Failed, Message: explain("has failed", text(obj.Object, "status", "message"))}
	default:
		return Status{Message: "is not available yet"}
	}
}

func awaitSnapshot(obj *unstructured.Unstructured) Status {
	if ready, _ := field(obj.Object, "status", "readyToUse").(bool); ready {
		return Status{Readiness: Ready}
	}
	return Status{Message: explain("is not ready to use yet", text(obj.Object, "status", "error", "message"))}
}

// awaitParents waits until all parents that a route names accept it, and its backends are found. A
// status of a parent that it does not name any more is left over.
func awaitParents(obj *unstructured.Unstructured) Status {
	refs, _ := field(obj.Object, "spec", "parentRefs").([]any)
	parents, _ := field(obj.Object, "status", "parents").([]any)
	named, accepted := map[string]bool{}, map[string]bool{}
	for _, ref := range refs {
		named[parentName(obj, ref)] = true
	}
	for _, parent := range parents {
		name := parentName(obj, field(parent, "parentRef"))
		if !named[name] {
			continue
		}
		for _, kind := range []string{"Accepted", "ResolvedRefs"} {
			c, found := conditionIn(parent, kind)
			switch {
			case found && isOutdated(obj, c.observedGeneration):
				return Status{Message: "the latest change is not observed yet"}
			case found && c.status != "True":
				return Status{Message: fmt.Sprintf("parent %s: %s", name, explain("condition "+kind+" is "+c.status, explain(c.reason, c.message)))}
			case found && kind == "Accepted":
				accepted[name] = true
			}
		}
	}
	for _, ref := range refs {
		if name := parentName(obj, ref); !accepted[name] {
			return Status{Message: fmt.Sprintf("is not accepted by parent %s yet; if that lasts, no controller in this cluster looks after it", name)}
		}
	}
	return Status{Readiness: Ready}
}

// parentName returns a name that distinguishes the parents of a route.
func parentName(obj *unstructured.Unstructured, ref any) string {
	namespace := text(ref, "namespace")
	if namespace == "" {
		namespace = obj.GetNamespace()
	}
	name := strings.TrimPrefix(namespace+"/"+text(ref, "name"), "/")
	if section := text(ref, "sectionName"); section != "" {
		name += ", section " + section
	}
	if port, ok := integer(field(ref, "port")); ok {
		name += fmt.Sprintf(", port %d", port)
	}
	return name
}
