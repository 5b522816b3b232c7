// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// Member returns the state of a component in the roll-out of a generator, by its status alone. A skipped one is not reconciled.
func (f *Fleet) Member(obj identity.Component, generator string, skipped bool) (m Member) {
	status := revision.Of(obj)
	m.said = conditions.Has(identity.Conditions(obj), v1alpha1.ConditionRolloutStopped)
	m.Canary = f.Limits.Canaries.Matches(labels.Set(obj.GetLabels()))
	asked, _ := f.Annotation(obj)
	a := status.RenderedBy(generator)
	pinned := asked == pin || f.Self.Value(obj, vocabulary.AnnotationRollbackTo) != ""
	madeWith := revision.GeneratorID(strings.TrimPrefix(status.Processing().Generator, "="))
	neverApplied := status.Current() == nil || status.AppliedGeneration == 0
	switch {
	case a.Ready != nil:
		m.State = Done
		if a.Before != nil {
			m.ReadyAt = a.Ready.ReadyAt.Add(time.Second) // which has lost its fraction, and no pause ends early
		}
	case skipped:
		m.State = Pinned
	case a.Last == nil && neverApplied:
		m.State = Done // it is installed with the version, at once
	case a.Last == nil && pinned:
		m.State = Pinned
	case a.Last == nil && madeWith == generator:
		m.State = Done // the version that it leaves renders the same
	case a.Last == nil:
		m.State = Waiting
	case a.Before == nil, madeWith != "" && madeWith != generator: // the version renders the same
		m.State = Done
	case a.Last.Revision == status.Revision && a.Last.Result == v1alpha1.RevisionProcessing && !f.isStuck(obj):
		m.State = Updating
	case asked == ignore || a.Before.Result != v1alpha1.RevisionReady:
		m.State = Done
	default:
		m.State, m.Why = Failed, failureOf(obj)
	}
	return m
}

// isStuck reports whether a revision that is applied does not become ready by itself.
func (f *Fleet) isStuck(obj identity.Component) bool {
	timedOut := revision.Of(obj).TimedOut(f.Timeout(obj), f.Now())
	_, reason, _ := obj.GetStatus().GetState() // Processing after the timeout: see Facts.Settling
	return conditions.IsTrue(identity.Conditions(obj), v1alpha1.ConditionStalled) || timedOut && reason != vocabulary.ReasonProcessing
}

// isSkipped reports whether a component that was listed is not reconciled.
func (f *Fleet) isSkipped(obj identity.Component) bool {
	policy := cmp.Or(f.Self.Value(obj, v1alpha1.AnnotationManagementPolicy), string(f.ManagementPolicy))
	return strings.EqualFold(policy, string(v1alpha1.ManagementPolicySkip)) || f.IsSuspended(obj)
}

// failureOf says why a component failed, and which field manager wrote that into its status: a forged status can stop a roll-out.
func failureOf(obj identity.Component) string {
	status := obj.GetStatus()
	_, _, message := status.GetState()
	text := sentence.Shorten(message, verdict.MaxSentence)
	if status.Rollback != nil {
		text = status.Rollback.Message
	}
	var last metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "status" && (last.Manager == "" || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	if last.Manager != "" {
		text += fmt.Sprintf(" (status written by %s)", last.Manager)
	}
	return text
}

// pageSize is how many components a request lists.
const pageSize = 500

// Lister has the components of an operator.
type Lister struct {
	// Server reads from the API server, Cache from the cache of the manager.
	Server, Cache client.Reader
	// Namespace is the only namespace in which the operator has rights; empty: there may be more.
	Namespace string
	// Selector selects the components of the operator; nil: all.
	Selector labels.Selector
	// New returns an empty component.
	New func() identity.Component
}

// list lists all components that the manager's cache has, as the server has them. The cache may be limited to a few namespaces; before
// it is started, all components count. A component that cannot be decoded is left out: it is not reconciled either.
func (f *Fleet) list(ctx context.Context, generator string) (members, error) {
	cached := &metav1.PartialObjectMetadataList{}
	cached.SetGroupVersionKind(f.Self.ListKind())
	err := f.Lister.Cache.List(ctx, cached)
	_, stopped := errors.AsType[*cache.ErrCacheNotStarted](err)
	if err != nil && !stopped {
		return nil, err
	}
	ours, namespaces := map[client.ObjectKey]bool{}, map[string]bool{}
	for i := range cached.Items {
		ours[client.ObjectKeyFromObject(&cached.Items[i])], namespaces[cached.Items[i].Namespace] = true, true
	}
	counts := func(key client.ObjectKey) bool { return stopped || ours[key] }
	found, err := f.listIn(ctx, generator, counts, f.Lister.Namespace)
	if !apierrors.IsForbidden(err) || f.Lister.Namespace != "" {
		return found, err
	}
	return f.listIn(ctx, generator, counts, slices.Sorted(maps.Keys(namespaces))...)
}

// listIn lists the components of namespaces that count; the name of all namespaces is empty.
func (f *Fleet) listIn(ctx context.Context, generator string, counts func(client.ObjectKey) bool, namespaces ...string) (members, error) {
	found := members{}
	for _, namespace := range namespaces {
		for options := (client.ListOptions{Namespace: namespace, LabelSelector: f.Lister.Selector, Limit: pageSize}); ; {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(f.Self.ListKind())
			if err := f.Lister.Server.List(ctx, page, &options); err != nil {
				return nil, err
			}
			for i := range page.Items {
				if item := &page.Items[i]; item.GetDeletionTimestamp() == nil && counts(client.ObjectKeyFromObject(item)) {
					f.add(found, generator, item)
				}
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	return found, nil
}

// add adds the state of a component that was listed, unless the component cannot be decoded, or a method of it panics.
func (f *Fleet) add(found members, generator string, item *unstructured.Unstructured) {
	_ = guard.Call(func() error {
		obj := f.Lister.New()
		if _, err := untyped.Into(item.Object, obj); err != nil {
			return err
		}
		found[client.ObjectKeyFromObject(item)] = f.Member(obj, generator, f.isSkipped(obj))
		return nil
	})
}
