// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"reflect"
	"slices"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// attempt is a full reconcile of a component that is not being deleted.
type attempt struct {
	obj    Component
	commit session.Commit
	target targets.Connection
	inputs
	// missingReferences says which references of the spec cannot be loaded; nil if all are loaded.
	missingReferences error
	// before is the cache of the reconcile before; empty if it is not in memory.
	before renderCache
	// candidate is the revision that the component has, or would have next.
	candidate revision.Candidate
	// approved is the rendering of the candidate if it was approved; else nil.
	approved *rendering.Rendering
}

// gate decides whether an attempt goes on. The answer of a closed gate names the work that goes on meanwhile. An error ends the
// attempt before a dependent is written; the status reports the error.
//
// Gates are asked in full reconciles. The fast path repeats the answer keep until a.until, the time of the next regular reconcile. A
// gate that opens at a certain time lowers a.until to this time, and requests a reconcile for it.
type gate func(ctx context.Context, a *attempt) (answer, error)

// answer is the answer of a gate. The zero value says that the gate is open.
type answer struct {
	meanwhile meanwhile
	// why is the error of the reconcile if the answer is freeze or repair.
	why error
	// held is the reason and the message of Ready if the answer is keep. It is empty if Ready may stay True: the spec is applied, and
	// only another version of the operator waits.
	held verdict.Held
}

// firstClosed asks gates in their order until one is closed.
func firstClosed(ctx context.Context, a *attempt, gates []gate) (answer, error) {
	for _, check := range gates {
		if ans, err := check(ctx, a); err != nil || ans.meanwhile != "" {
			return ans, err
		}
	}
	return answer{}, nil
}

// referencesLoaded is closed while the spec refers to objects that do not exist.
func (p *applier) referencesLoaded(_ context.Context, a *attempt) (answer, error) {
	switch {
	case a.missingReferences == nil:
		return answer{}, nil
	case mayRepairAs(a.obj, a.access, a.before):
		return answer{meanwhile: repair, why: a.missingReferences}, nil
	}
	return answer{meanwhile: freeze, why: a.missingReferences}, nil
}

// rolloutTurn is closed while the component keeps its version, because it is not its turn in a roll-out.
func (p *applier) rolloutTurn(ctx context.Context, a *attempt) (answer, error) {
	turn, err := p.fleet.Ask(ctx, a.obj, a.candidate)
	if turn != "" {
		return answer{meanwhile: keep}, err
	}
	return answer{}, err
}

// newCache returns the cache for a set of objects that the attempt applies. The digest is the digest of the component.
func (a *attempt) newCache(digest string, pin revision.Pin, objects rendering.Rendering) renderCache {
	p := renderCache{inputs: a.inputs, appliedRevision: appliedRevision{digest: digest, pin: pin, pinned: objects.Pinned}}
	p.config.Namespace, p.config.Adopted = objects.Namespace, nil // the adopted objects are large, and only the rendering needs them
	return p
}

// mayRepairAs reports whether dependents are written with this access although a reference is missing. The user that is impersonated
// may come from the missing reference; the user of an ImpersonationSpec does not.
func mayRepairAs(obj Component, access target.Access, before renderCache) bool {
	if before.desired != nil && before.meanwhile != repair {
		return reflect.DeepEqual(access, before.access)
	}
	if own, ok := configurationOf[ImpersonationConfiguration](obj); !ok || own.GetImpersonationUser() != "" {
		return true
	}
	spec := reflect.Indirect(reflect.ValueOf(specOf(obj)))
	return spec.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(spec.Type()), func(field reflect.StructField) bool {
		return field.Type == reflect.TypeFor[ImpersonationSpec]()
	})
}
