// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/patch"
)

// leaseStub is a lease that answers at once.
type leaseStub struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
	during func()
}

func (s *leaseStub) Identity() string { return "me" }
func (s *leaseStub) Describe() string { return "shop/lock" }

func (s *leaseStub) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &s.record, nil, s.err
}

func (s *leaseStub) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.Update(ctx, record)
}

func (s *leaseStub) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if s.during != nil {
		s.during()
	}
	if s.err == nil {
		s.record = record
	}
	return s.err
}

func TestALeaderLockKnowsHowOldItsLeaseIs(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}
	tests := []struct {
		name string
		do   func(*leaseStub, *LeaderLock, *time.Time)
		want string // part of the error; empty: held
	}{
		{"never acquired", func(*leaseStub, *LeaderLock, *time.Time) {}, "is not held by this process"},
		{"acquired", func(_ *leaseStub, l *LeaderLock, _ *time.Time) { _ = l.Create(context.Background(), mine) }, ""},
		{"not acquired, because the server refused", func(s *leaseStub, l *LeaderLock, _ *time.Time) {
			s.err = errors.New("conflict")
			_ = l.Create(context.Background(), mine)
		}, "is not held by this process"},
		{"renewed just in time", func(_ *leaseStub, l *LeaderLock, now *time.Time) {
			_ = l.Update(context.Background(), mine)
			*now = now.Add(10*time.Second - time.Millisecond)
		}, ""},
		{"paused for longer than the renew deadline", func(_ *leaseStub, l *LeaderLock, now *time.Time) {
			_ = l.Update(context.Background(), mine)
			*now = now.Add(10 * time.Second)
		}, "was not renewed for 10s"},
		{"a renewal that failed does not count", func(s *leaseStub, l *LeaderLock, now *time.Time) {
			_ = l.Update(context.Background(), mine)
			*now = now.Add(8 * time.Second)
			s.err = errors.New("timeout")
			_ = l.Update(context.Background(), mine)
			*now = now.Add(2 * time.Second)
		}, "was not renewed for 10s"},
		{"the age counts from before the request", func(s *leaseStub, l *LeaderLock, now *time.Time) {
			s.during = func() { *now = now.Add(10 * time.Second) }
			_ = l.Update(context.Background(), mine)
		}, "was not renewed for 10s"},
		{"renewed again", func(_ *leaseStub, l *LeaderLock, now *time.Time) {
			_ = l.Update(context.Background(), mine)
			*now = now.Add(time.Hour)
			_ = l.Update(context.Background(), mine)
		}, ""},
		{"given up", func(_ *leaseStub, l *LeaderLock, _ *time.Time) {
			_ = l.Update(context.Background(), mine)
			_ = l.Update(context.Background(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1})
		}, "is not held by this process"},
		{"taken by another client", func(s *leaseStub, l *LeaderLock, _ *time.Time) {
			_ = l.Update(context.Background(), mine)
			s.record.HolderIdentity = "other"
			_, _, _ = l.Get(context.Background())
		}, "is not held by this process"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			stub := &leaseStub{}
			lock := &LeaderLock{Interface: stub, now: func() time.Time { return now }}
			tt.do(stub, lock, &now)
			err := lock.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestALeaderLockNeedsANamespaceAndAName(t *testing.T) {
	if _, err := NewLeaderLock(&rest.Config{}, "", "shop.example.com"); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("got %v", err)
	}
	lock, err := NewLeaderLock(&rest.Config{Host: "https://127.0.0.1:1"}, "shop", "shop.example.com")
	check(t, err)
	if lock.Identity() == "" || lock.Check() == nil {
		t.Errorf("a new lock has the identity %q and is held", lock.Identity())
	}
}

func TestAProcessThatMayBeDeposedRecordsNothing(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	now := time.Unix(1000, 0)
	lock := &LeaderLock{Interface: &leaseStub{}, now: func() time.Time { return now }}
	h.settings.leaderLock = lock
	h.records = newRecords(h.steps, 0)
	check(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}))
	commits := 0
	stored, err := h.records.Open(t.Context(), &widget{}, func(context.Context) error { commits++; return nil }, nil, "", false)
	check(t, err)
	if err := stored.Save(t.Context(), v1alpha1.Inventory{}); err != nil || commits != 1 {
		t.Fatalf("the leader: %v, %d commits", err, commits)
	}
	now = now.Add(5*time.Second - time.Millisecond)
	if err := stored.Save(t.Context(), v1alpha1.Inventory{}); err != nil || commits != 2 {
		t.Fatalf("with time left to create what is recorded: %v, %d commits", err, commits)
	}
	now = now.Add(time.Millisecond)
	if err := stored.Save(t.Context(), v1alpha1.Inventory{}); !errors.Is(err, patch.ErrConflict) || commits != 2 {
		t.Errorf("after a pause: %v, %d commits", err, commits)
	}
	now = now.Add(5 * time.Second)
	if _, err := h.records.Open(t.Context(), &widget{}, nil, nil, "", false); !errors.Is(err, patch.ErrConflict) {
		t.Errorf("the record is opened for a deletion by a process that may be deposed: %v", err)
	}
}

