// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
)

// reasonRandomValuesLost means that the Secret of the revisions was lost or cannot be read, so the operator made
// new random values. Values in Secrets of the component stay.
//
// Event type: Warning
// What to do: check that the workloads take the new values. Do not delete the Secret of the revisions.
const reasonRandomValuesLost = "RandomValuesLost"

// kept is what each rendering of a revision has in common, although a rendering alone would make
// it anew. It is in a Secret, too, for the next process.
type kept struct {
	component apitypes.UID
	revision  revisions.Revision
	keptContent
	secret keptSecret
	// lost says why there is nothing in the Secret although the revision was rendered before.
	lost string
	// notice says why it is kept in memory only.
	notice string
}

// keptSecret is what is known of the Secret of the revisions.
type keptSecret struct {
	// record is the Secret; nil as long as nothing is known of it. It outlives the revision.
	record *revisions.Record
	// loaded: what is kept of the revision was read. saved: the Secret has all of it.
	loaded, saved bool
	// tooLarge and failed are the digests of manifests that are too large for the history, or that could
	// not be written the last time.
	tooLarge, failed string
}

// keptContent is the content of the Secret.
type keptContent struct {
	// Time is what the renderings take for the current time.
	Time time.Time `json:"time"`
	// Cause identifies the input, and the answers of the cluster, for which the random parts were
	// found. Others may be random for another cause.
	Cause string `json:"cause,omitempty"`
	randomParts
}

// keepRandom gives the objects of a rendering that used random values or the time, or that looked up what
// another one may have made of them, those that the revision has. New ones are to be saved before the
// objects are applied.
func (r *Renderer) keepRandom(ctx context.Context, request Request, inputs string, objects []client.Object, read *answers, k *kept) ([]client.Object, *answers, error) {
	if r.Revisions != nil && !k.secret.loaded {
		before := k.Time
		if err := r.load(ctx, request, k); err != nil {
			return nil, nil, err
		}
		if !read.random.Used() && k.isEmpty() {
			k.lost, k.notice = "", "" // nothing of the revision is random
		}
		if read.random.Time.Load() && !k.Time.Equal(before) {
			var err error
			if objects, read, err = r.generate(renders.WithTime(ctx, k.Time), request); err != nil {
				return nil, nil, err
			}
		}
	}
	cause := digest.Combine(inputs, read.digest())
	switch {
	case k.Cause == cause:
	case read.random.Used(), request.carries():
		if err := r.findRandom(ctx, request, objects, k); err != nil {
			return nil, nil, err
		}
		k.Cause = cause
	case !k.isEmpty(): // it looks up what an earlier rendering has made
		if err := k.keepParts(randomParts{}, objects); err != nil {
			return nil, nil, err
		}
		k.Cause = cause
	}
	k.restore(objects)
	return objects, read, nil
}

// findRandom renders again to find out which parts are random. If that fails, what is kept stays.
//
// Two renderings may have the same random value by chance, if there are few that it can be. A part
// that was not found before, or is not found again, is worth a third one.
func (r *Renderer) findRandom(ctx context.Context, request Request, objects []client.Object, k *kept) error {
	ctx = renders.WithTime(ctx, k.Time)
	var others [][]client.Object
	var found randomParts
	for len(others) == 0 || len(others) == 1 && (k.Cause == "" || !found.has(k.randomParts)) {
		again, _, err := r.generate(ctx, request)
		if err != nil {
			return err
		}
		others = append(others, again)
		found = randomIn(objects, others...)
	}
	if request.carries() || k.lost != "" {
		installed, err := r.asInstalled(ctx, request, objects, k.Time)
		if err != nil {
			return err
		}
		if err := r.carryOver(ctx, request, randomIn(objects, append(others, installed...)...), k); err != nil {
			return err
		}
	}
	return k.keepParts(found, objects)
}

// keepParts keeps the parts of a rendering with the values that the revision has. They get the types of values that the objects
// of an API have, whatever the generator used.
func (k *kept) keepParts(found randomParts, objects []client.Object) error {
	var parts randomParts
	encoded, err := json.Marshal(found.keep(k.randomParts, objects))
	if err == nil {
		err = utiljson.Unmarshal(encoded, &parts)
	}
	if err != nil {
		return fmt.Errorf("the random values of the manifests: %w", err)
	}
	if k.secret.saved = k.secret.saved && reflect.DeepEqual(parts, k.randomParts); !k.secret.saved {
		k.randomParts = parts
	}
	return nil
}

