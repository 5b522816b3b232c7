// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Webhooks are written after the objects that they are called for, and are removed after all
// writes. But the server may refuse those writes because it cannot call a webhook of this very
// component. Then the webhook is repaired first: written if its manifest has changed, removed if no
// manifest has it. A webhook that equals its manifest stays as it is.

// IsWebhookConfiguration reports whether objects of the kind configure admission webhooks.
func IsWebhookConfiguration(kind schema.GroupKind) bool {
	return kind.Group == "admissionregistration.k8s.io" && (kind.Kind == "ValidatingWebhookConfiguration" || kind.Kind == "MutatingWebhookConfiguration")
}

// findDeadWebhooks finds the configurations of ours with webhooks that the server could not call
// for a step. It removes the undesired configurations; the desired ones are written as soon as they
// are met.
func (w *work) findDeadWebhooks(reason Reason) {
	configurations := slices.DeleteFunc(slices.Clone(w.units), func(u *unit) bool { return len(u.live.Webhooks) == 0 || !u.mayRemove() })
	for _, u := range w.units {
		for _, c := range configurations {
			if u.failure == nil || c.live.Webhooks[u.failure.Webhook] == "" {
				continue
			}
			if c.failure == nil && w.mends(c, reason) {
				w.note(c.key, "", "goes first: the server cannot call its webhook %s, and refuses other objects for that", u.failure.Webhook)
				c.mendsWebhook = true
			} else {
				u.failure.Message += fmt.Sprintf("; the webhook is of this component's %s, which stays as it is: %s. Mend its service, or exclude the object by namespaceSelector or objectSelector, "+
					"or drop the webhook, in the manifest", c.key, c.live.Webhooks[u.failure.Webhook])
			}
		}
	}
	for _, c := range configurations {
		if c.mendsWebhook && c.desired == nil {
			w.removeOne(c, reason)
		}
	}
}

// mends reports whether a configuration is to be written or removed, so that its webhooks change.
func (w *work) mends(u *unit, reason Reason) bool {
	if u.desired == nil {
		return !w.willOrphan(u, reason) && !w.in.Retain[u.key]
	}
	_, due := w.writeDue(u)
	return due
}
