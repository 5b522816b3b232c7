// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/internal/pods"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/status"
)

func isWorkload(o Object) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}, o.Kind)
}

// workload explains why a workload is not ready: in most cases one of its pods says it.
func (e *explainer) workload(o Object, said string) {
	said, _, _ = strings.Cut(said, "; pod ") // the pod follows as a link of its own
	link := Link{Object: o, Message: said}
	live, answered := e.get(o)
	if live == nil {
		if answered {
			link.Message = "does not exist"
		}
		e.found(Unclassified, o.kubectl("describe"), link)
		return
	}
	if computed := status.Analyze(live, status.Options{}); computed.Message != "" {
		link.Message = computed.Message
	}
	link.Since = sinceUnready(*live)
	if live.GetDeletionTimestamp() != nil {
		link.Since = live.GetDeletionTimestamp()
	}
	if m := refusalOf(*live); m != "" {
		if link.Message = "its pods cannot be created: " + m; e.byWords(statement{object: o, text: m}) {
			e.chain.Links[0].Since = link.Since
			return
		}
	}
	selector := selectorOf(*live)
	if selector == "" {
		e.found(Unclassified, o.kubectl("describe"), link)
		return
	}
	answer, ok := e.ask(Question{Verb: verbList, Object: known("Pod", o.Namespace, ""), Labels: selector})
	all := podsOf(answer.Objects)
	worst, bad := pods.Worst(all)
	switch {
	case ok && answer.exists() && len(all) == 0:
		e.withoutPods(o, link, said)
	case !bad:
		code := Unclassified
		if o.Kind == "Job" {
			code = JobFailed
		}
		e.found(code, o.kubectl("describe"), link)
	default:
		e.pod(link, worst, all)
	}
	if e.chain.Code == Crash && o.Kind == "Job" {
		e.chain.Code = JobFailed
	}
}

// withoutPods explains why a workload has no pods: the events of its controller say it.
func (e *explainer) withoutPods(o Object, link Link, said string) {
	if replicas, found, _ := unstructured.NestedInt64(e.facts.answered(o).Object, "spec", "replicas"); found && replicas == 0 {
		link.Field, link.Message = "spec.replicas", "has 0 replicas, as its manifest or another client says"
		e.found(Unclassified, o.kubectl("get", "-o", "yaml", "--show-managed-fields"), link)
		return
	}
	if messages := e.events(o); len(messages) > 0 {
		s := statement{object: o, text: messages[0]}
		if e.byWords(s) {
			return
		}
		link.Message += ": " + sentence.Shorten(s.text, maxMessage)
	} else if e.byWords(statement{object: o, text: said}) {
		return
	}
	e.found(Unclassified, o.kubectl("describe"), link)
}

// answered returns an object that was asked for.
func (f Facts) answered(o Object) unstructured.Unstructured {
	if answer := f.Answers[Question{Verb: verbGet, Object: o}]; len(answer.Objects) > 0 {
		return answer.Objects[0]
	}
	return unstructured.Unstructured{}
}

// refusalOf returns why the controller of a workload cannot create pods.
func refusalOf(live unstructured.Unstructured) string {
	if failure := conditionOf(live, "ReplicaFailure"); failure != nil && text(*failure, "status") == "True" {
		return sentence.OneLine(text(*failure, "message"))
	}
	return ""
}

// sinceUnready is since when a workload is not ready, as a condition of it says.
func sinceUnready(live unstructured.Unstructured) *metav1.Time {
	for _, kind := range []string{"Available", "Failed", "ReplicaFailure", "Progressing"} {
		c := conditionOf(live, kind)
		if c != nil && (text(*c, "status") == "True") == (kind == "Failed" || kind == "ReplicaFailure") {
			return parseTime(text(*c, "lastTransitionTime"))
		}
	}
	return nil
}

func parseTime(at string) *metav1.Time {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}

// selectorOf returns the selector of the pods of a workload, as a query has it.
func selectorOf(live unstructured.Unstructured) string {
	content, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if len(content) == 0 || runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
		return ""
	}
	return metav1.FormatLabelSelector(selector)
}

