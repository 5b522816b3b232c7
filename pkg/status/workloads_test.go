// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "testing"

func TestDeployments(t *testing.T) {
	const d = `apps/v1 Deployment {metadata: {name: a, generation: 2}, spec: {replicas: 3, progressDeadlineSeconds: 600}, status: {observedGeneration: 2, `
	const available = `conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}, {type: Available, status: "True"}]`
	for _, tt := range []analysis{
		{"nothing is observed yet", `apps/v1 Deployment {metadata: {name: a, generation: 1}, spec: {replicas: 3}}`, Options{}, Status{NotReady, "0 of 3 replicas ready"}},
		{"the change is not observed yet", `apps/v1 Deployment {metadata: {name: a, generation: 3}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"some replicas are ready", d + `replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1}}`, Options{}, Status{NotReady, "1 of 3 replicas ready"}},
		{"an update is under way", d + `replicas: 4, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3}}`, Options{}, Status{NotReady, "1 of 3 replicas updated, 3 ready"}},
		{"old replicas go away", d + `replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4}}`, Options{}, Status{NotReady, "1 old replicas are still there"}},
		{"ready, but not for long enough", d + `replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 2}}`, Options{}, Status{NotReady, "2 of 3 replicas available"}},
		{"the conditions lag behind", d + `replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}}`, Options{}, Status{NotReady, "the rollout is not complete yet"}},
		{"all is done", d + `replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3, ` + available + `}}`, Options{}, Status{Readiness: Ready}},
		{"the deadline is exceeded", d + `replicas: 3, updatedReplicas: 3, readyReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, Options{}, Status{Failed, "the progress deadline is exceeded, 1 of 3 replicas ready"}},
		{"a quota is exceeded", d + `replicas: 1, updatedReplicas: 1, readyReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "exceeded quota"}]}}`, Options{}, Status{NotReady, "1 of 3 replicas ready: FailedCreate: exceeded quota"}},
		{"the rollout is paused", `apps/v1 Deployment {metadata: {name: a}, spec: {replicas: 3, paused: true}, status: {replicas: 3, updatedReplicas: 0, readyReplicas: 3}}`, Options{}, Status{NotReady, "0 of 3 replicas updated, 3 ready, the rollout is paused"}},
	} {
		tt.check(t)
	}
}

func TestOtherWorkloads(t *testing.T) {
	for _, tt := range []analysis{
		{"a StatefulSet starts", `apps/v1 StatefulSet {metadata: {name: a}, spec: {replicas: 3}, status: {replicas: 1, updatedReplicas: 1, currentReplicas: 1, readyReplicas: 1}}`, Options{}, Status{NotReady, "1 of 3 replicas ready"}},
		{"a StatefulSet is updated", `apps/v1 StatefulSet {metadata: {name: a}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {replicas: 3, updatedReplicas: 1, currentReplicas: 2, readyReplicas: 3, currentRevision: a, updateRevision: b}}`, Options{}, Status{NotReady, "1 of 3 replicas updated, 3 ready"}},
		{"a StatefulSet is done", `apps/v1 StatefulSet {metadata: {name: a}, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, currentReplicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: a}}`, Options{}, Status{Readiness: Ready}},
		{"a StatefulSet updated by hand has no pods yet", `apps/v1 StatefulSet {metadata: {name: a}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {replicas: 2, readyReplicas: 1}}`, Options{}, Status{NotReady, "1 of 2 replicas ready"}},
		{"a StatefulSet updated by hand runs old pods", `apps/v1 StatefulSet {metadata: {name: a}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 0}}`, Options{}, Status{Readiness: Ready}},
		{"a DaemonSet is not observed", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}}`, Options{}, Status{NotReady, "is not observed yet"}},
		{"a DaemonSet starts", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 1}}`, Options{}, Status{NotReady, "1 of 2 replicas ready"}},
		{"a DaemonSet is done", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2, numberAvailable: 2}}`, Options{}, Status{Readiness: Ready}},
		{"a DaemonSet without nodes is done", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 0}}`, Options{}, Status{Readiness: Ready}},
		{"a DaemonSet updated by hand runs old pods", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 0, numberReady: 2, numberAvailable: 2}}`, Options{}, Status{Readiness: Ready}},
		{"a DaemonSet is updated", `apps/v1 DaemonSet {metadata: {name: a, generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberReady: 2, numberAvailable: 2}}`, Options{}, Status{NotReady, "1 of 2 replicas updated, 2 ready"}},
		{"a ReplicaSet starts", `apps/v1 ReplicaSet {metadata: {name: a}, spec: {replicas: 2}, status: {replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1}}`, Options{}, Status{NotReady, "1 of 2 replicas ready"}},
		{"a pod cannot pull the image that it names", `v1 Pod {metadata: {name: a}, spec: {containers: [{name: web, image: "web:1"}]}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ErrImagePull}}}]}}`, Options{}, Status{NotReady, "container web waits: ErrImagePull: image web:1"}},
		{"a pod cannot pull its image", `v1 Pod {metadata: {name: a}, status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff}}}]}}`, Options{}, Status{NotReady, "container web waits: ImagePullBackOff"}},
		{"a pod crashes", `v1 Pod {metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, Options{}, Status{Failed, "container web waits: CrashLoopBackOff"}},
		{"a pod is ready", `v1 Pod {metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, Options{}, Status{Readiness: Ready}},
	} {
		tt.check(t)
	}
}

func TestJobs(t *testing.T) {
	for _, tt := range []analysis{
		{"not started", `batch/v1 Job {metadata: {name: a}, spec: {completions: 1}}`, Options{}, Status{NotReady, "is not started yet"}},
		{"running", `batch/v1 Job {metadata: {name: a}, spec: {completions: 3}, status: {startTime: x, active: 1, succeeded: 2}}`, Options{}, Status{NotReady, "2 of 3 completions"}},
		{"running without a number of completions", `batch/v1 Job {metadata: {name: a}, spec: {}, status: {startTime: x, active: 1}}`, Options{}, Status{NotReady, "is running"}},
		{"about to complete", `batch/v1 Job {metadata: {name: a}, spec: {completions: 1}, status: {startTime: x, succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, Options{}, Status{NotReady, "1 of 1 completions"}},
		{"complete", `batch/v1 Job {metadata: {name: a}, status: {conditions: [{type: Complete, status: "True"}]}}`, Options{}, Status{Readiness: Ready}},
		{"failed", `batch/v1 Job {metadata: {name: a}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: m}]}}`, Options{}, Status{Failed, "BackoffLimitExceeded: m"}},
		{"failed without a word", `batch/v1 Job {metadata: {name: a}, status: {conditions: [{type: Failed, status: "True"}]}}`, Options{}, Status{Failed, "has failed"}},
		{"suspended", `batch/v1 Job {metadata: {name: a}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`, Options{}, Status{NotReady, "is suspended"}},
	} {
		tt.check(t)
	}
}

