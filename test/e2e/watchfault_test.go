// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/slice"
)

// watchFault says what is wrong, for a while, with the watches by which an operator
// knows its dependents and what its components refer to, or its components. When it has ended they are correct again: events that were
// kept back arrive, and a watch that has lost some is broken, so that the operator
// can notice. Without the latter no client could ever be right.
type watchFault struct {
	name string
	// ofComponents is set if the watch of the components is at fault, and not those of dependents and references.
	ofComponents bool
	// only are the resources concerned, except those that are not; empty means all
	// dependents and references.
	only, except []string
	// lasts is how long it lasts, idle for how much of it the operator has nothing
	// to do.
	lasts, idle time.Duration

	// hold keeps events back until the end, delay for some time.
	hold  bool
	delay time.Duration
	// drop loses events; the watch is broken in the end. With bookmarks the versions
	// of the lost events are sent, so that going on from there would be wrong: the
	// server says then that the version is too old.
	drop, bookmarks bool
	// replay sends every event twice, and then the previous state once more.
	replay bool
	// expire breaks a watch at every event, as the version is too old.
	expire bool

	// refuse breaks all watches and refuses new ones; silent breaks them and leaves
	// new ones without an answer; tooLarge answers that the server has not come to
	// the version yet.
	refuse, silent, tooLarge bool
	// past breaks all watches and answers new ones as a server does that stopped at
	// the start of the fault; longPast as one that stopped before the scenario.
	past, longPast bool
}

const (
	moment = 1200 * time.Millisecond
	// stale is how long a broken watch is believed.
	stale = 10 * time.Second
)

// watchFaults are all faults: those of dependents, and the same of components. A fault of components lasts until the scenario has
// ended, which stands for minutes without an event: the operator reconciles, as at the end of its requeue interval, and the watch of
// the components shows nothing of the scenario, or shows it late or wrong.
var watchFaults = slices.Concat(faultsOfDependents, faultsOfComponents())

func faultsOfComponents() (twins []*watchFault) {
	for _, f := range faultsOfDependents {
		if len(f.only) > 0 || len(f.except) > 0 || f.idle > 0 {
			continue
		}
		twin := *f
		twin.name, twin.ofComponents = "component: "+f.name, true
		twins = append(twins, &twin)
	}
	return twins
}

var faultsOfDependents = []*watchFault{
	{name: "events are late", lasts: 2 * moment, delay: moment / 3},
	{name: "events are held back", lasts: moment, hold: true},
	{name: "events of ConfigMaps are held back", lasts: moment, hold: true, only: []string{"configmaps"}},
	{name: "events of all but ConfigMaps are held back", lasts: moment, hold: true, except: []string{"configmaps"}},
	{name: "events are lost until the watch breaks", lasts: moment, drop: true},
	{name: "nothing but bookmarks arrives", lasts: moment, drop: true, bookmarks: true},
	{name: "events are replayed", lasts: moment, replay: true},
	{name: "every version is too old at once", lasts: 2 * moment, expire: true},
	{name: "every version is too new", lasts: 2 * moment, tooLarge: true},
	{name: "watches are refused for a moment", lasts: moment, refuse: true},
	{name: "watches are refused for long", lasts: stale + 3*moment, idle: stale + moment, refuse: true},
	{name: "watches are not answered", lasts: 2 * moment, silent: true},
	{name: "watches start in the past", lasts: 2 * moment, past: true},
	{name: "watches start before the story", lasts: 2 * moment, longPast: true},
}

// breaks reports whether all watches are broken at the start.
func (f *watchFault) breaks() bool { return f.refuse || f.silent || f.tooLarge || f.isOld() }

// isOld reports whether watches start in the past.
func (f *watchFault) isOld() bool { return f.past || f.longPast }

// concerns reports whether a request is a watch, or the list of one, that the fault affects.
func (f *watchFault) concerns(r *http.Request) bool {
	resource := collectionOf(r)
	if f.ofComponents {
		return resource == "widgets" && strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") // the client of the operator asks for Bundles
	}
	return (isOfDependents(r) || isOfReference(r)) && (len(f.only) == 0 || slices.Contains(f.only, resource)) && !slices.Contains(f.except, resource)
}

// meets reports whether the scenario has objects that the fault affects.
func (f *watchFault) meets(s *scenario) bool {
	isConfigMap := func(text string) bool { return strings.Contains(text, "\nkind: ConfigMap\n") }
	other := func(text string) bool { return !isConfigMap(text) }
	switch {
	case slices.Contains(f.only, "configmaps"):
		return slices.ContainsFunc(s.texts(), isConfigMap)
	case slices.Contains(f.except, "configmaps"):
		return slices.ContainsFunc(s.texts(), other)
	}
	return true
}

// meetsCrash reports whether the fault is combined with a crash. The faults take turns: consecutive faults have consecutive indexes, and
// so do consecutive crashes. A slice that is not whole has picked one of the faults of dependents before.
func (f *watchFault) meetsCrash(index int, cases slice.Slice) bool {
	switch {
	case f.ofComponents:
		return index%(len(watchFaults)-len(faultsOfDependents)) == 0
	case cases.Whole():
		return index%5 == 0
	}
	return true
}

