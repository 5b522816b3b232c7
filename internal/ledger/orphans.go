// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	names "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Kind is the type of the components.
type Kind struct {
	Group, Kind string
	Namespaced  bool
}

// Orphans are Secrets that are being deleted, that only our finalizer holds, and whose
// component does not exist any more: somebody took its finalizer away while no
// operator was running.
type Orphans struct {
	ledger *Ledger
	// denied are those that we must do nothing about.
	denied map[types.UID]bool
}

// Orphans returns the orphans of the ledger, wherever they are.
func (l *Ledger) Orphans() *Orphans {
	return &Orphans{ledger: l, denied: map[types.UID]bool{}}
}

// orphan is a Secret that may be one.
type orphan struct {
	component Component
	secret    secret
}

// Release takes our finalizer away from all orphans. Whatever goes wrong with one of
// them, it goes on with the others, and returns all errors; then it is to be called
// again. A Secret that we must not change, or whose component we must not read, is told
// of in the log and left alone from then on. So an error that is Forbidden means that
// Secrets must not be listed.
func (o *Orphans) Release(ctx context.Context, kind Kind, look Look) error {
	found, listErr := o.find(ctx, kind)
	errs := make([]error, len(found))
	_ = parallel(len(found), func(i int) error {
		errs[i] = o.release(ctx, found[i], look)
		return nil
	})
	var failed, denied []error
	for i, err := range errs {
		switch {
		case apierrors.IsForbidden(err):
			o.denied[found[i].secret.uid] = true
			denied = append(denied, err)
		case err != nil:
			failed = append(failed, err)
		}
	}
	if err := several(denied); err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of inventories may outlive their components: grant the operator the rights, and start it anew")
	}
	if listErr != nil {
		failed = append(failed, listErr)
	}
	return several(failed)
}

// listSize bounds an answer with metadata.
const listSize = 500

// find returns what it has found also with an error.
func (o *Orphans) find(ctx context.Context, kind Kind) ([]orphan, error) {
	var found []orphan
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := o.ledger.options.Client.List(ctx, page, client.HasLabels{o.ledger.options.Name + suffixLabel}, client.Limit(listSize), client.Continue(next))
		if err != nil {
			return found, fmt.Errorf("list the Secrets of inventories: %w", err)
		}
		for i := range page.Items {
			if one, ok := o.judge(&page.Items[i], kind); ok {
				found = append(found, one)
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// judge tells whether a Secret is an orphan if its component is gone.
func (o *Orphans) judge(object *metav1.PartialObjectMetadata, kind Kind) (orphan, bool) {
	c, ok := o.ledger.ownerIn(object)
	if !ok || object.DeletionTimestamp == nil || o.denied[object.UID] {
		return orphan{}, false
	}
	s, ours := o.ledger.factsOf(c, object)
	return orphan{component: c, secret: s}, ours && kind.fits(c, s) && slices.Contains(s.finalizers, o.ledger.finalizer())
}

// fits tells whether there can be such a component, and we would keep its Secrets
// there. Whoever may create a Secret can say in it what he likes about its owner, and
// no request must be made that no server can answer.
func (k Kind) fits(c Component, s secret) bool {
	switch {
	case c.Kind != k.Kind, groupOf(c.APIVersion) != k.Group:
		return false
	case len(c.Name) > validation.DNS1123SubdomainMaxLength, len(names.IsPathSegmentName(c.Name)) > 0:
		return false
	case k.Namespaced:
		return c.Namespace == s.namespace
	}
	return c.Namespace == "" // wherever an operator kept its Secrets, now or in earlier days
}

func (o *Orphans) release(ctx context.Context, one orphan, look Look) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, s := one.component, one.secret
	fate, err := look(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("find out whether %s is gone, to which Secret %s/%s belongs: %w", c, s.namespace, s.name, err)
	case fate == Vanished:
		return o.ledger.remove(ctx, c, s)
	case fate == Dying:
		o.ledger.await(c)
	}
	return nil
}

// await makes Left remove the Secrets of a component when it is gone.
func (l *Ledger) await(c Component) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[c.key()].component.UID != c.UID { // otherwise more is known
		l.known[c.key()] = knowledge{component: c}
	}
}
