// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"

	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// limit measures the bare client.
func (b *bench) limit(ctx context.Context, _ int) error {
	steps := []step{
		{report.Install, subject.Apply, "1", "1"},
		{report.ChangeOne, subject.Apply, "1", "2"},
		{report.ChangeAll, subject.Apply, "2", "2"},
		{report.Delete, subject.Delete, "2", "2"},
	}
	if b.Components > 1 {
		steps = []step{steps[0], steps[3]} // what is measured of a fleet
	}
	return b.writer(ctx, report.Limit, "", steps)
}

// flux measures the library of Flux.
func (b *bench) flux(ctx context.Context, _ int) error {
	return b.writer(ctx, report.Flux, b.Flux, []step{
		{report.Install, subject.Apply, "1", "1"},
		{report.Healthy, subject.Healthy, "1", "1"},
		{report.ChangeOne, subject.Apply, "1", "2"},
		{report.Unchanged, subject.Apply, "1", "2"},
		{report.ChangeAll, subject.Apply, "2", "2"},
		{report.Delete, subject.Delete, "2", "2"},
		{report.Terminated, subject.Terminated, "2", "2"},
	})
}

// step is something that a writer is asked to do.
type step struct {
	scenario report.Scenario
	do       string
	all, one string
}

// writer measures a subject that works when it is asked to, and then is done.
func (b *bench) writer(ctx context.Context, name report.Subject, program string, steps []step) error {
	p, namespace, err := b.start(ctx, name, program)
	if err != nil {
		return err
	}
	defer p.End()
	if err := b.record(ctx, report.Start, p, 0, false); err != nil {
		return err
	}
	for _, s := range steps {
		if err := b.write(ctx, p, namespace, s); err != nil {
			return err
		}
	}
	return b.nothingLeft(ctx, namespace)
}

func (b *bench) write(ctx context.Context, p *Process, namespace string, s step) error {
	patient, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	clock := newStopwatch()
	_, err := p.Order(patient, subject.Order{Do: s.do, Namespace: namespace, Objects: subject.Objects{Prefix: "main", N: b.Objects * b.Components, All: s.all, One: s.one}})
	if err != nil {
		return err
	}
	return b.record(ctx, s.scenario, p, clock.took(), false)
}
