// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// A component that cannot use its target cluster is requeued when that changes. These
// delays are the fallback.
const (
	// Limit: the delay of a component while the slots of its target cluster are taken (option TargetConcurrency).
	busyDelay = 10 * time.Second
	// Limit: the delay of a component while its target cluster does not answer.
	unreachableDelay = 30 * time.Second
)

// connect returns a connection to the target cluster; release it at the end of the
// reconcile. If the cluster is busy, the reconcile ends here: no worker waits. The engine of
// the target makes digests, so the key has to be there.
func (o *opener) connect(ctx context.Context, obj Component, access target.Access) (targets.Connection, error) {
	if _, err := o.digestKey(ctx); err != nil {
		return targets.Connection{}, err
	}
	t, err := o.targets.Connect(access, client.ObjectKeyFromObject(obj))
	if errors.Is(err, target.ErrBusy) {
		telemetry.NoteResult(ctx, metrics.ResultPending)
		after := backoff.Jitter(busyDelay, verdict.Jitter, backoff.Random())
		return targets.Connection{}, &result.RequeueError{After: after, Err: err}
	}
	if err == nil {
		o.targets.SetEngine(o.self.Owner(obj), t)
		return t, nil
	}
	err = o.self.About(obj, err)
	_, unreachable := errors.AsType[*target.UnreachableError](err)
	_, denied := errors.AsType[*cluster.AddressDeniedError](err)
	if unreachable && !denied {
		return targets.Connection{}, &verdict.UnfinishedError{
			Facts: verdict.Facts{Unreachable: err.Error(), Fallback: backoff.Jitter(unreachableDelay, verdict.Jitter, backoff.Random())}, Cause: err,
		}
	}
	return targets.Connection{}, err
}

// aboutTarget names the kubeconfig that leads to a target which cannot be identified.
// Other errors stay as they are.
func (o *opener) aboutTarget(obj Component, err error) error {
	if _, refused := errors.AsType[*reconciler.UnidentifiedTargetError](err); !refused {
		return err
	}
	kubeConfig := kubeConfigOf(obj)
	if kubeConfig == nil {
		return o.self.About(obj, err)
	}
	name := "its kubeconfig"
	found, _ := o.author.finder.Find(specOf(obj))
	for _, reference := range found {
		if secret, ok := reference.Pointer.(*SecretKeyReference); ok && bytes.Equal(secret.Value(), kubeConfig) {
			name = fmt.Sprintf("the kubeconfig in Secret %s (%s)", secret.Name, reference.Path)
		}
	}
	return o.self.About(obj, fmt.Errorf("%s is of no use: %w; correct the credentials and the server in it", name, err))
}

// confirm returns the function that the engine calls before it creates objects if the last check is some
// time ago: it reports whether the component is still as this reconcile read it, and whether
// this process still leads. The server cannot refuse a stale creation, as it refuses a stale
// update.
func (o *opener) confirm(obj Component) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := o.settings.leaderLock.leadingFor(creating); err != nil {
			return err
		}
		current := o.author.new()
		switch err := o.local.Get(ctx, client.ObjectKeyFromObject(obj), current); {
		case types.IsGone(err, obj.GetName()):
			return superseded("it is not there any more")
		case err != nil:
			return fmt.Errorf("read %s again: %w", o.self.Title(obj), err)
		}
		switch {
		case current.GetUID() != obj.GetUID():
			return superseded("it was deleted and created again")
		case current.GetGeneration() != obj.GetGeneration():
			return superseded("its spec changed")
		case !selects(o.settings.selector, current):
			return errNotSelected
		case o.self.Claim(current, current.GetStatus().Reconciler) != "":
			return superseded("another operator has claimed it")
		case current.GetDeletionTimestamp().IsZero() != obj.GetDeletionTimestamp().IsZero():
			return superseded("it is being deleted")
		// In the same version, the difference is a finding of a reconcile that is not written yet.
		case current.GetResourceVersion() != obj.GetResourceVersion() && !equality.Semantic.DeepEqual(current.GetStatus().Inventory, obj.GetStatus().Inventory):
			return superseded("another process writes its inventory")
		case !maps.Equal(o.self.Instructions(current), o.self.Instructions(obj)):
			return superseded("its annotations ask for something else")
		}
		return nil
	}
}

// errNotSelected ends the reconcile of a component that the selector of the operator does not select any more.
var errNotSelected = superseded("its labels do not match the selector of the operator any more")

// protected returns the objects that the component, and its operator, cannot live without. In
// another cluster objects of the same names are other objects.
func (o *opener) protected(obj Component) ([]report.Key, error) {
	if kubeConfigOf(obj) != nil {
		return nil, nil
	}
	mapping, err := o.mapper.RESTMapping(o.self.Kind.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("find the definition of the type %s: %w", o.self.Kind, err)
	}
	key := targets.DigestKeySecret(o.settings.operatorNamespace, o.self.Name)
	return []report.Key{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: mapping.Resource.GroupResource().String()},
		{Kind: "Namespace", Name: o.settings.operatorNamespace},
		{Kind: "Secret", Namespace: key.Namespace, Name: key.Name},
	}, nil
}
