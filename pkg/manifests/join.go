// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/types"
)

// Join returns a generator that returns the objects of all generators, in the
// order given. If some of them fail, all their errors are reported and there
// are no objects at all: half a component looks like one with objects removed.
func Join(generators ...Generator) Generator {
	return joined(append([]Generator(nil), generators...))
}

type joined []Generator

func (j joined) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	var all []client.Object
	err := j.each(func(g Generator) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		objects, err := Generate(ctx, g, namespace, name, parameters)
		all = append(all, objects...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (j joined) AddToScheme(scheme *runtime.Scheme) error {
	return j.each(func(g Generator) error { return renders.AddToScheme(g, scheme) })
}

// ValidateParts validates each generator.
func (j joined) ValidateParts() error {
	return j.each(func(g Generator) error { return renders.Validate(g) })
}

// each collects the errors, with the position of the generator.
func (j joined) each(f func(Generator) error) error {
	var errs []error
	for i, g := range j {
		if err := f(g); err != nil {
			errs = append(errs, fmt.Errorf("generator %d of %d: %w", i+1, len(j), err))
		}
	}
	return errors.Join(errs...)
}
