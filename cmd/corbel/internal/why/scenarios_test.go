// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// scenario is a cause that is seeded, and what an explanation must name.
type scenario struct {
	name, namespace string
	// operator is the namespace of the operator, if it is not the first one.
	operator string
	spec     widget.Spec
	// annotations are those of the component.
	annotations map[string]string
	// manifests returns the dependents for the values of the spec.
	manifests func(values map[string]string) string
	// before prepares the cluster, before the component is created, and after changes it then.
	before, after func(*bed)
	// disturb is done again and again while the cluster is judged.
	disturb func(*bed)
	// ready: the component is Ready before after is called.
	ready bool
	// ahead is how far the clock of the explanation goes ahead.
	ahead time.Duration

	code                   Code
	object, field, command string // object and command are parts
	message, heldBack      string
	// printed is what the command prints, if it is to be run.
	printed string
	// pod: the condition Ready has the same words about a pod.
	pod bool
}

// fixed are manifests that do not depend on the spec.
func fixed(text string) func(map[string]string) string {
	return func(map[string]string) string { return text }
}

// deployment is the text of a Deployment with one pod: its annotations, and further fields of its spec.
func deployment(name, annotations, fields string, container ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: %s}}
  %s
  template:
    metadata: {labels: {app: %s}, annotations: {%s}}
    spec:
      containers: [{name: app, image: "registry.example.com/app:1"%s}]
