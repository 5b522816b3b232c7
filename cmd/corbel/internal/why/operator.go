// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/lease"
)

// dead is why the operator of a component does not work.
type dead struct {
	code    Code
	command string
	links   []Link
}

// operator reports whether the operator of the component works; settled is false as long as questions are open. An operator
// that nothing is known about counts as working.
func (e *explainer) operator(seen bool) (down dead, settled bool) {
	operator := e.facts.Status.Inventory.Operator
	if operator == nil && !seen {
		if operator, settled = e.likelyOperator(); !settled {
			return dead{}, false
		}
		if operator == nil {
			return dead{OperatorDown, "kubectl get deployments --all-namespaces", []Link{{Object: e.component(),
				Message: fmt.Sprintf("no operator has reconciled it, and none is known that reconciles objects of the group %s", e.component().Group)}}}, true
		}
	}
	if operator == nil {
		return dead{}, true
	}
	namespace, name, hasLease := strings.Cut(operator.Lease, "/")
	var lock Link
	if hasLease {
		lock.Object = known("Lease", namespace, name)
		answer, ok := e.ask(Question{Verb: verbGet, Object: lock.Object})
		switch {
		case !ok:
			return dead{}, false
		case answer.isMissing():
			lock.Message = "does not exist"
		case !answer.exists():
			return dead{}, true
		default:
			var held bool
			if lock, held = e.lease(lock.Object, answer.Objects); held {
				e.runs = true
				return dead{}, true
			}
		}
	} else {
		namespace = operator.Namespace
	}
	answer, ok := e.ask(Question{Verb: verbList, Object: known("Deployment", namespace, "")})
	if !ok {
		return dead{}, false
	}
	deployment := e.operatorDeployment(answer.Objects, name)
	switch {
	case deployment == nil && !hasLease:
		return dead{}, true // it may run in another way
	case deployment == nil:
		return dead{OperatorDown, kubectl(namespace, "get", "deployments,pods"), []Link{lock}}, true
	}
	o := known("Deployment", namespace, deployment.GetName())
	ready, _, _ := unstructured.NestedInt64(deployment.Object, "status", "readyReplicas")
	replicas, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	link := Link{Object: o, Message: fmt.Sprintf("the operator: %d of %d replicas ready", ready, replicas), Since: sinceUnready(*deployment)}
	switch {
	case ready > 0 && !hasLease:
		e.runs = true
		return dead{}, true
	case ready > 0:
		link.Since = nil
		return dead{LeaseNotHeld, kubectl(namespace, "logs", "deployment/"+o.Name, "--tail=20"), []Link{link, lock}}, true
	case replicas == 0:
		link.Field, link.Message = "spec.replicas", "runs the operator, and is scaled to 0 replicas"
		return dead{OperatorDown, o.kubectl("scale", "--replicas=1"), []Link{link}}, true
	}
	return e.deadPods(o, link, *deployment), true
}

// deadPods lets the pods of an operator say why it does not run.
func (e *explainer) deadPods(o Object, link Link, deployment unstructured.Unstructured) dead {
	inner := &explainer{facts: e.facts, now: e.now}
	inner.facts.Answers = map[Question]Answer{{Verb: verbGet, Object: o}: {Objects: []unstructured.Unstructured{deployment}}}
	for q, a := range e.facts.Answers {
		inner.facts.Answers[q] = a
	}
	inner.workload(o, link.Message)
	e.open = append(e.open, inner.open...)
	e.chain.Unknown = append(e.chain.Unknown, inner.chain.Unknown...)
	links := inner.chain.Links
	links[0].Message = link.Message
	return dead{OperatorDown, inner.chain.Command, links}
}

// lease says whether a lease is held and, if not, since when.
func (e *explainer) lease(o Object, objects []unstructured.Unstructured) (link Link, held bool) {
	link.Object = o
	leases := typed[coordinationv1.Lease](objects)
	if len(leases) == 0 {
		return link, true
	}
	holding := lease.Of(&leases[0], e.now)
	if !holding.Renewed.IsZero() {
		link.Since = &metav1.Time{Time: holding.Renewed}
	}
	switch {
	case holding.Held:
	case holding.Holder == "":
		link.Field, link.Message = "spec.holderIdentity", "is held by no process"
	default:
		link.Field = "spec.renewTime"
		link.Message = fmt.Sprintf("was renewed last by %s, and lasts for %s", holding.Holder, holding.Duration)
	}
	return link, holding.Held
}

// operatorDeployment returns the Deployment of the operator in its namespace: the only one, or the one with a name
// or label that has a part of the name of the reconciler or the kind of the component.
func (e *explainer) operatorDeployment(all []unstructured.Unstructured, lease string) *unstructured.Unstructured {
	first, _, _ := strings.Cut(cmp.Or(e.facts.Reconciler, lease, e.component().Group), ".")
	for _, word := range []string{first, strings.ToLower(e.component().Kind)} {
		for i := range all {
			names := []string{all[i].GetName()}
			for _, value := range all[i].GetLabels() {
				names = append(names, value)
			}
			if strings.Contains(strings.Join(names, " "), word) {
				return &all[i]
			}
		}
	}
	if len(all) == 1 {
		return &all[0]
	}
	return nil
}

// likelyOperator returns the operator of a component that no operator has seen: that of another component of
// its type, else one with a lease that is named for the group.
func (e *explainer) likelyOperator() (*v1alpha1.InventoryOperator, bool) {
	kind := e.component()
	kind.Name, kind.Namespace = "", ""
	siblings, ok := e.ask(Question{Verb: verbList, Object: kind})
	if !ok {
		return nil, false
	}
	for _, sibling := range siblings.Objects {
		operator, _, _ := unstructured.NestedStringMap(sibling.Object, "status", "inventory", "operator")
		if operator["namespace"] != "" {
			return &v1alpha1.InventoryOperator{Namespace: operator["namespace"], Lease: operator["lease"]}, true
		}
	}
	leases, ok := e.ask(Question{Verb: verbList, Object: known("Lease", "", ""), Fields: "metadata.name=" + kind.Group})
	if !ok {
		return nil, false
	}
	for _, lease := range leases.Objects {
		return &v1alpha1.InventoryOperator{Namespace: lease.GetNamespace(), Lease: lease.GetNamespace() + "/" + lease.GetName()}, true
	}
	return nil, true
}

// operatorLogs is the command that shows what the operator logs.
func (e *explainer) operatorLogs() string {
	operator := e.facts.Status.Inventory.Operator
	if operator == nil {
		return e.component().kubectl("describe")
	}
	return kubectl(operator.Namespace, "get", "pods")
}
