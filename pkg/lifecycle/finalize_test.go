// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/corbel-run/corbel/test/widget"
)

// releaser is a handler that keeps something for its objects.
type releaser struct {
	*handler
	release func() error
}

func (r releaser) Finalize(context.Context, *widget.Widget) error {
	r.calls = append(r.calls, "Finalize")
	return r.release()
}

func TestWhatMustNotOutliveTheObjectGoesBeforeTheFinalizer(t *testing.T) {
	for _, detached := range []bool{false, true} {
		h := &handler{orphaned: func() bool { return detached }}
		b := newBench(t, h, claimed)
		refuse := errors.New("not yet")
		b.use(releaser{h, func() error { return refuse }})
		b.delete()
		if _, err := b.reconcile(); !errors.Is(err, refuse) {
			t.Errorf("error %v, want %v", err, refuse)
		}
		if w := b.read(); w == nil || len(w.Finalizers) == 0 {
			t.Fatal("the finalizer was removed although the release failed")
		}
		refuse = nil
		if _, err := b.reconcile(); err != nil {
			t.Error(err)
		}
		if b.read() != nil {
			t.Error("the object is still there")
		}
		if detached {
			b.wantCalls("Finalize", "ForgetObject")
		} else {
			b.wantCalls("Delete", "Finalize", "ForgetObject")
		}
	}
}
