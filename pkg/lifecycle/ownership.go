// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

const (
	reasonOwnedElsewhere = "OwnedElsewhere"
	reasonBeginDelete    = "BeginDelete"
	reasonDetached       = "Detached"

	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

func ownershipAnnotation(name string) string {
	return name + "/" + v1alpha1.AnnotationOperatorNamespace
}

// ownerOf returns the namespace of the operator that the object belongs to, or nothing.
func (l *Loop[T]) ownerOf(obj T) string {
	if l.options.OperatorNamespace == "" {
		return ""
	}
	return obj.GetAnnotations()[ownershipAnnotation(l.options.Name)]
}

// isElsewhere tells whether the object belongs to another operator.
func (l *Loop[T]) isElsewhere(obj T) bool {
	owner := l.ownerOf(obj)
	return owner != "" && owner != l.options.OperatorNamespace
}

// own marks the object as ours. It is durable with the finalizer, or not at all: of
// two operators that see an object without an owner, the second meets a conflict.
func (l *Loop[T]) own(obj T) {
	if l.options.OperatorNamespace == "" {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ownershipAnnotation(l.options.Name)] = l.options.OperatorNamespace
	obj.SetAnnotations(annotations)
}

// ignore ends a pass over an object that is not our concern. Nothing may be written
// to an object of somebody else; an event says why nothing happens. It may have been
// our concern until now.
func (l *Loop[T]) ignore(ctx context.Context, obj T) {
	l.letGo(ctx, client.ObjectKeyFromObject(obj))
	if !l.isElsewhere(obj) {
		return
	}
	owner := l.ownerOf(obj)
	logf.FromContext(ctx).V(1).Info("the object belongs to another operator", "operatorNamespace", owner)
	l.tellOnce(obj, owner, reasonOwnedElsewhere, actionReconcile,
		"the annotation "+ownershipAnnotation(l.options.Name)+" says that the object belongs to the operator in namespace "+owner+"; this one, in namespace "+l.options.OperatorNamespace+", leaves it alone")
}

// tellOnce makes an event the first time that this process has this to say about the
// very object.
func (l *Loop[T]) tellOnce(obj T, detail, reason, action, note string) {
	if l.options.Recorder == nil {
		return
	}
	key, said := client.ObjectKeyFromObject(obj), string(obj.GetUID())+" "+reason+" "+detail
	if before, loaded := l.told.Swap(key, said); loaded && before == said {
		return
	}
	l.options.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}
