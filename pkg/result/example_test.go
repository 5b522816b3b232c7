// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/corbel-run/corbel/pkg/result"
)

func Example() {
	builder := result.AlwaysRequeueResultBuilder{RequeueAfter: 10 * time.Minute}
	show := func(res result.Result, err error) {
		v := result.Compute(res, err, builder)
		fmt.Printf("%s: again after %s, returned: %v\n", v.Outcome, v.Result.RequeueAfter, v.Err)
	}

	show(result.Success, nil)
	show(result.Empty, result.NewStalling(errors.New("no such chart"), "Invalid"))
	show(result.Empty, fmt.Errorf("check: %w", result.NewWaiting(errors.New("not ready"), "NotReady", 5*time.Second)))
	show(result.Empty, errors.New("connection refused"))
	// Output:
	// Succeeded: again after 10m0s, returned: <nil>
	// Stalled: again after 10m0s, returned: <nil>
	// Waited: again after 5s, returned: <nil>
	// Failed: again after 0s, returned: connection refused
}
