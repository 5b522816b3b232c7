// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
)

type contextKey struct{}

// With returns a context that carries the set.
func With(ctx context.Context, s *Secrets) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// From returns the set of the context; nil, which is an empty set that ignores
// additions, if there is none.
func From(ctx context.Context) *Secrets {
	s, _ := ctx.Value(contextKey{}).(*Secrets)
	return s
}

// Ensure returns a context that carries a set, and the set.
func Ensure(ctx context.Context) (context.Context, *Secrets) {
	if s := From(ctx); s != nil {
		return ctx, s
	}
	s := New()
	return With(ctx, s), s
}

// Error returns the error with a text without secrets; nil stays nil. Wrapped errors
// are still found by errors.Is and errors.As, with their own text.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redacted := s.Text(text); redacted != text {
		return &redactedError{text: redacted, err: err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// Format keeps formatting verbs such as %+v and %#v from printing the wrapped error.
func (e *redactedError) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.text)) }

// Logger returns a logger that writes to the sink of the given one, without the secrets
// that are in the set when a line is written.
func (s *Secrets) Logger(logger logr.Logger) logr.Logger {
	inner := logger.GetSink()
	if inner == nil || s == nil {
		return logger
	}
	if _, already := inner.(*sink); already {
		return logger
	}
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(1)
	}
	return logger.WithSink(&sink{inner, s})
}

// sink redacts lines on their way to another sink.
type sink struct {
	logr.LogSink
	secrets *Secrets
}

func (k *sink) Init(logr.RuntimeInfo) {}

func (k *sink) Info(level int, msg string, keysAndValues ...any) {
	k.LogSink.Info(level, k.secrets.Text(msg), k.redacted(keysAndValues)...)
}

func (k *sink) Error(err error, msg string, keysAndValues ...any) {
	k.LogSink.Error(k.secrets.Error(err), k.secrets.Text(msg), k.redacted(keysAndValues)...)
}

func (k *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{k.LogSink.WithValues(k.redacted(keysAndValues)...), k.secrets}
}

func (k *sink) WithName(name string) logr.LogSink {
	return &sink{k.LogSink.WithName(k.secrets.Text(name)), k.secrets}
}

func (k *sink) redacted(keysAndValues []any) []any {
	redacted := make([]any, len(keysAndValues))
	for i, value := range keysAndValues {
		redacted[i] = k.secrets.value(value)
	}
	return redacted
}

// value keeps what holds no secret as it is, so that structured values stay structured.
func (s *Secrets) value(value any) (redacted any) {
	defer func() {
		if recover() != nil { // a method of the value panics
			redacted = Placeholder
		}
	}()
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return s.Text(v)
	case []byte:
		return s.Text(string(v))
	case error:
		return s.Error(v)
	case logr.Marshaler:
		return s.value(v.MarshalLog())
	}
	if kind := reflect.TypeOf(value).Kind(); kind >= reflect.Bool && kind <= reflect.Complex128 {
		return value // a truth value or a number
	}
	// A sink may encode the value as JSON, or print it.
	encoded, _ := json.Marshal(value)
	for _, text := range []string{string(encoded), fmt.Sprintf("%+v", value)} {
		if clean := s.Text(text); clean != text {
			return clean
		}
	}
	return value
}
