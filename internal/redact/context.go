// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"fmt"
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

// Error returns the error with a text without secrets; nil stays nil. What it
// wraps is still found by errors.Is and errors.As; whoever tells the text of what
// they found there has to redact it, too.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redacted := s.Text(text); redacted != text {
		return &quietError{text: redacted, err: err}
	}
	return err
}

// quietError is an error whose text was redacted.
type quietError struct {
	text string
	err  error
}

func (e *quietError) Error() string { return e.text }
func (e *quietError) Unwrap() error { return e.err }

// Format keeps formatting verbs such as %+v and %#v from printing what is wrapped.
func (e *quietError) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.text)) }