`, name, name, fields, name, annotations, strings.Join(append([]string{""}, container...), ", "))
}

const (
	crashing  = `podsim.corbel.run/waiting: CrashLoopBackOff`
	settings  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}"
	neverTrue = `podsim.corbel.run/never-ready: "true"`
)

func (b *bed) deleteComponent(namespace string) {
	check.NoError(b, b.client.Delete(b.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main"}}))
}

// scenarios are the causes. Their namespaces are named in the same order.
func scenarios() []scenario {
	all := []scenario{
		{
			name:      "an image that cannot be pulled",
			manifests: fixed(strings.Replace(deployment("web", "", ""), "app:1", "app:broken", 1)),
			code:      ImagePull, object: "Pod s01/web-", field: "spec.containers[app].image", command: "kubectl -n s01 describe pod web-",
			message: "ImagePullBackOff: image registry.example.com/app:broken", pod: true,
		},
		{
			name: "a container that crashes",
			manifests: fixed(deployment("web", crashing+`, podsim.corbel.run/log: "starting\ncannot log in to https://web:hunter2@db with password correct-horse"`, "",
				`env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}]`)),
			before: func(b *bed) {
				b.apply("s02", "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: correct-horse}")
			},
			code: Crash, object: "Pod s02/web-", command: "--previous", message: "CrashLoopBackOff (exit code 1), 1 restart",
			pod: true,
		},
		{
			name: "a container that uses too much memory",
			manifests: fixed(deployment("web", crashing+`, podsim.corbel.run/reason: OOMKilled, podsim.corbel.run/exit-code: "137"`, "",
				`resources: {limits: {memory: 64Mi}}`)),
			code: OutOfMemory, object: "Pod s03/web-", field: "spec.containers[app].resources.limits.memory", command: "kubectl -n s03 get pod web-",
			message: "exit code 137, OOMKilled: the memory limit is 64Mi", pod: true,
		},
		{
			name:      "a quota",
			manifests: fixed(deployment("web", "", "")),
			before: func(b *bed) {
				b.apply("s04", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: {pods: 0}}")
			},
			code: Quota, object: "ResourceQuota s04/small", field: "spec.hard[pods]", command: "kubectl -n s04 describe resourcequota small",
			message: "requested: pods=1, used: pods=0, limited: pods=0",
		},
		{
			name: "a claim without a volume",
			manifests: fixed(deployment("web", "", "", "volumeMounts: [{name: data, mountPath: /data}]") +
				"      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n" + `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`),
			code: VolumeUnbound, object: "PersistentVolumeClaim s05/data", field: "spec.storageClassName", command: "kubectl get storageclasses",
			message: `storageclass.storage.k8s.io "fast" not found`,
		},
		{
			name:      "a pod that no node takes",
			manifests: fixed(deployment("web", "", "") + "      nodeSelector: {disk: ssd}\n"),
			code:      Unschedulable, object: "Pod s06/web-", field: "spec.nodeSelector", command: "kubectl get nodes --show-labels",
			message: "didn't match Pod's node affinity/selector", pod: true,
		},
		{
			name: "a key of a Secret that does not exist",
			manifests: fixed(deployment("web", "", "",
				`env: [{name: DATABASE_URL, valueFrom: {secretKeyRef: {name: database, key: url}}}]`)),
			before: func(b *bed) {
				b.apply("s07", "apiVersion: v1\nkind: Secret\nmetadata: {name: database}\nstringData: {user: shop, host: db}")
			},
			code: MissingReference, object: "Secret s07/database", field: "data.url", command: "kubectl -n s07 get secret database",
			message: "the key url does not exist (keys: host, user)", pod: true,
		},
		{
			name:      "a refusal of an admission policy",
			manifests: fixed(strings.Replace(settings, "{name: settings}", "{name: settings, labels: {forbidden: here}}", 1)),
			before: func(b *bed) {
				b.apply("", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-such-labels}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "!has(object.metadata.labels) || !('forbidden' in object.metadata.labels)", message: the label forbidden is not allowed}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-such-labels}
spec: {policyName: no-such-labels, validationActions: [Deny]}
`)
			},
			code: AdmissionRefused, object: "ValidatingAdmissionPolicy no-such-labels", command: "kubectl get validatingadmissionpolicy no-such-labels",
			message: "the label forbidden is not allowed",
		},
		{
			name: "a right that is missing", manifests: fixed(settings),
			spec:   widget.Spec{ImpersonationSpec: component.ImpersonationSpec{ServiceAccountName: "deployer"}},
			before: func(b *bed) { b.apply("s09", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer}") },
			code:   RightsMissing, object: "ServiceAccount s09/deployer", command: "kubectl -n s09 auth can-i",
			field: "in namespace s09 rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create]}]",
		},
		{
			name: "a field that cannot be changed",
			manifests: func(values map[string]string) string {
				text := deployment("web", "", "")
				if values["phase"] == "2" {
					return strings.NewReplacer("matchLabels: {app: web}", "matchLabels: {app: other}", "labels: {app: web}", "labels: {app: other}").Replace(text)
				}
				return text
			},
			ready: true,
			after: func(b *bed) {
				w := b.widget("s10")
				w.Spec.Values = map[string]string{"phase": "2"}
				check.NoError(b, b.client.Update(b.Context(), w))
			},
			code: ImmutableField, object: "Deployment s10/web", field: "spec.selector", command: "kubectl -n s10 get deployment web -o jsonpath='{.spec.selector}'",
			message: "recreate-on-immutable",
		},
		{
			name: "a finalizer of another controller", manifests: fixed(settings), ready: true,
			after: func(b *bed) {
				held := &corev1.ConfigMap{}
				check.NoError(b, b.client.Get(b.Context(), client.ObjectKey{Namespace: "s11", Name: "settings"}, held))
				held.Finalizers = append(held.Finalizers, "example.com/hold")
				check.NoError(b, b.client.Update(b.Context(), held))
				b.deleteComponent("s11")
			},
			code: ForeignFinalizer, object: "ConfigMap s11/settings", field: "metadata.finalizers", command: "kubectl -n s11 get configmap settings",
			message: "example.com/hold",
		},
		{
			name: "an instance of another owner",
			manifests: fixed(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.why.example.com}
spec:
  group: why.example.com
  scope: Namespaced
  names: {kind: Queue, plural: queues, singular: queue, listKind: QueueList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`),
			ready: true,
			after: func(b *bed) {
				env.Until(b, "an instance is created", func() error {
					queue := parse(b, "apiVersion: why.example.com/v1\nkind: Queue\nmetadata: {name: orders, namespace: s13}")[0]
					return b.client.Create(b.Context(), queue)
				})
				b.deleteComponent("s12")
			},
			code: ForeignInstance, object: "CustomResourceDefinition queues.why.example.com", command: "kubectl get queues.why.example.com",
			message: "1 foreign instance",
		},
		{
			name:      "a namespace that is being deleted",
			manifests: fixed(strings.Replace(settings, "{name: settings}", "{name: settings, namespace: ending}", 1)),
			before: func(b *bed) {
				b.createNamespace("ending")
				b.apply("ending", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}")
				check.NoError(b, b.client.Delete(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending"}}))
			},
			code: NamespaceEnds, object: "Namespace ending", field: "configmaps", command: "kubectl -n ending get configmaps",
			message: "example.com/hold in 1 resource instances",
		},
		{
			name: "another owner", manifests: fixed(settings),
			before: func(b *bed) {
				b.apply("s14", strings.Replace(settings, "{name: settings}", "{name: settings, annotations: {meta.helm.sh/release-name: corner, meta.helm.sh/release-namespace: s14}}", 1))
			},
			code: OwnerConflict, object: "ConfigMap s14/settings", command: "kubectl -n s14 get configmap settings", message: "belongs to Helm release",
		},
		{
			name: "a fight with another client", manifests: fixed(settings), ready: true,
			disturb: func(b *bed) {
				fought := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "s15", Name: "settings"}}
				check.NoError(b, b.client.Patch(b.Context(), fought, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"c"}}`)), client.FieldOwner("kubectl-patch")))
			},
			code: FieldConflict, object: "ConfigMap s15/settings", field: "data.a", command: "--show-managed-fields", message: "kubectl-patch changes it again and again",
		},
		{
			name: "a type that is not served", manifests: fixed("apiVersion: stream.example.com/v1\nkind: Stream\nmetadata: {name: orders}"),
			code: TypeNotServed, object: "Stream orders", field: "apiVersion", command: "kubectl api-resources --api-group=stream.example.com",
			message: "is not served by the cluster",
		},
		{
			name: "an APIService without a server",
			manifests: fixed(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.example.com}
spec: {group: down.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: s17, name: nothing}}
`),
			code: APIServiceDown, object: "Service s17/nothing", command: "kubectl -n s17 get services", message: "does not exist",
		},
		{
			name: "a hook of the deletion that fails",
			manifests: fixed(settings + `
