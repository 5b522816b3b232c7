// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetriedHidesThatAnErrorIsTerminalAndNothingElse(t *testing.T) {
	other, path := errors.New("other"), &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	terminal := reconcile.TerminalError(path)
	for name, err := range map[string]error{
		"bare": terminal, "wrapped": fmt.Errorf("a: %w", terminal), "joined": errors.Join(other, terminal), "twice": Retried(terminal),
	} {
		got := Retried(err)
		if errors.Is(got, reconcile.TerminalError(nil)) || errors.Is(fmt.Errorf("around: %w", got), reconcile.TerminalError(nil)) {
			t.Errorf("%s: it is terminal", name)
		}
		if found, ok := errors.AsType[*fs.PathError](got); !ok || found != path || !errors.Is(got, fs.ErrNotExist) || got.Error() != err.Error() {
			t.Errorf("%s: %v", name, got)
		}
		if errors.Is(got, other) != errors.Is(err, other) {
			t.Errorf("%s: what was joined is lost", name)
		}
	}
	if Retried(other) != other || Retried(nil) != nil {
		t.Error("an error that is not terminal is not returned as it is")
	}
}
