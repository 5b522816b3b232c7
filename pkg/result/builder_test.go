// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
)

// calls is a builder that keeps what it is asked.
type calls []string

func (c *calls) BuildRuntimeResult(res result.Result, err error) reconcile.Result {
	*c = append(*c, fmt.Sprintf("%v %T", res, err))
	return reconcile.Result{RequeueAfter: time.Minute}
}

func TestWhenABuilderIsCalled(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		res  result.Result
		err  error
		want calls
	}{
		"success":                   {result.Success, nil, calls{"Success <nil>"}},
		"nothing to do":             {result.Empty, nil, calls{"Empty <nil>"}},
		"a requeue":                 {result.Requeue, nil, calls{"Requeue <nil>"}},
		"an ordinary error":         {result.Success, refused, nil},
		"stalled":                   {result.Success, fmt.Errorf("apply: %w", result.NewStalling(refused, "Invalid")), calls{"Empty *result.Stalling"}},
		"a delay":                   {result.Empty, result.NewWaiting(refused, "", time.Second), calls{"Empty *result.Waiting"}},
		"no delay":                  {result.Empty, result.NewWaiting(refused, "", 0), calls{"Success <nil>", "Empty *result.Waiting"}},
		"an ignored error":          {result.Empty, &result.Generic{Ignore: true, Err: refused}, calls{"Success <nil>"}},
		"the error that decides":    {result.Empty, errors.Join(result.NewStalling(refused, ""), result.NewWaiting(refused, "", time.Second)), calls{"Empty *result.Waiting"}},
		"an error beside a waiting": {result.Empty, errors.Join(refused, result.NewWaiting(refused, "", time.Second)), nil},
	} {
		var got calls
		result.Compute(tc.res, tc.err, &got)
		check.EqualNamed(t, name, tc.want, got)
	}
}
