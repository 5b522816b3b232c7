// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// componentSummary is a component as a list shows it.
type componentSummary struct {
	Type       string      `json:"type"`
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	UID        types.UID   `json:"uid"`
	Generation int64       `json:"generation"`
	State      string      `json:"state"`
	Ready      bool        `json:"ready"`
	UpToDate   bool        `json:"upToDate"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	Progress   string      `json:"progress,omitempty"`
	Revision   int64       `json:"revision,omitempty"`
	Created    metav1.Time `json:"created"`
	Deleting   bool        `json:"deleting,omitempty"`
	Suspended  bool        `json:"suspended,omitempty"`
	RolledBack string      `json:"rolledBack,omitempty"` // the revision of the annotation
	Drifted    string      `json:"drifted,omitempty"`    // what the operator reports, and leaves as it is
	Reconciler string      `json:"reconciler,omitempty"`
	Requires   string      `json:"requires,omitempty"` // the keys of what its spec requires, separated by spaces
}

func componentOf(c inspect.Component) componentSummary {
	ready := c.Ready()
	state, message := c.Summary()
	if state == "" {
		state = "Not reconciled yet"
		if c.Mistake == nil {
			message = "" // it says the same
		}
	}
	drifted := ""
	if condition := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDrifted); condition != nil && condition.Status == metav1.ConditionTrue {
		drifted = condition.Message
	}
	var requires []string
	for _, r := range why.Requirements(c.Object) {
		requires = append(requires, strings.Join([]string{r.Group, r.Kind, r.Namespace, r.Name}, "/"))
	}
	return componentSummary{
		Type: c.Type.String(), Kind: c.Type.Kind, APIVersion: c.Type.GroupVersion().String(),
		Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(), UID: c.Object.GetUID(), Generation: c.Object.GetGeneration(),
		State: state, Ready: ready.Status == metav1.ConditionTrue, UpToDate: c.Status.ObservedGeneration == c.Object.GetGeneration(),
		Reason: ready.Reason, Message: message, Progress: c.Status.Progress, Revision: c.Status.Revision,
		Created: c.Object.GetCreationTimestamp(), Deleting: c.Object.GetDeletionTimestamp() != nil,
		Suspended:  c.Status.State == v1alpha1.StateSuspended,
		RolledBack: c.Annotation(vocabulary.AnnotationRollbackTo), Drifted: drifted, Reconciler: c.Reconciler, Requires: strings.Join(requires, " "),
	}
}

// address is how requests name it.
func (c componentSummary) address() address { return address{c.Type, c.Namespace, c.Name} }