// load reads what is kept of the revision in the Secret. What is in memory counts only if nothing is
// there.
func (r *Renderer) load(ctx context.Context, request Request, k *kept) error {
	k.secret.record = nil
	record, err := r.Revisions.Read(ctx, r.Self.Revisions(request.Component))
	if IsRefusal(err) {
		if k.notice = inMemory(err); request.Rendered && k.Cause == "" {
			k.lost = err.Error()
		}
		return nil
	}
	if err != nil {
		return err
	}
	k.secret.loaded = true
	content, err := record.Content(ctx, request.Revision)
	if err == nil {
		var stored keptContent
		if err = utiljson.Unmarshal(content, &stored); err == nil {
			k.secret.record, k.keptContent, k.secret.saved = record, stored, true
			return nil
		}
		err = &revisions.LostError{Changed: true, Err: err}
	}
	lost, ok := errors.AsType[*revisions.LostError](err)
	if !ok {
		return err
	}
	// What is there of a revision that was not rendered before is of another one with the same number,
	// which has never started.
	if k.secret.record, k.secret.saved = record, false; request.Rendered && (lost.Changed || k.Cause == "") {
		k.lost = lost.Error()
	}
	return nil
}

// keepValues writes the random values of the revision if the Secret does not have them yet, and its
// objects with them. That something cannot be kept there stops nothing; it is tried again with the
// next full reconcile.
func (r *Renderer) keepValues(ctx context.Context, request Request, read *answers, rendering *Rendering, k *kept) error {
	needed := !k.isEmpty() || read.random.Time.Load()
	if needed && k.lost != "" && !r.Preview {
		r.Telemetry.Warn(request.Component, reasonRandomValuesLost, telemetry.Apply,
			fmt.Sprintf("the random values of revision %d that no Secret of the component has are made anew, because what was kept of them is lost: %s", k.revision.Number, k.lost))
	}
	k.lost = ""
	if r.Preview || k.secret.saved || !needed || k.secret.record == nil || request.Component.GetDeletionTimestamp() != nil {
		return nil
	}
	content, err := json.Marshal(k.keptContent)
	if err != nil {
		return fmt.Errorf("the random values of the manifests: %w", err)
	}
	update := revisions.Update{Content: content}
	if !request.Pending {
		update.Set = rendering.unsaved
	}
	return r.write(ctx, request, update, rendering, k)
}

// Keep adds the objects of a rendering to the history, unless they are in it. It is called when the
// engine has accepted them.
func (r *Renderer) Keep(ctx context.Context, request Request, rendering *Rendering, last *Last) error {
	k := &last.kept
	if rendering.unsaved == nil || rendering.unsaved.Digest == k.secret.tooLarge {
		return nil
	}
	if k.secret.record == nil {
		var err error
		// At the first revision, there is no Secret yet in most cases.
		if request.Revision.Number == 1 && request.Stored == "" {
			k.secret.record = r.Revisions.Assume(r.Self.Revisions(request.Component))
		} else if k.secret.record, err = r.Revisions.Read(ctx, r.Self.Revisions(request.Component)); err != nil {
			return r.notKept(ctx, revisions.Update{Set: rendering.unsaved}, k, err)
		}
	}
	return r.write(ctx, request, revisions.Update{Set: rendering.unsaved}, rendering, k)
}

// write writes what an update has.
func (r *Renderer) write(ctx context.Context, request Request, update revisions.Update, rendering *Rendering, k *kept) error {
	if err := r.Leading(); err != nil {
		return err
	}
	update.Revision, update.Retention = request.Revision, request.Retention
	if err := k.secret.record.Save(ctx, update); err != nil {
		return r.notKept(ctx, update, k, err)
	}
	if update.Content != nil {
		k.secret.saved, k.notice = true, ""
	}
	if update.Set != nil {
		rendering.Stored, rendering.unsaved = update.Set.Digest, nil
	}
	return nil
}

// notKept notes that something cannot be kept. It returns the error unless it is a refusal.
func (r *Renderer) notKept(ctx context.Context, update revisions.Update, k *kept, err error) error {
	tooLarge := revisions.IsTooLarge(err)
	if !tooLarge && !IsRefusal(err) {
		k.secret.record, k.secret.loaded = nil, false // it is read again: another process may have been faster
		if repeated := update.Set != nil && k.secret.failed == update.Set.Digest; update.Content != nil || !repeated {
			if update.Set != nil {
				k.secret.failed = update.Set.Digest
			}
			return err
		}
		// A component must not fail for good because its history cannot be written.
	}
	if update.Content != nil {
		k.notice = inMemory(err)
	}
	if update.Set != nil {
		if tooLarge {
			k.secret.tooLarge = update.Set.Digest
		}
		logf.FromContext(ctx).Info("the manifests are not kept in the history", "revision", k.revision.Number, "reason", err.Error())
	}
	return nil
}

// IsRefusal reports whether an error is an answer that will be the same as long as nothing but the
// component changes, as of a lack of rights, a quota or a webhook.
func IsRefusal(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	switch code := answer.ErrStatus.Code; code {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

func inMemory(err error) string {
	return "the random values of the manifests are made anew when the operator restarts, because they cannot be kept: " + err.Error()
}
