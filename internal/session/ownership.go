// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/patch"
)

// Reasons of the events that are no transitions.
const (
	// reasonOwnedElsewhere means that the annotation operator-namespace gives the object to the operator in
	// another namespace.
	//
	// Event type: Normal
	// What to do: nothing, or change the annotation.
	reasonOwnedElsewhere = "OwnedElsewhere"
	// reasonBeginDelete means that the deletion of the resources of the object begins.
	//
	// Event type: Normal
	// What to do: nothing.
	reasonBeginDelete = "BeginDelete"
	// reasonDetached means that the object is deleted, and its resources are orphaned because of the management
	// policy.
	//
	// Event type: Normal
	// What to do: delete the resources by hand when they are not needed any more.
	reasonDetached = "Detached"

	// reasonWriteRefused means that the server refuses to store the status or the metadata of the object. The note
	// has its answer.
	//
	// Event type: Warning
	// What to do: correct the object, or the schema or the webhook of its type.
	reasonWriteRefused = "WriteRefused"

	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

func ownershipAnnotation(name string) string {
	return name + "/" + vocabulary.AnnotationOperatorNamespace
}

// ownerOf returns the namespace of the operator that the object belongs to, or nothing.
func (s *Sessions[T]) ownerOf(obj T) string {
	if s.Options.OperatorNamespace == "" {
		return ""
	}
	return obj.GetAnnotations()[ownershipAnnotation(s.Options.Name)]
}

// isElsewhere reports whether the object belongs to another operator.
func (s *Sessions[T]) isElsewhere(obj T) bool {
	owner := s.ownerOf(obj)
	return s.Options.Elsewhere(obj) != "" || owner != "" && owner != s.Options.OperatorNamespace
}

// leave takes our finalizer off an object that another operator has claimed at the same time as this process, before the status
// said that it is ours. A finalizer that both operators have stays: the claim rests on it.
func (s *Sessions[T]) leave(ctx context.Context, session *Session[T]) error {
	obj := session.Object
	if !session.Claiming() || s.Options.Elsewhere(obj) == "" || !slices.Contains(obj.GetFinalizers(), s.Options.Finalizer) {
		return nil
	}
	patcher, err := patch.NewHelper(obj, s.Options.Client, patch.WithReader(s.Options.Reader), patch.WithFieldOwner(s.Options.FieldOwner))
	if err != nil {
		return err
	}
	if controllerutil.RemoveFinalizer(obj, s.Options.Finalizer); s.Options.Elsewhere(obj) == "" {
		return nil
	}
	return patcher.PatchMetadata(ctx, obj)
}

// setOwner sets the ownership annotation to this operator. It is durable with the finalizer, or not
// at all: of two operators that read an object without an owner, the second gets a conflict.
func (s *Sessions[T]) setOwner(obj T) {
	if s.Options.OperatorNamespace == "" {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownershipAnnotation(s.Options.Name)] = s.Options.OperatorNamespace
	obj.SetAnnotations(annotations)
}

// reportOwner says why nothing is done about an object of another operator. Nothing may be
// written to it.
func (s *Sessions[T]) reportOwner(ctx context.Context, obj T) {
	owner, claim := s.ownerOf(obj), s.Options.Elsewhere(obj)
	if claim != "" {
		s.sendOnce(obj, corev1.EventTypeWarning, vocabulary.ReasonOwnerConflict, actionReconcile, claim)
		return
	}
	if !s.isElsewhere(obj) {
		return
	}
	logf.FromContext(ctx).V(1).Info("the object belongs to another operator", "operatorNamespace", owner)
	s.sendOnce(obj, corev1.EventTypeNormal, reasonOwnedElsewhere, actionReconcile,
		"the annotation "+ownershipAnnotation(s.Options.Name)+" says that the object belongs to the operator in namespace "+owner+"; this one, in namespace "+s.Options.OperatorNamespace+", leaves it alone")
}

// sendOnce sends an event about the very object the first time that this process has this to
// report.
func (s *Sessions[T]) sendOnce(obj T, eventType, reason, action, note string) {
	if s.Options.Recorder == nil {
		return
	}
	known, said := s.entryOf(client.ObjectKeyFromObject(obj)), string(obj.GetUID())+" "+reason+" "+note
	if known.said == said {
		return
	}
	known.said = said
	s.Options.Recorder.Eventf(obj, nil, eventType, reason, action, "%s", note)
}
