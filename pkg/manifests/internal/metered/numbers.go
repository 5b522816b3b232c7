// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
)

// counting are the functions that make lists of numbers. They take any whole
// number, so that values need no conversion.
func (m *Meter) counting() template.FuncMap {
	return template.FuncMap{
		"until": func(count any) ([]int, error) {
			stop, err := whole(count)
			if err != nil {
				return nil, err
			}
			step := 1
			if stop < 0 {
				step = -1
			}
			return m.numbers(0, stop, step)
		},
		"untilStep": func(start, stop, step any) ([]int, error) {
			n, err := wholes(start, stop, step)
			if err != nil {
				return nil, err
			}
			return m.numbers(n[0], n[1], n[2])
		},
		"seq": m.seq,
	}
}

// numbers returns the numbers from start in steps, without stop.
func (m *Meter) numbers(start, stop, step int) ([]int, error) {
	if step == 0 || step > 0 && start >= stop || step < 0 && start <= stop {
		return []int{}, nil
	}
	// In the arithmetic of uint64, differences and sizes of steps are right
	// even where those of int overflow.
	distance, stride := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		distance, stride = -distance, -stride
	}
	count := (distance-1)/stride + 1
	if err := m.items(int64(min(count, math.MaxInt64))); err != nil {
		return nil, err
	}
	numbers := make([]int, count)
	for i := range numbers {
		numbers[i] = start + i*step
	}
	return numbers, nil
}

// seq returns the numbers from the first to the last, both included, as the
// command of this name does: seq LAST, seq FIRST LAST, seq FIRST STEP LAST.
func (m *Meter) seq(parameters ...any) (string, error) {
	n, err := wholes(parameters...)
	if err != nil {
		return "", err
	}
	first, step, last := 1, 0, 0
	switch len(n) {
	case 1:
		last = n[0]
	case 2:
		first, last = n[0], n[1]
	case 3:
		first, step, last = n[0], n[1], n[2]
	default:
		return "", nil
	}
	switch {
	case len(n) < 3 && last < first:
		step = -1
	case len(n) < 3:
		step = 1
	}
	if step > 0 && last < math.MaxInt {
		last++
	} else if step < 0 && last > math.MinInt {
		last--
	}
	numbers, err := m.numbers(first, last, step)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(numbers))
	for i, number := range numbers {
		texts[i] = strconv.Itoa(number)
	}
	return strings.Join(texts, " "), nil
}

func wholes(values ...any) ([]int, error) {
	numbers := make([]int, len(values))
	for i, value := range values {
		number, err := whole(value)
		if err != nil {
			return nil, err
		}
		numbers[i] = number
	}
	return numbers, nil
}

// whole returns the value as an int; it accepts every kind of number, if it is
// a whole one, and a text that is one.
func whole(value any) (int, error) {
	switch value := value.(type) {
	case int:
		return value, nil
	case int64:
		return int(value), nil
	case int32:
		return int(value), nil
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int(value), nil
		}
	case string:
		if number, err := strconv.Atoi(value); err == nil {
			return number, nil
		}
	}
	return 0, fmt.Errorf("want a whole number, got %s", nameOfNumber(value))
}

// nameOfNumber shows numbers only; anything else may be secret.
func nameOfNumber(value any) string {
	if number, ok := value.(float64); ok {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("a value of type %T", value)
}
