// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestARefusalSaysThatSomethingIsTaken(t *testing.T) {
	const port = "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
	for name, tc := range map[string]struct {
		verb    plan.Verb
		class   execute.Class
		message string
		want    bool
	}{
		"a port":                 {plan.VerbCreate, execute.Invalid, port, true},
		"a quota":                {plan.VerbCreate, execute.Forbidden, "exceeded quota: ports, requested: services.nodeports=1", true},
		"a host, by a webhook":   {plan.VerbCreate, execute.Denied, "denied the request: host is Already defined in ingress", true},
		"another denial":         {plan.VerbCreate, execute.Denied, "denied the request: no owner label", false},
		"a right that is missed": {plan.VerbCreate, execute.Forbidden, "User may not create services", false},
		"the object itself":      {plan.VerbCreate, execute.Conflict, "already exists", false},
		"a failing server":       {plan.VerbCreate, execute.Failed, "already allocated, or perhaps not", false},
		"a change":               {plan.VerbReplace, execute.Invalid, port, false},
		"a dry run":              {plan.VerbDryRun, execute.Invalid, port, true},
	} {
		status := &apierrors.StatusError{ErrStatus: metav1.Status{Message: tc.message}}
		if got := execute.IsTaken(&execute.Error{Verb: tc.verb, Class: tc.class, Err: status}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
	if execute.IsTaken(errors.New("already")) || execute.IsTaken(&execute.Error{Verb: plan.VerbCreate, Class: execute.Invalid, Err: errors.New("already")}) {
		t.Error("an error that is no answer of the server counts")
	}
}