// oneWidget is a server that holds one component.
type oneWidget struct {
	client.Client
	widget *widget
	err    error
}

func (s oneWidget) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.err == nil {
		*obj.(*widget) = *s.widget
	}
	return s.err
}

func TestNothingIsCreatedForAComponentThatIsNotAsTheReconcileReadIt(t *testing.T) {
	broken := errors.New("broken")
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "widgets"}, "main", "404 page not found", 0, true)
	tests := []struct {
		name   string
		change func(*widget)
		err    error
		want   error
	}{
		{"unchanged", func(*widget) {}, nil, nil},
		{"labels changed", func(w *widget) { w.Labels = map[string]string{"a": "b"}; w.ResourceVersion = "9" }, nil, nil},
		{"labels of another operator", func(w *widget) { w.Labels = map[string]string{"shard": "b"} }, nil, patch.ErrConflict},
		{"another client's annotation", func(w *widget) { w.Annotations = map[string]string{"example.org/management-policy": "skip"} }, nil, nil},
		{"to be skipped", func(w *widget) { w.Annotations = map[string]string{"test.corbel.run/management-policy": "skip"} }, nil, patch.ErrConflict},
		{"to be detached", func(w *widget) {
			w.Annotations = map[string]string{"test.corbel.run/management-policy": "detach-on-delete"}
		}, nil, patch.ErrConflict},
		{"a condition changed", func(w *widget) { w.Status.State = v1alpha1.StateError }, nil, nil},
		{"gone", func(*widget) {}, apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "main"), patch.ErrConflict},
		{"made anew", func(w *widget) { w.UID = "other" }, nil, patch.ErrConflict},
		{"another spec", func(w *widget) { w.Generation++ }, nil, patch.ErrConflict},
		{"being deleted", func(w *widget) { w.DeletionTimestamp = new(metav1.Now()) }, nil, patch.ErrConflict},
		{"another inventory", func(w *widget) { w.Status.Inventory, w.ResourceVersion = v1alpha1.Inventory{}, "9" }, nil, patch.ErrConflict},
		{"an inventory that is not written yet", func(w *widget) { w.Status.Inventory = v1alpha1.Inventory{} }, nil, nil},
		{"its path is not served for a moment", func(*widget) {}, unserved, unserved},
		{"unreadable", func(*widget) {}, broken, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			obj := newWidget()
			obj.GetStatus().Inventory = someInventory
			current := obj.DeepCopyObject().(*widget)
			test.change(current)
			h.local = oneWidget{widget: current, err: test.err}
			var err error
			if h.settings.selector, err = labels.Parse("shard notin (b)"); err != nil {
				t.Fatal(err)
			}
			if err := h.confirm(obj)(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			h.settings.leaderLock = &LeaderLock{Interface: &leaseStub{}}
			if err := h.confirm(obj)(t.Context()); !errors.Is(err, patch.ErrConflict) {
				t.Errorf("without a lease: %v", err)
			}
		})
	}
}