// pod explains what is wrong with a pod.
func (e *explainer) pod(workload Link, f pods.Finding, all []corev1.Pod) {
	namespace := workload.Object.Namespace
	o := known("Pod", namespace, f.Pod)
	link := Link{Object: o, Message: f.Text}
	if !f.Since.IsZero() {
		link.Since = &metav1.Time{Time: f.Since}
	}
	switch {
	case f.Restarts == 1:
		link.Message += ", 1 restart"
	case f.Restarts > 1:
		link.Message += fmt.Sprintf(", %d restarts", f.Restarts)
	}
	if more := similar(all, f); more > 0 {
		link.Message += fmt.Sprintf(" (and %d more)", more)
	}
	index := slices.IndexFunc(all, func(p corev1.Pod) bool { return p.Name == f.Pod })
	field := containerField(all[index], f.Container)
	switch f.Problem {
	case pods.ImagePull:
		var secrets []reference
		for _, secret := range all[index].Spec.ImagePullSecrets {
			secrets = append(secrets, reference{known("Secret", namespace, secret.Name), "", "spec.imagePullSecrets[" + secret.Name + "]"})
		}
		if link.Field = field + ".image"; !e.dangling(secrets, "", workload, link) {
			e.found(ImagePull, o.kubectl("describe"), workload, link)
		}
	case pods.OutOfMemory:
		link.Field = field + ".resources.limits.memory"
		path := "." + strings.Replace(field, "["+f.Container+"]", `[?(@.name=="`+f.Container+`")]`, 1)
		e.found(OutOfMemory, o.kubectl("get", "-o", "jsonpath={"+path+".resources}"), workload, link)
	case pods.MissingReference:
		missed := reference{known(f.Reference.Kind, namespace, f.Reference.Name), f.Reference.Key, field + ".env"}
		for _, container := range slices.Concat(all[index].Spec.InitContainers, all[index].Spec.Containers) {
			for _, r := range environmentOf(all[index], container) {
				if container.Name == f.Container && r.object == missed.object && (missed.key == "" || r.key == missed.key) {
					missed.field = r.field
				}
			}
		}
		if !e.dangling([]reference{missed}, f.Text, workload, link) {
			state := "exists now"
			if missed.key != "" {
				state = "the key " + missed.key + " exists now"
			}
			e.found(MissingReference, o.kubectl("describe"), workload, link, Link{Object: missed.object, Message: state + "; the kubelet tries again by itself"})
		}
	case pods.Crash:
		e.crash(workload, link, f, all[index])
	case pods.Unschedulable:
		message := scheduled(all[index])
		link.Field = schedulingField(message)
		command := schedulingCommand(link.Field)
		if asked := askedFor(all[index], message); asked != "" {
			link.Message = strings.TrimRight(link.Message, ".") + "; it asks for " + asked
		}
		if link.Field == selectorField && all[index].Spec.Affinity == nil {
			link.Field = "spec.nodeSelector"
		}
		e.found(Unschedulable, command, workload, link)
	case pods.VolumeUnbound:
		e.unbound(workload, link, all[index])
	case pods.NotReady:
		link.Field = field + ".readinessProbe"
		e.found(ProbeFails, o.kubectl("describe"), workload, link)
	case pods.Starting:
		messages := e.events(o)
		for _, message := range messages {
			if m := mountOf.FindStringSubmatch(message); m != nil && e.dangling(volumeOf(all[index], m[1]), message, workload, link) {
				return
			}
		}
		if len(messages) > 0 {
			link.Message += ": " + sentence.Shorten(messages[0], maxMessage)
		}
		e.found(Unclassified, o.kubectl("describe"), workload, link)
	default:
		e.found(Unclassified, o.kubectl("describe"), workload, link)
	}
}

// mountOf is the event about a volume that cannot be mounted.
var mountOf = regexp.MustCompile(`MountVolume\.SetUp failed for volume "([^"]+)"`)

// similar counts the other pods with the same problem.
func similar(all []corev1.Pod, f pods.Finding) int {
	count := 0
	for _, pod := range all {
		if other, bad := pods.Worst([]corev1.Pod{pod}); bad && other.Pod != f.Pod && other.Problem == f.Problem {
			count++
		}
	}
	return count
}

// containerField is the path of a container in a pod.
func containerField(pod corev1.Pod, name string) string {
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		return "spec.initContainers[" + name + "]"
	}
	return "spec.containers[" + name + "]"
}

