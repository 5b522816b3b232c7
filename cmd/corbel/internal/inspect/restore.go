// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/revisions"
)

// restoreChecker collects the findings of CheckRestore.
type restoreChecker struct {
	*checker
	// keys are the digest keys that were checked, and leases the names of the Leases of operators.
	keys, leases sets.Set[string]
}

// CheckRestore looks for objects that are missing after a restore from a backup, and that the operators of the types need when they
// start. The namespace bounds which components are read; empty means all.
func (r *Reader) CheckRestore(ctx context.Context, types []Type, namespace string, now time.Time) ([]Finding, error) {
	c := &restoreChecker{checker: &checker{reader: r, now: now}, keys: sets.New[string](), leases: sets.New[string]()}
	for _, t := range types {
		if err := errors.Join(c.definition(ctx, t), c.restored(ctx, t, namespace)); err != nil {
			return c.findings, err
		}
	}
	if !slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Problem }) {
		return c.findings, nil
	}
	for _, name := range sets.List(c.leases) {
		err := c.heldLeases(ctx, "Lease "+name, name, "whether the operator runs already is not checked", func(held string) {
			c.problem("Lease "+held, "it is held, so the operator runs while objects are missing: scale it to 0, restore them, and start it again")
		})
		if err != nil {
			return c.findings, err
		}
	}
	return c.findings, nil
}

// restored checks the components of a type after a restore.
func (c *restoreChecker) restored(ctx context.Context, t Type, namespace string) error {
	if !t.Namespaced {
		namespace = ""
	}
	local := &metav1.PartialObjectMetadata{}
	local.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.reader.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, local); err != nil && !isAnswer(err) {
		return err
	}
	count, withoutStatus, withoutHistory := 0, map[string]int{}, 0
	_, err := c.reader.List(ctx, t, Selection{Namespace: namespace}, func(listed Component) error {
		count++
		found, err := c.reader.Get(ctx, t, client.ObjectKeyFromObject(listed.Object)) // with its inventory
		object, by := found.Object, found.Status.Inventory.Operator
		switch {
		case err != nil: // it may be gone meanwhile
			return client.IgnoreNotFound(err)
		case by == nil:
			withoutStatus[object.GetNamespace()]++
			c.leases.Insert(t.Group) // the name that projects of corbel init have
			return nil
		case by.Lease != "":
			c.leases.Insert(by.Lease[strings.Index(by.Lease, "/")+1:])
		}
		_, remote, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "kubeConfig")
		if target := found.Status.Inventory.Target; !remote && target != "" && local.UID != "" && target != local.UID {
			c.problem(found.String(), "its status is that of another cluster, with which its operator changes nothing, for the reason TargetChanged: restore it without its status")
		}
		stored := &metav1.PartialObjectMetadata{}
		stored.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		store := revisions.NewStore(revisions.Options{Name: found.Reconciler, Namespace: by.Namespace})
		record := store.KeyOf(revisions.Component{GroupVersionKind: t.GroupVersionKind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()})
		if len(found.Status.History) > 0 && apierrors.IsNotFound(c.reader.Client.Get(ctx, record, stored)) {
			withoutHistory++
		}
		return errors.Join(c.digestKey(ctx, found.Reconciler, *by), c.recorded(ctx, found))
	})
	if withoutHistory > 0 {
		c.note(t.String(), "%d of %d lack the Secret of their revisions, as each component with a new uid does: there is no rollback to a revision "+
			"from before the restore, and the operator takes random values from the live objects", withoutHistory, count)
	}
	for _, namespace := range slices.Sorted(maps.Keys(withoutStatus)) {
		about, count := strings.TrimSpace(t.String()+" "+namespace), withoutStatus[namespace]
		secrets, err := c.reader.metadata(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), namespace)
		switch {
		case err != nil && !apierrors.IsForbidden(err):
			return err
		case err == nil && len(secrets) == 0:
			c.problem(about, "%d have no status, and their namespace has no Secret: restore the Secrets before the operator starts, or it creates them with new random values", count)
		default:
			c.note(about, "%d have no status, so their objects are not known here: the operator takes random values from the live objects, and from no Secret that is restored after it starts", count)
		}
	}
	return err
}

// digestKey checks that the digest key of an operator is the one of an inventory.
func (c *restoreChecker) digestKey(ctx context.Context, reconciler string, by v1alpha1.InventoryOperator) error {
	about := fmt.Sprintf("Secret %s/%s-digest-key", by.Namespace, reconciler)
	if c.keys.Has(about + by.Key) {
		return nil
	}
	c.keys.Insert(about + by.Key)
	const remedy = "restore the digest key of the backup before the operator starts: with another key there is no rollback to an earlier revision, and each object is written once more"
	secret := &corev1.Secret{}
	found, err := c.get(ctx, about, client.ObjectKey{Namespace: by.Namespace, Name: reconciler + "-digest-key"}, "Secret", "v1", secret, "it does not exist; "+remedy)
	if found && (digest.Hasher{Key: secret.Data["key"]}).ID() != by.Key {
		c.problem(about, "it is not the key that components are recorded with; %s", remedy)
	}
	return err
}

// recorded checks that the recorded objects of a component exist. Of those that do not, three are named, Secrets first.
func (c *restoreChecker) recorded(ctx context.Context, of Component) error {
	dependents, err := c.reader.Dependents(ctx, of)
	if IsLost(err) {
		c.note(of.String(), "%v", err)
	} else if err != nil {
		return err
	}
	missing := slices.DeleteFunc(dependents, func(d Dependent) bool { return d.State != StateMissing })
	slices.SortStableFunc(missing, func(a, b Dependent) int {
		return strings.Compare(strings.TrimPrefix(a.Item.Kind, "Secret"), strings.TrimPrefix(b.Item.Kind, "Secret"))
	})
	var names []string
	for _, d := range missing[:min(len(missing), 3)] {
		names = append(names, d.String())
	}
	if len(missing) > 0 {
		c.problem(of.String(), "%d recorded objects do not exist, among them %s: restore them before the operator starts, which creates a Secret with new random values", len(missing), strings.Join(names, ", "))
	}
	return nil
}
