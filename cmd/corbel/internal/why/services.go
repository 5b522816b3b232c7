// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// backend explains a Service that should answer the API server, and returns the next command.
func (e *explainer) backend(o Object) (link Link, command string) {
	link, command = Link{Object: o, Message: "does not answer"}, o.kubectl("describe")
	live, answered := e.get(o)
	if live == nil && answered {
		link.Message = "does not exist"
		return link, o.listing()
	}
	if live == nil {
		return link, command
	}
	endpoints, answered := e.ask(Question{Verb: verbList, Object: endpointSlices(o.Namespace), Labels: discoveryv1.LabelServiceName + "=" + o.Name})
	if !answered || !endpoints.exists() {
		return link, command
	}
	ready := 0
	for _, slice := range typed[discoveryv1.EndpointSlice](endpoints.Objects) {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	link.Message = fmt.Sprintf("gives no valid answer; ready endpoints: %d", ready)
	for _, service := range typed[corev1.Service]([]unstructured.Unstructured{*live}) {
		if selector := selectorText(service); ready == 0 && selector != "" {
			link.Field, link.Message = "spec.selector", "has no ready endpoints; its selector is "+selector
			command = kubectl(o.Namespace, "get", "pods", "-l", selector)
		}
	}
	return link, command
}

func endpointSlices(namespace string) Object { return known("EndpointSlice", namespace, "") }

// selectorText is the selector of the pods of a Service, as a query has it; it is empty if there is none.
func selectorText(service corev1.Service) string {
	if len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName {
		return ""
	}
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})
}

// noteServices notes the Services of a component that select no pod. That is no error, because there need not be one. Pods are listed only
// for Services without endpoints, and EndpointSlices have the labels of their Services, so two requests are enough in most cases.
func (e *explainer) noteServices() {
	if e.remote || e.facts.Status.OwnerID == "" || e.facts.Reconciler == "" {
		return
	}
	owned := e.facts.Reconciler + "/" + vocabulary.LabelOwnerID + "=" + e.facts.Status.OwnerID
	var namespaces []string
	for _, item := range e.facts.Status.Inventory.Items {
		if item.Group == "" && item.Kind == "Service" && !slices.Contains(namespaces, item.Namespace) {
			namespaces = append(namespaces, item.Namespace)
		}
	}
	for _, namespace := range namespaces {
		services, listed := e.ask(Question{Verb: verbList, Object: known("Service", namespace, ""), Labels: owned})
		endpoints, answered := e.ask(Question{Verb: verbList, Object: endpointSlices(namespace), Labels: owned})
		if !listed || !answered || !endpoints.exists() {
			continue
		}
		for _, service := range typed[corev1.Service](services.Objects) {
			selector := selectorText(service)
			if selector == "" || slices.ContainsFunc(typed[discoveryv1.EndpointSlice](endpoints.Objects), func(s discoveryv1.EndpointSlice) bool {
				return s.Labels[discoveryv1.LabelServiceName] == service.Name && len(s.Endpoints) > 0
			}) {
				continue
			}
			if pods, ok := e.ask(Question{Verb: verbList, Object: known("Pod", namespace, ""), Labels: selector}); ok && pods.exists() && len(pods.Objects) == 0 {
				e.chain.Notices = append(e.chain.Notices, fmt.Sprintf("%s selects no pod: its selector is %s", known("Service", namespace, service.Name), selector))
				e.chain.Command = cmp.Or(e.chain.Command, kubectl(namespace, "get", "pods", "--show-labels"))
			}
		}
	}
}
