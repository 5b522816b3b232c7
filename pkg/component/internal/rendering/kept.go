// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// reasonRandomValuesLost is the reason of the event about random values that are made anew.
const reasonRandomValuesLost = "RandomValuesLost"

// otherTime is how far the time of a second rendering is from that of the first: what is made of
// the time differs then, even if it is only the month or the minute.
const otherTime = 400*24*time.Hour + time.Hour + time.Minute + time.Second

// kept are the random parts of the manifests of a revision.
type kept struct {
	revision revisions.Revision
	loaded   bool
	// record is where they are kept; nil if that is in memory only.
	record  *revisions.Record
	parts   randomParts
	encoded []byte // of the parts
	// answers identifies what the generator had read when it was found out which parts are
	// random. With other answers others may be.
	answers string
	// notice says why they are kept in memory only.
	notice string
}

// noParts is the encoding of no parts.
var noParts = []byte("{}")

// keepRandom gives the objects of a rendering that used random values the values that its
// revision has. Values that are new are kept before it returns, so that another process that goes
// on with what is applied then has them, too.
func (r *Renderer) keepRandom(ctx context.Context, request Request, objects []client.Object, read *answers, k *kept) error {
	if !k.loaded || k.revision != request.Revision {
		loaded, err := r.load(ctx, request)
		if err != nil {
			return err
		}
		*k = loaded
	}
	if answers := read.digest(); k.answers != answers {
		if err := r.findRandom(ctx, request, objects, answers, k); err != nil {
			*k = kept{} // what is on the server counts
			return err
		}
	}
	k.parts.restore(objects)
	return nil
}

// findRandom renders once more to find out which parts are random, and keeps them.
func (r *Renderer) findRandom(ctx context.Context, request Request, objects []client.Object, answers string, k *kept) error {
	again, readAgain, err := r.generate(manifests.WithTime(ctx, r.Now().Add(otherTime)), request)
	if err != nil {
		return err
	}
	if k.answers = answers; readAgain.digest() != answers {
		k.answers = "" // perhaps not all that differs is random
	}
	encoded, err := json.Marshal(randomIn(objects, again).keep(k.parts))
	if err != nil {
		return fmt.Errorf("the random values of the manifests: %w", err)
	}
	if bytes.Equal(encoded, k.encoded) {
		return nil
	}
	parts, err := decodeParts(encoded)
	if err != nil {
		return fmt.Errorf("the random values of the manifests: %w", err)
	}
	k.parts, k.encoded = parts, encoded
	return r.save(ctx, k)
}

// load reads what is kept of the revision.
func (r *Renderer) load(ctx context.Context, request Request) (kept, error) {
	k := kept{revision: request.Revision, loaded: true, encoded: noParts}
	if r.Revisions == nil {
		return k, nil
	}
	record, err := r.Revisions.Read(ctx, revisions.Component{
		GroupVersionKind: r.Kind, Namespace: request.Component.GetNamespace(), Name: request.Component.GetName(), UID: request.Component.GetUID(),
	})
	if k.notice = whyInMemory(err); k.notice != "" {
		return k, nil
	}
	if err != nil {
		return kept{}, err
	}
	k.record = record
	content, err := record.Content(ctx, request.Revision)
	if lost, ok := errors.AsType[*revisions.LostError](err); ok {
		if request.Rendered {
			r.Telemetry.Warn(request.Component, reasonRandomValuesLost, telemetry.Apply,
				fmt.Sprintf("the random values of revision %d are made anew, because what was kept of them is lost: %v", request.Revision.Number, lost))
		}
		return k, nil
	}
	if err != nil {
		return kept{}, err
	}
	if k.parts, err = decodeParts(content); err != nil {
		return kept{}, fmt.Errorf("the random values of revision %d: %w", request.Revision.Number, err)
	}
	k.encoded = content
	return k, nil
}

// save makes the parts durable, if that is possible.
func (r *Renderer) save(ctx context.Context, k *kept) error {
	if k.record == nil {
		return nil
	}
	if err := r.Leading(); err != nil {
		return err
	}
	err := k.record.Save(ctx, k.revision, k.encoded)
	if k.notice = whyInMemory(err); k.notice != "" {
		k.record = nil
		return nil
	}
	return err
}

// whyInMemory says that values are kept in memory only if an error means that they cannot be kept
// elsewhere, also later.
func whyInMemory(err error) string {
	_, tooLarge := errors.AsType[*revisions.LostError](err)
	if tooLarge || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return "the random values of the manifests are made anew when the operator restarts, because they cannot be kept: " + err.Error()
	}
	return ""
}
