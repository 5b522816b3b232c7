// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// maxPlaces limits how many differences are told.
const maxPlaces = 3

// probe is what came out when two renderings of the same input were compared.
type probe struct {
	inputs  string // the digest of what the component says
	finding string // empty if they were the same
}

// unprobed reports whether the input was not probed yet. If not, what another input has
// shown is over, and if the probe begins, that is noted.
func (r *renders) unprobed(key client.ObjectKey, inputs string, begin bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.probes[key]; known && last.inputs == inputs {
		return false
	}
	delete(r.probes, key)
	if begin {
		r.probes[key] = probe{inputs: inputs}
	}
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

// probe renders once more if that was not done yet for this input, and reports if the
// manifests are not the same. A generator may look something up that has just changed; so
// a difference counts only if the next rendering differs again.
//
// While something that the generator reads does not exist, nothing is probed: a template
// that generates a password unless it finds the Secret with it generates another one each
// time until the Secret is there.
func (h *handler[T]) probe(ctx context.Context, obj T, wanted directives, first []client.Object, read *answers) {
	inputs, key := inputsOf(ctx, obj), client.ObjectKeyFromObject(obj)
	if inputs == "" || h.settings.renderOnce || !obj.GetDeletionTimestamp().IsZero() {
		return
	}
	if complete := !read.foundNothing(); !h.renders.unprobed(key, inputs, complete) || !complete {
		return
	}
	ctx, origins := manifests.WithOrigins(ctx)
	var places []difference.Place
	for range 2 {
		next, _, err := h.generate(ctx, obj, wanted)
		if err != nil {
			// If it is more than a coincidence, it will be seen: the same is rendered again soon.
			logf.FromContext(ctx).Info("could not render again to see whether the manifests are the same", "error", err.Error())
			return
		}
		if places = difference.Between(h.followed(first), h.followed(next), maxPlaces); len(places) == 0 {
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

// answers notes what a generator reads with its clients while it renders.
type answers struct {
	lock    sync.Mutex
	read    []string
	nothing bool
}

// client returns a client whose reads are noted.
func (a *answers) client(c client.Client) client.Client { return &noting{Client: c, answers: a} }

func (a *answers) note(parts ...string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.read = append(a.read, digest.Combine(parts...))
}

func (a *answers) noteNothing(parts ...string) {
	a.note(parts...)
	a.lock.Lock()
	defer a.lock.Unlock()
	a.nothing = true
}

// noteServed notes what the target serves, if that is known: a generator may have asked.
func (a *answers) noteServed(ctx context.Context) {
	target, err := manifests.TargetFromContext(ctx)
	if err != nil {
		return
	}
	if served, known := target.Types().LastServed(); known {
		a.note(append([]string{"served", served.Version}, served.APIVersions...)...)
	}
}

// digest identifies everything that was read, in whatever order.
func (a *answers) digest() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	return digest.Combine(slices.Sorted(slices.Values(a.read))...)
}

// foundNothing reports whether something was looked for that does not exist.
func (a *answers) foundNothing() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.nothing
}

// noting is a client that notes the versions of what it reads.
type noting struct {
	client.Client
	answers *answers
}

func (n *noting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := n.Client.Get(ctx, key, object, options...)
	switch kind := n.kindOf(object); {
	case apierrors.IsNotFound(err):
		n.answers.noteNothing("get", kind, key.String())
	case err == nil:
		n.answers.note("get", kind, key.String(), string(object.GetUID()), object.GetResourceVersion())
	}
	return err
}

func (n *noting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := n.Client.List(ctx, list, options...)
	if err != nil {
		return err
	}
	parts := []string{"list", n.kindOf(list)}
	_ = apimeta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			parts = append(parts, string(object.GetUID()), object.GetResourceVersion())
		}
		return nil
	})
	if apimeta.LenList(list) == 0 {
		n.answers.noteNothing(parts...)
	} else {
		n.answers.note(parts...)
	}
	return nil
}

func (n *noting) kindOf(object runtime.Object) string {
	gvk, err := n.GroupVersionKindFor(object)
	if err != nil {
		return ""
	}
	return gvk.String()
}