// isOfDependents reports whether a request is a watch of dependents or of shared types, or the list that
// such a watch starts with.
func isOfDependents(r *http.Request) bool {
	selector := r.URL.Query().Get("labelSelector")
	return r.Method == http.MethodGet && (selector == reconcilerName+"/owner-id" || selector == reconcilerName+"/shared")
}

// isOfReference reports whether a request is a watch of an object that a component refers to, or the list that such a watch starts with.
func isOfReference(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

// collectionOf is the resource of a request about a collection.
func collectionOf(r *http.Request) string { return path.Base(r.URL.Path) }

// inJSON asks for no other form of the answer than the one that we can read.
func inJSON(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	forms := slices.DeleteFunc(strings.Split(r.Header.Get("Accept"), ","), func(form string) bool { return !strings.Contains(form, "json") })
	r.Header.Set("Accept", strings.Join(forms, ","))
	return r
}

// isInitial reports whether a watch starts with what there is.
func isInitial(r *http.Request) bool {
	return isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "true"
}

// inThePast makes the request one about the past.
func (w *faultyWatches) inThePast(r *http.Request, match string) *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	then := r.Clone(r.Context())
	query := then.URL.Query()
	for _, name := range []string{"sendInitialEvents", "resourceVersionMatch", "limit"} {
		query.Del(name)
	}
	query.Set("resourceVersion", w.version)
	if match != "" {
		query.Set("resourceVersionMatch", match)
		for _, name := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds"} {
			query.Del(name)
		}
	}
	then.URL.RawQuery = query.Encode()
	return then
}

// fromThePast starts a watch with what there was. What has come since comes when
// the fault has ended.
func (w *faultyWatches) fromThePast(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(w.inThePast(r, "Exact"))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	first, err := initialEvents(response.Body)
	if err != nil {
		return nil, err
	}
	response, err = next.RoundTrip(w.inThePast(r, ""))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	w.mu.Lock()
	w.affect()
	started := w.started
	w.mu.Unlock()
	return w.stream(r, response, first, started), nil
}

// initialEvents returns the events of a watch that starts with a list.
func initialEvents(body io.ReadCloser) (events [][]byte, err error) {
	defer func() { _ = body.Close() }()
	var list struct {
		APIVersion, Kind string
		Metadata         metav1.ListMeta
		Items            []map[string]any
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, err
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	for _, item := range list.Items {
		item["apiVersion"], item["kind"] = list.APIVersion, kind
		events = append(events, encode("ADDED", item))
	}
	return append(events, bookmark(list.APIVersion, kind, list.Metadata.ResourceVersion, true)), nil
}

// staleScenarios are what TestStaleWatches goes through.
var staleScenarios = slices.Concat(
	lifeScenarios, typeScenarios[:4], purgeScenarios()[1:2], handoverScenarios(), otherClientScenarios(), rollbackScenarios,
	approvalScenarios[1:2], // the others change no dependent
	outputScenarios,
)

// TestStaleWatches lets the watches of an operator be late, broken or wrong while it
// has work to do and while another client changes its objects. Each scenario has to
// come to the end that it has when the watches are correct: without a crash, and
// with a crash at every request; its successor starts with watches of the same fault.
// A crash meets every fifth fault of the watches of dependents, and one fault of the watch of components; the next crash meets others.
// A slice has one fault for each scenario, and one for each of its crashes.
func TestStaleWatches(t *testing.T) {
	t.Parallel()
	for number, s := range staleScenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			cases, ran, crashed := slice.FromEnvironment(t), atomic.Int64{}, atomic.Int64{}
			reference := s.reference(t)
			if t.Failed() {
				return
			}
			t.Run("watches", func(t *testing.T) {
				for i, fault := range watchFaults {
					if !fault.meets(s) {
						continue
					}
					t.Run(fault.name, func(t *testing.T) {
						t.Parallel()
						requests := reference.requests
						if cases.Picks(number, i, len(watchFaults)) {
							ran.Add(1)
							t.Run("without a crash", func(t *testing.T) { requests = s.play(t, newCrasher(0, false), fault, reference).requests })
						}
						if t.Failed() {
							return
						}
						for j, p := range pointsOf(requests) {
							if !cases.Has(j+3*number) || !cases.Picks(j+number, i, len(watchFaults)) || !fault.meetsCrash(i+j+number, cases) {
								continue
							}
							ran.Add(1)
							t.Run(p.String(), func(t *testing.T) {
								t.Parallel()
								if s.play(t, newCrasher(p.at, p.after), fault, reference).crashed {
									crashed.Add(1)
								}
							})
						}
					})
				}
			})
			t.Logf("%d requests without a fault; %d cases run, %d crashed", len(reference.requests), ran.Load(), crashed.Load())
		})
	}
}
