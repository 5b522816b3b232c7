// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/corbel-run/corbel/internal/confidential"
)

// instrumentation names us in the spans.
const instrumentation = "github.com/corbel-run/corbel"

// Tracer starts spans. The zero value starts none.
type Tracer struct{ tracer trace.Tracer }

// New returns the tracer of a provider, which may be nil.
func New(provider trace.TracerProvider) Tracer {
	if provider == nil {
		return Tracer{}
	}
	return Tracer{provider.Tracer(instrumentation)}
}

// Span is a piece of work that is timed. The zero value is none.
type Span struct{ span trace.Span }

// Start starts a span below the span of the context.
func (t Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, Span{span: span}
}

// On reports whether the span is recorded. Attributes that cost something to compute
// are worth it only then.
func (s Span) On() bool { return s.span != nil && s.span.IsRecording() }

// Set sets an attribute, without credentials.
func (s Span) Set(key, value string) {
	if s.On() {
		s.span.SetAttributes(attribute.String(key, confidential.Filter(value)))
	}
}

// SetInt sets an attribute.
func (s Span) SetInt(key string, value int) {
	if s.On() {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// End ends the span. An error makes it a failed one, with the error's text without credentials.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil && s.span.IsRecording() {
		s.span.SetStatus(codes.Error, confidential.Filter(err.Error()))
	}
	s.span.End()
}
