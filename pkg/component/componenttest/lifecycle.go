// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestLifecycle creates the component in a new namespace and waits until it is Ready. It
// changes it with edit, which may be nil, waits until it is Ready again, deletes it, and
// expects that nothing is left.
func (o Operator[T]) TestLifecycle(t testing.TB, obj T, edit func(T)) {
	t.Helper()
	o.prepare(t, obj).play(t, edit, &connection{}, nil)
}

// course is how a lifecycle went.
type course struct {
	installed, edited snapshot
	// created is how often each object was created, by its name, but for the Secrets of
	// the operator itself, which have other names for each component.
	created map[string]int
	// writes counts the writes of the reconciles of the first process.
	writes int
}

// play goes through a lifecycle; the first process of the operator has the connection. With a
// reference it expects the same states.
func (i *Installed[T]) play(t testing.TB, edit func(T), network *connection, reference *course) *course {
	t.Helper()
	defer i.end(t)
	i.start(t, network)
	want := course{}
	if reference != nil {
		want = *reference
	}
	got := &course{}
	i.create(t)
	got.installed = i.awaitReady(t, want.installed)
	if edit != nil {
		i.change(t, edit)
		got.edited = i.awaitReady(t, want.edited)
	}
	i.Delete(t)
	got.created, got.writes = map[string]int{}, network.count()
	for o, c := range i.record.creations() {
		if !isKeyOfDigests(o) && !c.bookkeeping {
			got.created[i.nameOf(o)] += c.times
		}
	}
	for name, times := range got.created {
		if most := want.created[name]; reference != nil && times > most {
			t.Errorf("%s was created %d times, and without a failure %d times", name, times, most)
		}
	}
	return got
}

// alone returns the command that runs only this case.
func alone(t testing.TB) string {
	var levels []string
	for _, level := range strings.Split(t.Name(), "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	return fmt.Sprintf("to run it alone: go test -run '%s'", strings.Join(levels, "/"))
}
