// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/status"
)

// ReadyWhen tells when the objects of some types are ready. It replaces what package
// status knows about the type, such as that a Service of type LoadBalancer has to have
// an address.
type ReadyWhen struct {
	// Type is the pattern of the types.
	Type TypeInfo
	// Expression is CEL over the object, which is the variable self, such as
	// "self.status.phase == 'Running'"; it must give a bool.
	Expression string
}

// Validate compiles the expression and reports its mistakes.
func (r ReadyWhen) Validate() error {
	var errs []error
	if r.Type.Kind == "" {
		errs = append(errs, errors.New("the kind is missing"))
	}
	if r.Expression == "" {
		errs = append(errs, errors.New("the expression is missing"))
	} else if _, err := status.CompileReadyWhen(r.Expression); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("ReadyWhen of the type %s.%s: %w", r.Type.Kind, r.Type.Group, errors.Join(errs...))
}

// expressions are the rules as the observer takes them.
func expressions(rules []ReadyWhen) (all []observe.ReadyWhen, mistakes []error) {
	for _, rule := range rules {
		if err := rule.Validate(); err != nil {
			mistakes = append(mistakes, err)
		}
		all = append(all, observe.ReadyWhen{Type: rule.Type, Expression: rule.Expression})
	}
	return all, mistakes
}
