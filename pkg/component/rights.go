// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// maxRules is how much of a condition the missing rules get, in bytes. The log has all of them.
const maxRules = 640

// namedRights are the rights that were last named, and whether their lack stopped something.
type namedRights struct {
	text      string
	forbidden bool
}

// nameMissing says which rights the identity of the component lacks: in the error, if it
// is about that, else by an event; and in the log. It does so once, until something else
// is missing. Where nothing was written, the rights were not reviewed.
func (h *handler[T]) nameMissing(ctx context.Context, obj T, outcome reconciler.Outcome, err error) error {
	missing, forbidden := outcome.Missing, verdict.IsForbidden(err)
	before := &h.remembered(obj).missing
	if missing.Count() == 0 && !forbidden {
		if len(outcome.Steps) > 0 || before.forbidden {
			*before = namedRights{}
		}
		return err
	}
	id, invalid := identityOf(obj, h.settings)
	if invalid != nil {
		return err
	}
	var absent string
	if forbidden {
		absent = h.absentAccount(ctx, id)
	}
	sentences := func(limit int) string {
		rules := missing.String()
		if len(rules) > limit {
			rules = fmt.Sprintf("%d rules, all of which are in the log of the operator: %s", missing.Count(), verdict.Shorten(rules, limit))
		}
		if rules != "" {
			rules = id.String() + " lacks rights: " + rules
		}
		return strings.Trim(absent+"; "+rules, "; ")
	}
	all := sentences(1 << 20)
	if all == "" {
		return err
	}
	said := before.text
	if *before = (namedRights{all, forbidden}); said != all {
		logf.FromContext(ctx).Info("rights are missing", "missing", all)
		if !forbidden {
			events.Send(h.recorder, obj, 1, events.Event{
				Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonForbidden, Action: string(applying), Note: sentences(maxRules),
			})
		}
	}
	if !forbidden {
		return err
	}
	return verdict.Worded{Err: err, Message: errors.Join(errors.New(sentences(maxRules)), err).Error()}
}

// absentAccount says that a service account that is impersonated does not exist: the
// server grants what others of its namespace hold, and says nothing about it.
func (h *handler[T]) absentAccount(ctx context.Context, id identity) string {
	account, ok := strings.CutPrefix(id.user, serviceAccountPrefix)
	if !ok || id.kubeConfig != nil || h.local == nil {
		return ""
	}
	namespace, name, _ := strings.Cut(account, ":")
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := h.local.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); !cluster.IsGone(err, name) {
		return "" // it exists, or the operator has no right to know
	}
	return fmt.Sprintf("ServiceAccount %s/%s, which is impersonated, does not exist", namespace, name)
}

// nameImpersonation says which identity must be impersonated for the component, and by which
// rules, if that is what the server verdict.IsForbidden. It does so for any request: those of
// a generator come before the rights are reviewed.
func (h *handler[T]) nameImpersonation(obj T, err error) error {
	id, invalid := identityOf(obj, h.settings)
	if invalid != nil || id.user == "" || !strings.Contains(err.Error(), "cannot impersonate") {
		return err
	}
	rule := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"impersonate"}}
	}
	var missing reconciler.MissingRights
	var cluster []rbacv1.PolicyRule
	whom := "user " + id.user
	if account, ok := strings.CutPrefix(id.user, serviceAccountPrefix); ok {
		namespace, name, _ := strings.Cut(account, ":")
		whom = fmt.Sprintf("ServiceAccount %s/%s, which the component names (serviceAccountName) or the option DefaultServiceAccount", namespace, name)
		missing = reconciler.MissingRights{{Namespace: namespace, Rules: []rbacv1.PolicyRule{rule("serviceaccounts", name)}}}
	} else {
		cluster = append(cluster, rule("users", id.user))
	}
	if len(id.groups) > 0 {
		cluster = append(cluster, rule("groups", id.groups...))
	}
	if len(cluster) > 0 {
		missing = append(missing, reconciler.MissingRights{{Rules: cluster}}...)
	}
	by := identity{kubeConfig: id.kubeConfig}
	return verdict.Worded{Err: err, Message: fmt.Sprintf("%s cannot impersonate %s; it lacks rights: %s; %s", by, whom, missing, err)}
}
