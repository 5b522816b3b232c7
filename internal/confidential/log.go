// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// withoutBodies returns a logger that hides the bodies of requests and answers, which client-go logs from V(8) on,
// unless they are known to hold no Secret, and the reconcile with the mark is not confidential.
func withoutBodies(logger logr.Logger, mark *atomic.Bool) logr.Logger {
	inner := logger.GetSink()
	if inner == nil {
		return logger
	}
	if deep, ok := inner.(logr.CallDepthLogSink); ok {
		inner = deep.WithCallDepth(1)
	}
	return logger.WithSink(&sink{inner, mark})
}

// sink hides bodies on their way to another sink.
type sink struct {
	logr.LogSink
	confidential *atomic.Bool
}

func (s *sink) Init(logr.RuntimeInfo) {}

func (s *sink) Info(level int, msg string, keysAndValues ...any) {
	s.LogSink.Info(level, msg, s.hideBodies(keysAndValues)...)
}

func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	s.LogSink.Error(err, msg, keysAndValues...)
}

func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{s.LogSink.WithValues(keysAndValues...), s.confidential}
}

func (s *sink) WithName(name string) logr.LogSink {
	return &sink{s.LogSink.WithName(name), s.confidential}
}

// WithCallDepth implements logr.CallDepthLogSink: client-go asks for it with each body.
func (s *sink) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return &sink{deep.WithCallDepth(depth), s.confidential}
	}
	return s
}

func (s *sink) hideBodies(keysAndValues []any) []any {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if body, ok := keysAndValues[i+1].(string); ok && keysAndValues[i] == "body" && (s.confidential.Load() || mayHoldSecret(body)) {
			keysAndValues = slices.Clone(keysAndValues)
			keysAndValues[i+1] = Placeholder
		}
	}
	return keysAndValues
}

// mayHoldSecret is true also of a body that is cut off, is no JSON, or has no kind, such as a
// patch.
func mayHoldSecret(body string) bool {
	var content map[string]any
	if json.Unmarshal([]byte(body), &content) != nil || content["kind"] == nil {
		return true
	}
	return namesSecret(content)
}

// namesSecret reports whether something in the value is a Secret, a list of Secrets or an answer about one.
func namesSecret(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if kind, _ := value["kind"].(string); strings.HasPrefix(strings.ToLower(kind), "secret") {
			return true
		}
		for _, child := range value {
			if namesSecret(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, namesSecret)
	}
	return false
}
