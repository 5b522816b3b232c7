// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

func TestCommitMakesMetadataAndStatusDurable(t *testing.T) {
	s := widget.NewServer(stored())
	w, h := start(t, s)
	w.Finalizers = []string{"a.b/c"}
	w.Spec.Loaded = "from elsewhere"
	w.Status.Record = []widget.Item{{Name: "x", UID: "1"}}
	check.NoError(t, h.Commit(t.Context(), w))
	wantRequests(t, s, "patch", "patch status")
	server := read(t, s.Direct)
	if len(server.Finalizers) != 1 || len(server.Status.Record) != 1 || server.ResourceVersion != w.ResourceVersion {
		t.Errorf("on the server: %+v", server)
	}
	check.SameNamed(t, "the loaded value did not survive", "from elsewhere", w.Spec.Loaded)
	// One Commit after the other, on top of it.
	w.Status.Record = append(w.Status.Record, widget.Item{Name: "y"})
	check.NoError(t, h.Commit(t.Context(), w))
	wantRequests(t, s, "patch status")
}

func TestCommitWithoutChangesLooksIfTheLastLookIsOld(t *testing.T) {
	s := widget.NewServer(stored())
	w, h := start(t, s)
	commit := func() error {
		t.Helper()
		return h.Commit(t.Context(), w)
	}
	check.NoError(t, commit())
	wantRequests(t, s)
	h.Age(6 * time.Second)
	check.NoError(t, errors.Join(commit(), commit()))
	wantRequests(t, s, "get")

	server := read(t, s.Direct)
	server.Generation++
	check.NoError(t, s.Direct.Update(t.Context(), server))
	h.Age(6 * time.Second)
	if err := commit(); !errors.Is(err, patch.ErrConflict) {
		t.Errorf("another generation: %v", err)
	}
}

func TestWithoutAStatusSubresource(t *testing.T) {
	s := widget.NewServerWithoutStatus(stored())
	w, h := start(t, s)
	w.Status.Phase = "New"
	var missing *patch.NoStatusSubresourceError
	if err := h.Commit(t.Context(), w); !errors.As(err, &missing) {
		t.Fatalf("error: %v", err)
	}
	check.SameNamed(t, "object", "Widget ns/a", missing.Object)
	check.SameNamed(t, "Commit wrote the phase", "Old", read(t, s.Direct).Status.Phase)

	// At the end of the reconcile the conditions are written nevertheless, once, and
	// nothing else: it must not look durable.
	conditions.MarkStalled(w, "CRDOutdated", "")
	s.Requests()
	for range 2 {
		if err := h.Patch(t.Context(), w, patch.WithStatusObservedGeneration{}); !errors.As(err, &missing) {
			t.Fatalf("error: %v", err)
		}
	}
	if got := read(t, s.Direct); got.Status.Phase != "Old" || !conditions.IsStalled(got) {
		t.Errorf("status %+v", got.Status)
	}
	wantRequests(t, s, "patch status", "get", "patch", "patch status", "get")
	if err := h.Commit(t.Context(), w); !errors.As(err, &missing) {
		t.Fatalf("error: %v", err)
	}
}
