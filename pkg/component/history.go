// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// diffRevisions returns what differs between the manifests of two revisions of a component that are in its history: the objects
// that only the second one has (report.ChangeCreate), the objects that only the first one has (ChangeDelete), and those with other
// fields (ChangeUpdate). No value of a Secret is in it, and no value at all if a Secret was read for one of the revisions. It also
// returns which of the objects are in the namespace of the component.
func (pl *planner) diffRevisions(ctx context.Context, key client.ObjectKey, uid apitypes.UID, from, to int64) (changes []report.PlannedChange, beside func(report.Key) bool, err error) {
	ctx = confidential.Start(ctx, false)
	obj, err := pl.read(ctx, key, uid)
	if err != nil {
		return nil, nil, err
	}
	var sets [2]rendering.Rendering
	for i, number := range []int64{from, to} {
		entry := revision.Of(obj).Entry(number)
		if entry == nil {
			return nil, nil, pl.self.About(obj, fmt.Errorf("revision %d is not in its history", number))
		}
		stored, err := pl.revisions.StoredRevision(ctx, obj, number, entry.Digest)
		if err != nil {
			return nil, nil, pl.self.About(obj, err)
		}
		sets[i] = stored
	}
	// References are not loaded, so a kubeconfig that comes from a Secret has no content.
	remote := kubeConfigOf(obj) != nil
	return reconciler.Diff(ctx, sets[0].Objects, sets[1].Objects), pl.beside(key.Namespace, remote, sets[0].Namespace, sets[1].Namespace), nil
}

// beside returns a function that reports whether an object is in a namespace. The component may deploy into further namespaces.
func (pl *planner) beside(namespace string, remote bool, deployed ...string) func(report.Key) bool {
	return func(object report.Key) bool {
		if object.Namespace != "" || remote {
			return object.Namespace == namespace && !remote
		}
		// Manifests may leave out the namespace, unless the kind has none.
		mapping, err := pl.mapper.RESTMapping(schema.GroupKind{Group: object.Group, Kind: object.Kind})
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace && !slices.ContainsFunc(deployed, func(other string) bool { return other != namespace })
	}
}
