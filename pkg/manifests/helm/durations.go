// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// durations are the functions of Helm that work with spans of time. What is no
// span of time counts as none, except for mustToDuration.
var durations = template.FuncMap{
	"mustToDuration":       toDuration,
	"durationSeconds":      func(value any) float64 { return orZero(value).Seconds() },
	"durationMilliseconds": func(value any) int64 { return orZero(value).Milliseconds() },
	"durationMicroseconds": func(value any) int64 { return orZero(value).Microseconds() },
	"durationNanoseconds":  func(value any) int64 { return orZero(value).Nanoseconds() },
	"durationMinutes":      func(value any) float64 { return orZero(value).Minutes() },
	"durationHours":        func(value any) float64 { return orZero(value).Hours() },
	"durationDays":         func(value any) float64 { return orZero(value).Hours() / 24 },
	"durationWeeks":        func(value any) float64 { return orZero(value).Hours() / 24 / 7 },
	"durationRoundTo":      func(value, unit any) time.Duration { return inUnits(value, unit, time.Duration.Round) },
	"durationTruncateTo":   func(value, unit any) time.Duration { return inUnits(value, unit, time.Duration.Truncate) },
}

func orZero(value any) time.Duration {
	d, err := toDuration(value)
	if err != nil {
		return 0
	}
	return d
}

func inUnits(value, unit any, round func(time.Duration, time.Duration) time.Duration) time.Duration {
	d, err := toDuration(value)
	if err != nil {
		return 0
	}
	u, err := toDuration(unit)
	if err != nil {
		return d
	}
	return round(d, u)
}

// toDuration reads a span of time, such as "1h30m"; a number counts seconds.
func toDuration(value any) (time.Duration, error) {
	switch value := value.(type) {
	case time.Duration:
		return value, nil
	case string:
		text := strings.TrimSpace(value)
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("the text is no duration, such as 1h30m")
		}
		return fromSeconds(seconds)
	}
	switch v := reflect.ValueOf(value); {
	case v.IsValid() && v.CanInt():
		return wholeSeconds(v.Int(), v.Int() <= math.MaxInt64/int64(time.Second) && v.Int() >= math.MinInt64/int64(time.Second))
	case v.IsValid() && v.CanUint():
		return wholeSeconds(int64(v.Uint()), v.Uint() <= math.MaxInt64/uint64(time.Second))
	case v.IsValid() && v.CanFloat():
		return fromSeconds(v.Float())
	}
	return 0, fmt.Errorf("a value of type %T is no duration", value)
}

func wholeSeconds(seconds int64, fits bool) (time.Duration, error) {
	if !fits {
		return 0, fmt.Errorf("the duration is too long")
	}
	return time.Duration(seconds) * time.Second, nil
}

func fromSeconds(seconds float64) (time.Duration, error) {
	nanoseconds := seconds * float64(time.Second)
	if math.IsNaN(nanoseconds) || math.Abs(nanoseconds) > float64(math.MaxInt64) {
		return 0, fmt.Errorf("the duration is too long")
	}
	return time.Duration(nanoseconds), nil
}
