// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// reasonUnknownAnnotation means that the component has annotations with the prefix of the operator that have no effect, because
// Corbel does not know them, or not on a component. The note names them.
//
// Event type: Warning
// What to do: correct the names, or remove the annotations.
const reasonUnknownAnnotation = "UnknownAnnotation"

// annotations are the annotations of components, without the name of the reconciler.
var annotations = []string{
	v1alpha1.AnnotationDriftPolicy, v1alpha1.AnnotationManagementPolicy, vocabulary.AnnotationSuspend, vocabulary.AnnotationSuspendReason,
	vocabulary.AnnotationReconcileAt, vocabulary.AnnotationRollbackTo, vocabulary.AnnotationRequireApproval, vocabulary.AnnotationApprove,
	vocabulary.AnnotationRollout, vocabulary.AnnotationAdoptHelmRelease, vocabulary.AnnotationAdoptOperator, vocabulary.AnnotationPreview, vocabulary.AnnotationConfirmDeletion,
	vocabulary.AnnotationAllowEmpty, vocabulary.AnnotationSkipDeleteHooks, vocabulary.AnnotationAbandon,
}

// WarnOfUnknownAnnotations sends an event about annotations with our prefix that do nothing, until others do. A component that is itself
// a dependent of the same reconciler has those of dependents, too.
func (c *Concluder) WarnOfUnknownAnnotations(obj client.Object) {
	if _, dependent := obj.GetLabels()[c.Self.Name+"/"+vocabulary.LabelOwnerID]; dependent {
		return
	}
	var unknown []string
	for key := range obj.GetAnnotations() {
		if name, ours := strings.CutPrefix(key, c.Self.Name+"/"); ours && !slices.Contains(annotations, name) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	known, text := c.Of(obj), strings.Join(unknown, ", ")
	if text != "" && text != known.unknownAnnotations {
		c.Telemetry.Warn(obj, reasonUnknownAnnotation, telemetry.Apply, fmt.Sprintf("these annotations have no effect on a component: %s; known are %s",
			sentence.Shorten(text, conditions.MaxMessage/2), strings.Join(slices.Sorted(slices.Values(annotations)), ", ")))
	}
	known.unknownAnnotations = text
}
