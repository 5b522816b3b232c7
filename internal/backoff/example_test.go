// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"fmt"
	"time"

	"github.com/corbel-run/corbel/internal/backoff"
)

func Example() {
	waiting := backoff.NewActivity[string](50*time.Millisecond, 10*time.Second)
	fmt.Println(waiting.Next("shop/api"), waiting.Next("shop/api"), waiting.Next("shop/api"))
	waiting.Reset("shop/api") // a dependent became ready
	fmt.Println(waiting.Next("shop/api"))
	// Output:
	// 50ms 100ms 200ms
	// 50ms
}
