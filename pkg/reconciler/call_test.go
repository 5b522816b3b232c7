// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestARefusedCreationThatNobodyHadLookedBeforeIsTriedAgainUnlessTheServerHasTooMuchToDo(t *testing.T) {
	for name, test := range map[string]struct {
		cause  error
		failed bool
	}{
		"it is invalid":                 {cause: apierrors.NewBadRequest("no")},
		"the server has too much to do": {cause: apierrors.NewTooManyRequests("later", 1), failed: true},
	} {
		key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
		c := newCall(input{Input: plan.Input{Live: map[plan.Key]plan.Observation{key: {Existence: plan.Unseen}}, Failed: map[plan.Key]plan.Failure{}}})
		err := &execute.Error{Key: key, Verb: plan.VerbCreate, Class: execute.Failed, Err: test.cause}
		again := c.fold(plan.Plan{}, []plan.Result{{Step: plan.Step{Key: key, Verb: plan.VerbCreate}, Err: err}}, metav1.NewTime(time.Unix(0, 0)))
		if len(again) != 1 || again[0] != key {
			t.Errorf("%s: looked at again: %v", name, again)
		}
		if _, failed := c.in.Failed[key]; failed != test.failed || errors.Is(c.err(), err) != test.failed {
			t.Errorf("%s: failed: %t, %v", name, failed, c.err())
		}
	}
}
