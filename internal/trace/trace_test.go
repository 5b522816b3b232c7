// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/corbel-run/corbel/test/check"
)

func TestSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))

	ctx, outer := tracer.Start(t.Context(), "outer")
	_, inner := tracer.Start(ctx, "inner")
	inner.Set("object", "https://hunter22@host")
	inner.SetInt("steps", 3)
	inner.End(errors.New("refused https://hunter22@host"))
	outer.End(nil)

	spans := exporter.GetSpans()
	if len(spans) != 2 || spans[0].Name != "inner" || spans[1].Name != "outer" {
		t.Fatalf("spans %+v", spans)
	}
	check.SameNamed(t, "the inner span is not below the outer one", spans[1].SpanContext.SpanID(), spans[0].Parent.SpanID())
	got := map[string]string{}
	for _, a := range spans[0].Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	check.Equal(t, map[string]string{"object": "https://***@host", "steps": "3"}, got)
	if status := spans[0].Status; status.Code != codes.Error || status.Description != "refused https://***@host" {
		t.Errorf("status %+v", status)
	}
	if status := spans[1].Status; status.Code != codes.Unset {
		t.Errorf("status %+v", status)
	}
}

// step is a piece of work as the engine traces it.
func step(t *testing.T, tracer Tracer) func() {
	ctx, err := t.Context(), errors.New("refused")
	return func() {
		ctx, span := tracer.Start(ctx, "write")
		if span.On() {
			span.Set("object", "never computed")
		}
		span.SetInt("steps", 3)
		span.End(err)
		_ = ctx
	}
}

func TestOffCostsNoAllocation(t *testing.T) {
	check.SameNamed(t, "allocations", 0, testing.AllocsPerRun(100, step(t, New(nil))))
	if n := testing.AllocsPerRun(100, step(t, New(sdktrace.NewTracerProvider()))); n == 0 {
		t.Error("the comparison is meaningless: tracing costs no allocation either")
	}
}