---
apiVersion: batch/v1
kind: Job
metadata: {name: backup, annotations: {test.corbel.run/run-on: pre-delete}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {podsim.corbel.run/exit-code: "3", podsim.corbel.run/log: the bucket is full}}
    spec: {restartPolicy: Never, containers: [{name: app, image: "registry.example.com/app:1"}]}
`),
			ready: true, after: func(b *bed) { b.deleteComponent("s18") },
			code: HookFailed, object: "Pod s18/backup-", command: "kubectl -n s18 logs backup-", message: "container app ended with exit code 3",
			printed: "the bucket is full",
		},
		{
			name: "a wave that is not ready",
			manifests: fixed(deployment("db", neverTrue, "") + "\n---\n" +
				strings.Replace(settings, "{name: settings}", `{name: settings, annotations: {test.corbel.run/apply-order: "1"}}`, 1)),
			code: ProbeFails, object: "Pod s19/db-", field: "spec.containers[app].readinessProbe", command: "kubectl -n s19 describe pod db-",
			message: "container app is not ready", heldBack: "ConfigMap s19/settings (waits for Deployment s19/db", pod: true,
		},
		{
			name: "a dependency that is not ready",
			manifests: fixed(deployment("db", neverTrue, "") + "\n---\n" +
				strings.Replace(deployment("web", "", ""), "{name: web}", "{name: web, annotations: {test.corbel.run/depends-on: apps/Deployment/db}}", 1)),
			code: ProbeFails, object: "Pod s20/db-", field: "spec.containers[app].readinessProbe", command: "kubectl -n s20 describe pod db-",
			message: "container app is not ready", heldBack: "Deployment s20/web (waits for Deployment s20/db, which it depends on", pod: true,
		},
		{
			name: "a component that is suspended", manifests: fixed(settings),
			annotations: map[string]string{"test.corbel.run/suspend": "true", "test.corbel.run/suspend-reason": "incident 7"},
			code:        Suspended, object: "Widget s21/main", field: "metadata.annotations[test.corbel.run/suspend]",
			command: "corbel resume widget.test.corbel.run main -n s21", message: "incident 7",
		},
		{
			name: "a kubeconfig that is gone", manifests: fixed(settings),
			spec: widget.Spec{ClientSpec: component.ClientSpec{KubeConfig: &component.KubeConfigSpec{
				SecretRef: component.SecretKeyReference{Name: "cluster-paris"}}}},
			code: KubeconfigMissing, object: "Secret s22/cluster-paris", command: "kubectl -n s22 get secrets", message: "does not exist",
		},
		{
			name: "an operator that does not run", operator: "down", manifests: fixed(settings), ready: true, ahead: 5 * time.Minute,
			code: OperatorDown, object: "Deployment down/test-operator", field: "spec.replicas", command: "kubectl -n down scale deployment test-operator --replicas=1",
			message: "is scaled to 0 replicas",
		},
		{
			name: "a lease that no process holds", operator: "silent", manifests: fixed(settings), ready: true,
			code: LeaseNotHeld, object: "Lease silent/test.corbel.run", field: "spec.holderIdentity", command: "kubectl -n silent logs deployment/test-operator",
			message: "is held by no process",
		},
		{
			name: "a component that is Ready, of an operator that does not run", operator: "silent", manifests: fixed(settings), ready: true,
			object: "Lease silent/test.corbel.run", command: "kubectl -n silent logs deployment/test-operator",
		},
		{
			name:      "a pull Secret that does not exist",
			manifests: fixed(strings.Replace(deployment("web", "", ""), "app:1", "app:broken", 1) + "      imagePullSecrets: [{name: nope}]\n"),
			code:      MissingReference, object: "Secret s26/nope", command: "kubectl -n s26 get secrets", message: "does not exist", pod: true,
		},
		{
			name: "a ServiceAccount that does not exist", manifests: fixed(deployment("web", "", "") + "      serviceAccountName: nope\n"),
			code: MissingReference, object: "ServiceAccount s27/nope", command: "kubectl -n s27 get serviceaccounts", message: "does not exist",
		},
		{
			name: "a PriorityClass that does not exist", manifests: fixed(deployment("web", "", "") + "      priorityClassName: nope\n"),
			code: MissingReference, object: "PriorityClass nope", command: "kubectl get priorityclasses", message: "does not exist",
		},
		{
			name: "a LimitRange", manifests: fixed(deployment("web", "", "", "resources: {limits: {cpu: 2}}")),
			before: func(b *bed) {
				b.apply("s29", "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small}\nspec: {limits: [{type: Container, max: {cpu: 100m}}]}")
			},
			code: Quota, object: "LimitRange s29/small", field: "spec.limits[Container].max[cpu]", command: "kubectl -n s29 describe limitrange small",
			message: "maximum cpu usage per Container is 100m, but limit is 2",
		},
		{
			name: "a level of Pod Security", manifests: fixed(deployment("web", "", "")),
			before: func(b *bed) {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "s30"}}
				patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
				check.NoError(b, b.client.Patch(b.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))))
			},
			code: AdmissionRefused, object: "Namespace s30", field: "metadata.labels[pod-security.kubernetes.io/enforce]", command: "kubectl get namespace s30 --show-labels",
			message: "seccompProfile.type", // the last reason
		},
		{
			name: "a webhook that does not answer", manifests: fixed(settings),
			before: func(b *bed) {
				b.apply("s31", "apiVersion: v1\nkind: Service\nmetadata: {name: policy}\nspec: {selector: {app: policy}, ports: [{port: 443}]}")
				b.apply("", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policy.example.org}
webhooks:
- name: check.policy.example.org
  clientConfig: {service: {namespace: s31, name: policy}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: s31}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
`)
			},
			code: WebhookDown, object: "Service s31/policy", field: "spec.selector", command: "kubectl -n s31 get pods -l app=policy", message: "has no ready endpoints",
		},
		{
			name: "a Service that selects no pod", ready: true,
			manifests: fixed("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: wbe}, ports: [{port: 80}]}"),
			object:    "Service s32/web", command: "kubectl -n s32 get pods --show-labels",
		},
	}
	for i := range all {
		all[i].namespace = fmt.Sprintf("s%02d", i+1)
	}
	return all
}