// scheduled is the message of the scheduler, of which the finding has the beginning.
func scheduled(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// selectorField are the fields of the pod that select nodes.
const selectorField = "spec.nodeSelector, spec.affinity.nodeAffinity"

// insufficient is a resource that nodes lack, as the scheduler says.
var insufficient = regexp.MustCompile(`Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)`)

// askedFor is what the pod asks of a node, as far as the message of the scheduler is about it.
func askedFor(pod corev1.Pod, message string) string {
	var asked []string
	if strings.Contains(message, "affinity/selector") {
		for _, label := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
			asked = append(asked, label+"="+pod.Spec.NodeSelector[label])
		}
	}
	for _, m := range insufficient.FindAllStringSubmatch(message, -1) {
		for _, container := range pod.Spec.Containers {
			if quantity, ok := container.Resources.Requests[corev1.ResourceName(m[1])]; ok {
				asked = append(asked, fmt.Sprintf("%s %s in container %s", m[1], quantity.String(), container.Name))
			}
		}
	}
	return strings.Join(slices.Compact(asked), ", ")
}

// schedulingField is the field of the pod that no node satisfies, as the scheduler says.
func schedulingField(message string) string {
	for _, hint := range [][2]string{
		{"untolerated taint", "spec.tolerations"},
		{"affinity/selector", selectorField},
		{"anti-affinity", "spec.affinity.podAntiAffinity"},
		{"affinity", "spec.affinity.podAffinity"},
		{"topology spread", "spec.topologySpreadConstraints"},
		{"Insufficient", "spec.containers[*].resources.requests"},
		{"free ports", "spec.containers[*].ports[*].hostPort"},
	} {
		if strings.Contains(message, hint[0]) {
			return hint[1]
		}
	}
	return ""
}

func schedulingCommand(field string) string {
	switch {
	case field == "spec.tolerations":
		return "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"
	case strings.Contains(field, "resources"):
		return "kubectl describe nodes"
	}
	return "kubectl get nodes --show-labels"
}

// unbound explains a claim of a pod that has no volume.
func (e *explainer) unbound(workload, link Link, pod corev1.Pod) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		if e.dangling(volumeOf(pod, volume.Name), link.Message, workload, link) {
			return
		}
		o := known("PersistentVolumeClaim", pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if live, _ := e.get(o); live != nil && text(*live, "status", "phase") != "Bound" {
			e.chain.Links = append(e.chain.Links, workload, link)
			e.claim(o, "is not bound to a volume")
			return
		}
	}
	e.found(VolumeUnbound, link.Object.kubectl("describe"), workload, link)
}

// claim explains why a claim has no volume, as its events say.
func (e *explainer) claim(o Object, said string) {
	link, command := Link{Object: o, Message: said}, o.kubectl("describe")
	if live, _ := e.get(o); live != nil {
		link.Message = "is not bound to a volume"
		link.Since = new(live.GetCreationTimestamp())
		if class := text(*live, "spec", "storageClassName"); class != "" {
			link.Field = "spec.storageClassName"
			link.Message += " of class " + class
		}
	}
	if messages := e.events(o); len(messages) > 0 {
		link.Message += ": " + sentence.Shorten(messages[0], maxMessage)
		if strings.Contains(messages[0], "storageclass") {
			command = "kubectl get storageclasses"
		}
	}
	e.found(VolumeUnbound, command, link)
}

// crash explains a container that ends. What its environment refers to is read, because a key that is missing is often
// the cause. Its log is not shown, because it may hold values of Secrets.
func (e *explainer) crash(workload, link Link, f pods.Finding, pod corev1.Pod) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == f.Container && e.dangling(environmentOf(pod, container), "", workload, link) {
			return
		}
	}
	e.found(Crash, logsOf(link.Object, f.Container, f.Restarts > 0), workload, link)
}

// logsOf returns the command for the log of a container, as it runs or as it ran before.
func logsOf(pod Object, container string, previous bool) string {
	logs := strings.Replace(pod.kubectl("logs", "-c", container), "logs pod ", "logs ", 1)
	if previous {
		logs += " --previous"
	}
	return logs
}