func TestTypesAndClaims(t *testing.T) {
	const crd = `apiextensions.k8s.io/v1 CustomResourceDefinition {metadata: {name: a}, status: {conditions: [`
	const api = `apiregistration.k8s.io/v1 APIService {metadata: {name: a}, status: {conditions: [`
	const pdb = `policy/v1 PodDisruptionBudget {metadata: {name: a, generation: 1}, status: {`
	for _, tt := range []analysis{
		{"a definition without status", `apiextensions.k8s.io/v1 CustomResourceDefinition {metadata: {name: a}}`, Options{}, Status{NotReady, "is not established yet"}},
		{"a definition with accepted names only", crd + `{type: NamesAccepted, status: "True"}]}}`, Options{}, Status{NotReady, "is not established yet"}},
		{"a definition that is being installed", crd + `{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing}]}}`, Options{}, Status{NotReady, "is not established yet"}},
		{"an established definition", crd + `{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, Options{}, Status{Readiness: Ready}},
		{"a definition with names that are taken", crd + `{type: NamesAccepted, status: "False", reason: PluralConflict, message: m}, {type: Established, status: "True"}]}}`, Options{}, Status{Failed, "PluralConflict: m"}},
		{"a definition that cannot be established", crd + `{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: NotAccepted}]}}`, Options{}, Status{Failed, "NotAccepted"}},
		{"an APIService without status", `apiregistration.k8s.io/v1 APIService {metadata: {name: a}}`, Options{}, Status{NotReady, "is not available yet"}},
		{"an APIService without endpoints", api + `{type: Available, status: "False", reason: MissingEndpoints, message: m}]}}`, Options{}, Status{NotReady, "is not available: MissingEndpoints: m"}},
		{"an available APIService", api + `{type: Available, status: "True"}]}}`, Options{}, Status{Readiness: Ready}},
		{"a pending claim", `v1 PersistentVolumeClaim {metadata: {name: a}, status: {phase: Pending}}`, Options{}, Status{NotReady, "is not bound to a volume (with the binding mode WaitForFirstConsumer it waits for a pod that uses it)"}},
		{"a bound claim", `v1 PersistentVolumeClaim {metadata: {name: a}, status: {phase: Bound}}`, Options{}, Status{Readiness: Ready}},
		{"a lost claim", `v1 PersistentVolumeClaim {metadata: {name: a}, status: {phase: Lost}}`, Options{}, Status{Failed, "has lost its volume"}},
		{"a disruption budget that allows no disruption", pdb + `observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False"}]}}`, Options{}, Status{Readiness: Ready}},
		{"a disruption budget that is not observed", pdb + `observedGeneration: 0}}`, Options{}, Status{NotReady, "the latest change is not observed yet"}},
		{"a ConfigMap", `v1 ConfigMap {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},
		{"a Service", `v1 Service {metadata: {name: a}, spec: {type: ClusterIP}}`, Options{}, Status{Readiness: Ready}},
		{"a role", `rbac.authorization.k8s.io/v1 ClusterRole {metadata: {name: a}}`, Options{}, Status{Readiness: Ready}},
	} {
		tt.check(t)
	}
}
