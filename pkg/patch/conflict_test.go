// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

// meanwhile changes the object on the server before the first write arrives.
func meanwhile(t *testing.T, s *widget.Server, change func(*widget.Widget) error) {
	t.Helper()
	done := false
	s.Before = func(request string) error {
		if done || request == "get" {
			return nil
		}
		done = true
		return change(read(t, s.Direct))
	}
}

func TestConflicts(t *testing.T) {
	update := func(s *widget.Server, t *testing.T) func(*widget.Widget) error {
		return func(w *widget.Widget) error { return s.Direct.Update(t.Context(), w) }
	}
	updateStatus := func(s *widget.Server, t *testing.T) func(*widget.Widget) error {
		return func(w *widget.Widget) error { return s.Direct.Status().Update(t.Context(), w) }
	}
	for _, tc := range []struct {
		name   string
		theirs func(*widget.Widget)
		write  func(*widget.Server, *testing.T) func(*widget.Widget) error
		ours   func(*widget.Widget)
		quiet  bool // ErrConflict
	}{
		{"another label does not matter to our status",
			func(w *widget.Widget) { w.Labels = map[string]string{"x": "y"} }, update,
			func(w *widget.Widget) { w.Status.Phase = "New" }, false},
		{"another generation does",
			func(w *widget.Widget) { w.Generation++ }, update,
			func(w *widget.Widget) { w.Status.Phase = "New" }, true},
		{"another status does",
			func(w *widget.Widget) { w.Status.Record = []widget.Item{{Name: "x"}} }, updateStatus,
			func(w *widget.Widget) { w.Status.Phase = "New" }, true},
		{"an unowned condition does not",
			func(w *widget.Widget) { conditions.MarkTrue(w, "Theirs", "R", "") }, updateStatus,
			func(w *widget.Widget) { conditions.MarkTrue(w, "Ready", "R", "") }, false},
		{"a condition that we own does",
			func(w *widget.Widget) { conditions.MarkTrue(w, "Ready", "Forged", "") }, updateStatus,
			func(w *widget.Widget) { conditions.MarkFalse(w, "Ready", "R", "") }, true},
		{"another label does not matter to our annotation",
			func(w *widget.Widget) { w.Labels = map[string]string{"x": "y"} }, update,
			func(w *widget.Widget) { w.Annotations = map[string]string{"a": "b"} }, false},
		{"another finalizer matters to ours",
			func(w *widget.Widget) { w.Finalizers = []string{"x.y/z"} }, update,
			func(w *widget.Widget) { w.Finalizers = []string{"a.b/c"} }, true},
		{"another status matters to our finalizer, because the next status builds on it",
			func(w *widget.Widget) { w.Status.Record = []widget.Item{{Name: "x"}} }, updateStatus,
			func(w *widget.Widget) { w.Finalizers = []string{"a.b/c"} }, true},
		{"another annotation matters to our finalizer, because it may say to keep it",
			func(w *widget.Widget) { w.Annotations = map[string]string{"a": "b"} }, update,
			func(w *widget.Widget) { w.Finalizers = []string{"a.b/c"} }, true},
		{"what is written already need not be written",
			func(w *widget.Widget) { w.Status.Phase = "New" }, updateStatus,
			func(w *widget.Widget) { w.Status.Phase = "New" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := widget.NewServer(stored())
			w, h := start(t, s)
			meanwhile(t, s, func(server *widget.Widget) error {
				tc.theirs(server)
				return tc.write(s, t)(server)
			})
			tc.ours(w)
			err := h.Patch(t.Context(), w, patch.WithOwnedConditions{Conditions: []string{"Ready"}})
			if errors.Is(err, patch.ErrConflict) != tc.quiet || !tc.quiet && err != nil {
				t.Fatalf("error: %v", err)
			}
			requests := s.Requests()
			if n := len(requests); n != 3 && !tc.quiet || n != 2 && tc.quiet {
				t.Errorf("one look and one more attempt at most: %v", requests)
			}
			if tc.quiet {
				return
			}
			// Both changes are on the server now.
			want := read(t, s.Direct)
			tc.theirs(want)
			tc.ours(want)
			got := read(t, s.Direct)
			if want.Status.Phase != got.Status.Phase || len(want.Labels) != len(got.Labels) ||
				len(want.Annotations) != len(got.Annotations) || len(want.Status.Conditions) != len(got.Status.Conditions) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestBeforeAnActAnotherAnnotationIsAConflict(t *testing.T) {
	ours := map[string]func(*widget.Widget, *patch.Helper){
		"a status to write":                      func(w *widget.Widget, _ *patch.Helper) { w.Status.Phase = "New" },
		"a status that an earlier attempt wrote": func(w *widget.Widget, _ *patch.Helper) { w.Status.Phase = "Arrived" },
		"a finalizer to write":                   func(w *widget.Widget, _ *patch.Helper) { w.Finalizers = []string{"a.b/c"} },
		"nothing to write":                       func(_ *widget.Widget, h *patch.Helper) { h.Age(6 * time.Second) },
	}
	for what, prepare := range ours {
		t.Run(what, func(t *testing.T) {
			s := widget.NewServer(stored())
			w, h := start(t, s)
			server := read(t, s.Direct)
			server.Annotations = map[string]string{"x.y/policy": "skip"}
			check.NoError(t, s.Direct.Update(t.Context(), server))
			if what == "a status that an earlier attempt wrote" {
				server.Status.Phase = "Arrived"
				check.NoError(t, s.Direct.Status().Update(t.Context(), server))
			}
			prepare(w, h)
			if err := h.Commit(t.Context(), w); !errors.Is(err, patch.ErrConflict) {
				t.Errorf("Commit: %v", err)
			}
			if got := read(t, s.Direct); got.ResourceVersion != server.ResourceVersion {
				t.Errorf("it was written: %+v", got)
			}
		})
	}
}

func TestDeletionDuringTheReconcileIsAConflict(t *testing.T) {
	w := stored()
	w.Finalizers = []string{"a.b/c"}
	s := widget.NewServer(w)
	obj, h := start(t, s)
	meanwhile(t, s, func(server *widget.Widget) error { return s.Direct.Delete(t.Context(), server) })
	obj.Status.Phase = "New"
	if err := h.Commit(t.Context(), obj); !errors.Is(err, patch.ErrConflict) {
		t.Errorf("error: %v", err)
	}
}

func TestAnObjectThatIsGoneIsConflictAndNotFound(t *testing.T) {
	for _, change := range []func(*widget.Widget){
		func(w *widget.Widget) { w.Status.Phase = "New" },
		func(w *widget.Widget) { w.Labels = map[string]string{"a": "b"} },
	} {
		s := widget.NewServer(stored())
		w, h := start(t, s)
		check.NoError(t, s.Direct.Delete(t.Context(), stored()))
		change(w)
		if err := h.Patch(t.Context(), w); !errors.Is(err, patch.ErrConflict) || !apierrors.IsNotFound(err) {
			t.Errorf("error: %v", err)
		}
	}
}

func TestAnObjectThatWasCreatedAnewIsAConflict(t *testing.T) {
	s := widget.NewServer(stored())
	w, h := start(t, s)
	meanwhile(t, s, func(server *widget.Widget) error {
		other := stored()
		other.UID = "uid-2"
		return errors.Join(s.Direct.Delete(t.Context(), server), s.Direct.Create(t.Context(), other))
	})
	w.Status.Phase = "New"
	if err := h.Commit(t.Context(), w); !errors.Is(err, patch.ErrConflict) {
		t.Errorf("error: %v", err)
	}
}

func TestAttemptsAreLimited(t *testing.T) {
	s := widget.NewServer(stored())
	w, h := start(t, s)
	s.Before = func(request string) error {
		if request == "get" {
			return nil
		}
		server := read(t, s.Direct)
		server.Labels = map[string]string{"x": server.ResourceVersion} // never at rest
		return s.Direct.Update(t.Context(), server)
	}
	w.Status.Phase = "New"
	if err := h.Patch(t.Context(), w); !errors.Is(err, patch.ErrConflict) {
		t.Errorf("error: %v", err)
	}
	requests := s.Requests()
	writes := len(slices.DeleteFunc(requests, func(r string) bool { return r == "get" }))
	if writes != 6 {
		t.Errorf("%d writes, want one and five more", writes)
	}
	check.SameNamed(t, "writes counted", 0, h.Writes())
}

func TestOtherErrorsAreReturned(t *testing.T) {
	refused := errors.New("refused by a webhook")
	s := widget.NewServer(stored())
	w, h := start(t, s)
	s.Before = func(request string) error {
		if request == "patch" {
			return refused
		}
		return nil
	}
	w.Labels = map[string]string{"a": "b"}
	w.Status.Phase = "New"
	if err := h.Patch(t.Context(), w); !errors.Is(err, refused) || errors.Is(err, patch.ErrConflict) {
		t.Errorf("error: %v", err)
	}
	check.SameNamed(t, "the status is not written although only the metadata was refused", "New", read(t, s.Direct).Status.Phase)
}

var _ client.Reader = (*widget.Server)(nil)
