// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/types"
)

// A namespace that is deleted takes the service account and the RoleBindings of a tenant with it, and the components
// in it hold it until their dependents are gone. Without the account, no request about the dependents succeeds. But
// the server deletes the objects of a namespace that is being deleted, so nobody has to prove that they are gone.

// reasonIdentityGone means that the namespace of a component is being deleted, and that the service account does not
// exist any more that the component acted as. The component goes; the note names the dependents that stay, because they
// live elsewhere. The event is about the namespace.
//
// Event type: Warning
// What to do: delete by hand what the note names, if it still exists and is not needed.
const reasonIdentityGone = "IdentityGone"

// releaseTerminating empties the inventory of a component in a deletion that is forbidden, if all objects in it live in
// namespaces of the local cluster that are being deleted, or if the identity will not come back. Otherwise it reports
// false.
func (d *deleter) releaseTerminating(ctx context.Context, obj Component, t targets.Connection, commit session.Commit) (bool, error) {
	access, err := accessOf(obj, d.settings)
	if err != nil || access.Kubeconfig != nil {
		return false, nil
	}
	stored, err := d.openInventory(ctx, obj, commit, t, true)
	if err != nil {
		return false, err
	}
	terminating := map[string]*metav1.PartialObjectMetadata{"": nil}
	read := func(namespace string) *metav1.PartialObjectMetadata {
		if _, known := terminating[namespace]; !known {
			terminating[namespace] = d.terminating(ctx, namespace)
		}
		return terminating[namespace]
	}
	var elsewhere []v1alpha1.InventoryItem
	for _, item := range left(stored.Inventory().Items) {
		if read(item.Namespace) == nil {
			elsewhere = append(elsewhere, item)
		}
	}
	if len(elsewhere) > 0 {
		own, missing := read(obj.GetNamespace()), ""
		if own != nil {
			missing = targets.MissingServiceAccount(ctx, d.local, access)
		}
		if missing == "" {
			return false, nil
		}
		note := fmt.Sprintf("%s: orphaned %s: %s; %s, and its namespace is being deleted", d.self.Title(obj),
			verdict.Count(len(elsewhere), "object"), namesOf(elsewhere, 0), missing)
		logf.FromContext(ctx).Info(note)
		d.telemetry.Warn(own, reasonIdentityGone, telemetry.Delete, note) // no event can be made in the namespace itself
	}
	if err := stored.SaveOutcome(ctx, v1alpha1.Inventory{}, nil); err != nil {
		return false, err
	}
	return true, stored.SaveEmpty(ctx)
}

// terminating returns a namespace of the local cluster that is being deleted, or is gone; else nil.
func (d *deleter) terminating(ctx context.Context, name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := d.local.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if namespace.Name = name; types.IsGone(err, name) || err == nil && !namespace.DeletionTimestamp.IsZero() {
		return namespace
	}
	return nil
}

// left returns the items of objects that may exist and are the component's.
func left(items []v1alpha1.InventoryItem) (left []v1alpha1.InventoryItem) {
	for _, item := range items {
		shared := item.Origin == vocabulary.OriginNamespace && item.UID == "" && item.Digest == "" // with other components
		if item.Phase != vocabulary.PhaseCompleted && item.Phase != vocabulary.PhaseReleased && !shared {
			left = append(left, item)
		}
	}
	return left
}

// namesOf names the first of the items, and counts the others and as many more as unread says.
func namesOf(items []v1alpha1.InventoryItem, unread int) string {
	var names []string
	for _, item := range items[:min(len(items), verdict.MaxNamed)] {
		names = append(names, itemText(item))
	}
	text := strings.Join(names, ", ")
	if more := len(items) + unread - len(names); more > 0 && len(names) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
