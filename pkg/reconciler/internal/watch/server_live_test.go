// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWatchThatBeginsWithAListIsTheOnlyRequest(t *testing.T) {
	l := shared(t, Options{})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.keep(maps)
	if o, known, watched := l.store.Look(maps, "one"); !known || !watched || o.ObservedHash != "first" {
		t.Errorf("%+v, %t, %t", o, known, watched)
	}
	l.patch(maps, "one", `{"data":{"text":"second"}}`)
	l.sees(maps, "one", "second")
	l.hears("a: one Content")
	if d := cmp.Diff([]string{"watchlist /api/v1/configmaps"}, l.requests.take()); d != "" {
		t.Error(d)
	}
}

func TestAnObjectThatLosesItsLabelVanishes(t *testing.T) {
	l := shared(t, Options{})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.configMap("two", "first")
	l.keep(maps)
	l.patch(maps, "one", `{"metadata":{"labels":null}}`)
	l.hears("a: one Vanished")
	if _, known, watched := l.store.Look(maps, "one"); known || !watched {
		t.Errorf("%t, %t", known, watched)
	}
	l.patch(maps, "two", `{"metadata":{"labels":{"`+label+`":"b"}}}`)
	l.hears("a: two Content")
	l.hears("b: two Content")
}
