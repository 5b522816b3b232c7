// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strings"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

const (
	// maxValueDepth limits how deep a value may be nested that a function walks or an
	// action prints. A value that contains itself exceeds it.
	//
	// Unit: levels
	// Limit: the nesting of a value that a function of a template walks, or that an action prints.
	maxValueDepth = 1000
	// itemBytes is the cost of each item of a list or a map, and stepBytes the cost of each call of
	// a function and each round of a loop.
	itemBytes = 16
	stepBytes = 64
	// nodeBytes is the cost of each node of a parsed text for tpl, and of each template that such a
	// text defines, whenever it is copied.
	nodeBytes = 256
	// indentBytes is the indentation that encoders write before a value, for each level around it.
	indentBytes = 2
)

// budget counts the cost of one rendering.
type budget struct {
	limits manifests.TemplateLimits
	// interrupted returns why the rendering has to end, or nil.
	interrupted func() error
	// random is called for each random value; it may be nil.
	random func()
	// callers are the templates that are being executed, the innermost last.
	callers []string
	output  int64
	work    int64
}

// exceeded returns an excess.Error.
func exceeded(format string, args ...any) error {
	return &excess.Error{Message: fmt.Sprintf(format, args...)}
}

// enter counts one more template on the stack.
func (b *budget) enter(name string) error {
	if err := b.interrupted(); err != nil {
		return err
	}
	if len(b.callers) >= b.limits.Depth {
		last := b.callers[max(0, len(b.callers)-3):]
		return exceeded("templates call each other more than %d levels deep (... %s, %s)", b.limits.Depth, strings.Join(last, ", "), name)
	}
	b.callers = append(b.callers, name)
	return nil
}

func (b *budget) leave() { b.callers = b.callers[:len(b.callers)-1] }

// spend counts work.
func (b *budget) spend(bytes int64) error {
	if b.work = sum(b.work, bytes); b.work > b.limits.WorkBytes {
		return exceeded("functions and loops worked on more than %d bytes in this rendering", b.limits.WorkBytes)
	}
	return nil
}

// step is called in every round of a loop.
func (b *budget) step() (string, error) {
	if err := b.interrupted(); err != nil {
		return "", err
	}
	return "", b.spend(stepBytes)
}

// text refuses a text of this size.
func (b *budget) text(bytes int64) error {
	if bytes > b.limits.StringBytes {
		return exceeded("the text would be longer than %d bytes", b.limits.StringBytes)
	}
	return nil
}

// items refuses a list or a map of this length.
func (b *budget) items(count int64) error {
	if count > int64(b.limits.Items) {
		return exceeded("there would be more than %d items", b.limits.Items)
	}
	return nil
}

// size is the size of a written value.
type size struct{ bytes, values int64 }

// measure returns the size of values together. It fails if they are nested too deep or
// too large to be walked: a template can build a value that contains itself, or the
// same value so many times that no memory would hold the text.
func (b *budget) measure(values ...reflect.Value) (size, error) {
	return measure(b.limits.StringBytes, values...)
}

// measure returns the size of values that take at most so many bytes.
func measure(most int64, values ...reflect.Value) (size, error) {
	var total size
	for _, value := range values {
		if err := total.add(value, 0, most); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (total *size) add(v reflect.Value, depth int, most int64) error {
	for (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) && !v.IsNil() && depth <= maxValueDepth {
		if v.Kind() == reflect.Pointer {
			depth++
		}
		v = v.Elem()
	}
	if depth > maxValueDepth {
		return exceeded("a value is nested deeper than %d levels, or contains itself", maxValueDepth)
	}
	total.bytes += itemBytes + indentBytes*int64(depth)
	total.values++
	var err error
	switch v.Kind() {
	case reflect.String:
		total.bytes += int64(v.Len())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			total.bytes += int64(v.Len())
			break
		}
		for i := 0; i < v.Len() && err == nil; i++ {
			err = total.add(v.Index(i), depth+1, most)
		}
	case reflect.Map:
		for entries := v.MapRange(); err == nil && entries.Next(); {
			if err = total.add(entries.Key(), depth+1, most); err == nil {
				err = total.add(entries.Value(), depth+1, most)
			}
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			err = total.add(v.Field(i), depth+1, most)
		}
	}
	if err == nil && total.bytes > most {
		err = exceeded("a value takes more than %d bytes when it is written", most)
	}
	return err
}

// buffer is the output of a template.
type buffer struct {
	strings.Builder
	budget *budget
	// total means that the text counts as output; otherwise it is the result of a function.
	total bool
}

// Write implements io.Writer. Its errors end the template.
func (o *buffer) Write(data []byte) (int, error) {
	if err := o.budget.text(int64(o.Len() + len(data))); err != nil {
		return 0, err
	}
	if o.total {
		o.budget.output += int64(len(data))
		if o.budget.output > o.budget.limits.OutputBytes {
			return 0, exceeded("the output is larger than %d bytes", o.budget.limits.OutputBytes)
		}
	}
	return o.Builder.Write(data)
}

// product is the product of two sizes, the largest int64 if it is beyond, and 0 if one of them is
// negative: it is for the function itself to refuse a negative count.
func product(a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
