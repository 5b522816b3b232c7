// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestABuildThatWaitsForTheSchemaHoldsUpNoOthers(t *testing.T) {
	hanging, err := acquireSchema(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := acquireSchema(ctx, true)
		waiting <- err
	}()
	limited, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for range 20 {
		share, err := acquireSchema(limited, false)
		if err != nil {
			t.Fatal(err)
		}
		schema.Release(share)
		select {
		case err := <-waiting:
			t.Fatalf("it got the schema although another build is under way: %v", err)
		case <-time.After(schemaPoll / 4):
		}
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
	schema.Release(hanging)
	share, err := acquireSchema(limited, true)
	if err != nil {
		t.Fatal(err)
	}
	schema.Release(share)
}
