// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// maxPlaces limits how many differences are told.
const maxPlaces = 3

// probe is what came out when two renderings of the same input were compared.
type probe struct {
	inputs  string // the digest of the component
	finding string // empty if they were the same
}

// unprobed tells whether the input was not probed yet, and takes note that it is now.
func (r *renders) unprobed(key client.ObjectKey, inputs string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.probes[key]; known && last.inputs == inputs {
		return false
	}
	r.probes[key] = probe{inputs: inputs}
	return true
}

func (r *renders) found(key client.ObjectKey, inputs, finding string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probes[key] = probe{inputs: inputs, finding: finding}
}

// finding says where renderings differ; it is empty if they are not known to.
func (r *renders) finding(key client.ObjectKey) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probes[key].finding
}

// notices is everything that the message of the component has to say about its manifests.
func (r *renders) notices(key client.ObjectKey) []string {
	var notices []string
	for _, notice := range []string{r.finding(key), r.notice(key)} {
		if notice != "" {
			notices = append(notices, notice)
		}
	}
	return notices
}

// probe renders once more if that was not done yet for this digest of the component,
// and tells if the manifests are not the same. A generator may look something up that
// has just changed; so a difference counts only if the next rendering differs again.
func (h *handler[T]) probe(ctx context.Context, obj T, wanted directives, first []client.Object) {
	inputs, err := manifests.ComponentDigestFromContext(ctx)
	key := client.ObjectKeyFromObject(obj)
	if err != nil || h.settings.renderOnce || !obj.GetDeletionTimestamp().IsZero() || !h.renders.unprobed(key, inputs) {
		return
	}
	ctx, origins := manifests.WithOrigins(ctx)
	var places []difference.Place
	for range 2 {
		next, err := h.generate(ctx, obj, wanted)
		if err != nil {
			// If it is more than a coincidence, it will be seen: the same is rendered again soon.
			logf.FromContext(ctx).Info("could not render again to see whether the manifests are the same", "error", err.Error())
			return
		}
		if places = difference.Between(first, next, maxPlaces); len(places) == 0 {
			return
		}
		first = next
	}
	finding := redact.From(ctx).Text(findingOf(places, origins))
	h.renders.found(key, inputs, finding)
	events.Send(h.recorder, obj, 1, events.Event{
		Type: corev1.EventTypeWarning, Reason: reasonNonDeterministic, Action: string(applying), Note: finding,
	})
}

// findingOf names objects, fields and templates, but no values: they may be secret.
func findingOf(places []difference.Place, origins *manifests.Origins) string {
	texts := make([]string, 0, len(places))
	for _, place := range places {
		text := place.String()
		if origin := origins.Of(place.Source); origin != "" {
			text += " (from " + origin + ")"
		}
		texts = append(texts, text)
	}
	return "two renderings of the same input are not the same: " + strings.Join(texts, "; ")
}
