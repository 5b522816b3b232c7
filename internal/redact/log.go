// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// Logger returns a logger that writes to where the given one does, without the
// secrets that are in the set when a line is written.
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
	return logger.WithSink(&sink{inner: inner, secrets: s})
}

// sink redacts lines on their way to another sink.
type sink struct {
	inner   logr.LogSink
	secrets *Secrets
}

var _ logr.CallDepthLogSink = (*sink)(nil)

func (k *sink) Init(logr.RuntimeInfo) {}

func (k *sink) Enabled(level int) bool { return k.inner.Enabled(level) }

func (k *sink) Info(level int, msg string, keysAndValues ...any) {
	k.inner.Info(level, k.secrets.Text(msg), k.secrets.values(keysAndValues)...)
}

func (k *sink) Error(err error, msg string, keysAndValues ...any) {
	k.inner.Error(k.secrets.Error(err), k.secrets.Text(msg), k.secrets.values(keysAndValues)...)
}

func (k *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{inner: k.inner.WithValues(k.secrets.values(keysAndValues)...), secrets: k.secrets}
}

func (k *sink) WithName(name string) logr.LogSink {
	return &sink{inner: k.inner.WithName(k.secrets.Text(name)), secrets: k.secrets}
}

func (k *sink) WithCallDepth(depth int) logr.LogSink {
	deep, ok := k.inner.(logr.CallDepthLogSink)
	if !ok {
		return k
	}
	return &sink{inner: deep.WithCallDepth(depth), secrets: k.secrets}
}

func (s *Secrets) values(keysAndValues []any) []any {
	redacted := make([]any, len(keysAndValues))
	for i, value := range keysAndValues {
		redacted[i] = s.value(value)
	}
	return redacted
}

// value keeps what holds no secret as it is, so that structured values stay structured.
func (s *Secrets) value(value any) (redacted any) {
	defer func() {
		if recover() != nil { // a method of the value panics
			redacted = Mark
		}
	}()
	switch v := value.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, time.Duration, time.Time:
		return value
	case string:
		return s.Text(v)
	case []byte:
		return s.Text(string(v))
	case error:
		return s.Error(v)
	case logr.Marshaler:
		return s.value(v.MarshalLog())
	}
	// A sink may encode the value as JSON, or print it.
	if encoded, err := json.Marshal(value); err == nil {
		if clean := s.Text(string(encoded)); clean != string(encoded) {
			return clean
		}
	}
	printed := fmt.Sprintf("%+v", value)
	if clean := s.Text(printed); clean != printed {
		return clean
	}
	return value
}
