// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/env"
)

// reconcileAll waits until the operator has reconciled all components since a request, which is empty for its start.
func (r *rehearsal) reconcileAll(ctx context.Context, request string) error {
	start := int64(0)
	if request != "" {
		var err error
		if start, err = r.operator.logged(); err != nil {
			return err
		}
		if err := each(ctx, func(ctx context.Context, s state) error {
			return r.patch(ctx, s.site(), "metadata: {annotations: {upgrade.example.com/reconcile-at: "+request+"}}")
		}); err != nil {
			return err
		}
	}
	return r.await(ctx, patience, func() error {
		reconciled, err := r.operator.reconciled(start)
		for _, s := range states {
			if !reconciled[client.ObjectKey{Namespace: s.namespace(), Name: s.name}] {
				err = errors.Join(err, fmt.Errorf("%s: the log of the operator has no reconcile; it is %s", s.name, r.operator.log))
			}
		}
		return err
	})
}

// judgeSince judges the requests of the operator from a position of the audit log on, and returns the next position.
func (r *rehearsal) judgeSince(ctx context.Context, position int64) (next int64, err error) {
	if next, err = r.env.AuditPosition(ctx); err != nil {
		return 0, err
	}
	events, err := r.env.AuditEventsSince(ctx, position, r.operator.user)
	if err != nil {
		return 0, err
	}
	return next, judge(slices.DeleteFunc(events, func(e env.AuditEvent) bool { return e.User != r.operator.user }))
}

// watched is how long requests are judged at least: a component may be requeued some seconds after its reconcile.
const watched = 30 * time.Second

// watch judges the requests since a position for a while, and ends at the first bad one, which its caller finds again.
func (r *rehearsal) watch(ctx context.Context, position int64) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, watched, true, func(ctx context.Context) (bool, error) {
		_, err := r.judgeSince(ctx, position)
		return err != nil, r.operator.failure()
	})
	if wait.Interrupted(err) {
		return ctx.Err() // nil if the time is over
	}
	return err
}

// judge returns an error for each write that an operator must not send while nothing changes, in the order of namespaces.
// One write to the status of each component is accepted, and writes to the Secrets that belong to its record.
func judge(requests []env.AuditEvent) error {
	found := map[string][]error{}
	statuses := map[string]int{}
	for _, q := range requests {
		switch {
		case !isWrite(q) || isRecord(q):
		case q.Resource == "sites" && q.Subresource == "status":
			statuses[q.Namespace]++
		default:
			found[q.Namespace] = append(found[q.Namespace], fmt.Errorf("%s: the operator sends %s %s %s, answered with %d",
				componentIn(q.Namespace), q.Verb, path.Join(q.Resource, q.Subresource), path.Join(q.Namespace, nameOf(q)), q.Code))
		}
	}
	for namespace, count := range statuses {
		if count > 1 {
			found[namespace] = append(found[namespace], fmt.Errorf("%s: the operator writes the status %d times", componentIn(namespace), count))
		}
	}
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, found[namespace]...)
	}
	return errors.Join(errs...)
}

// componentIn names the component of a namespace.
func componentIn(namespace string) string {
	if at := slices.IndexFunc(states, func(s state) bool { return s.namespace() == namespace }); at >= 0 {
		return "Site " + namespace + "/" + states[at].name
	}
	return "no component"
}

// isWrite reports whether a request changes an object that is stored, or would have.
func isWrite(q env.AuditEvent) bool {
	switch {
	case !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.Verb),
		isDryRun(q),
		q.Resource == "events", q.Resource == "leases" && q.Group == "coordination.k8s.io", q.Group == "authorization.k8s.io",
		isLookForKey(q), isConflict(q):
		return false
	}
	return true
}

// isLookForKey reports whether the operator has found by a request that the key of its digests exists.
func isLookForKey(q env.AuditEvent) bool {
	return q.Verb == "create" && q.Code == http.StatusConflict && q.Resource == "secrets" && nameOf(q) == group+"-digest-key" &&
		strings.HasPrefix(q.User, "system:serviceaccount:"+q.Namespace+":")
}

// isConflict reports whether the operator has found by a request that another client still has the object of the component
// that waits for it.
func isConflict(q env.AuditEvent) bool {
	return q.Verb == "create" && q.Code == http.StatusConflict && q.Resource == "configmaps" &&
		componentIn(q.Namespace) == "Site upgrade-conflict/conflict" && nameOf(q) == "conflict"
}

// isDryRun reports whether a request stores nothing. A deletion may say so in its body.
func isDryRun(q env.AuditEvent) bool {
	var body metav1.DeleteOptions
	inBody := q.Verb == "delete" && json.Unmarshal(q.Sent, &body) == nil && slices.Contains(body.DryRun, metav1.DryRunAll)
	return inBody || strings.Contains(q.URI, "dryRun="+metav1.DryRunAll)
}

// isRecord reports whether a request is about a Secret with a part of the inventory or of the history of a component.
func isRecord(q env.AuditEvent) bool {
	if q.Resource != "secrets" {
		return false
	}
	return slices.ContainsFunc(states, func(s state) bool {
		return q.Namespace == s.namespace() && (strings.HasPrefix(nameOf(q), s.name+"-inventory-") || strings.HasPrefix(nameOf(q), s.name+"-revisions-"))
	})
}

// nameOf returns the name of the object of a request. That of a creation is in its body.
func nameOf(q env.AuditEvent) string {
	var body metav1.PartialObjectMetadata
	if q.Name == "" && json.Unmarshal(q.Sent, &body) == nil {
		return body.Name
	}
	return q.Name
}

// compare prints the states. It returns an error for each component with another revision, history or condition than before.
// An operator looks for the reasons in pods some seconds after its start: for so long the messages lack them.
func (r *rehearsal) compare(ctx context.Context, before map[string]component.Status) error {
	var after map[string]component.Status
	err := r.await(ctx, time.Minute, func() (err error) {
		if after, err = r.statuses(ctx); err != nil {
			return err
		}
		var errs []error
		for _, s := range states {
			if diff := difference(before[s.name], after[s.name]); diff != "" {
				errs = append(errs, fmt.Errorf("Site %s/%s: its status has changed (-before +after):\n%s", s.namespace(), s.name, diff))
			}
		}
		return errors.Join(errs...)
	})
	for _, s := range states {
		status := after[s.name]
		_, reason, _ := status.GetState()
		fmt.Printf("  %-18s %-10s %-18s revision %d\n", s.name, status.State, reason, status.Revision)
	}
	return err
}

// difference compares two statuses, without what a newer operator may add.
func difference(before, after component.Status) string {
	return cmp.Diff(before, after,
		cmpopts.IgnoreFields(component.Status{}, "Inventory", "Source", "LastHandledReconcileAt"),
		cmpopts.IgnoreFields(v1alpha1.RevisionStatus{}, "Source", "Generator"),
	)
}
