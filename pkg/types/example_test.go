// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/corbel-run/corbel/pkg/types"
)

func ExampleNewRetriableError() {
	// A generator that needs something which is not there yet.
	generate := func() error {
		delay := 30 * time.Second
		return fmt.Errorf("render the shop: %w", types.NewRetriableError(errors.New("the licence is not issued yet"), &delay))
	}
	err := generate()
	var retriable types.RetriableError
	if errors.As(err, &retriable) {
		fmt.Printf("%v; again in %s\n", err, retriable.RetryAfter())
	}
	// Output: render the shop: the licence is not issued yet; again in 30s
}
