// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import "strings"

// Meter counts what one rendering uses.
type Meter struct {
	limits Limits
	// interrupted tells whether, and why, the rendering has to end.
	interrupted func() error
	// nothing is printed for a value that does not exist.
	nothing string
	callers []string
	output  int64
	work    int64
}

// NewMeter returns a meter for one rendering. Interrupted tells whether, and why,
// it has to end. Nothing is what is printed for a value that does not exist.
func NewMeter(limits Limits, interrupted func() error, nothing string) *Meter {
	return &Meter{limits: limits.Complete(), interrupted: interrupted, nothing: nothing}
}

// enter counts one more template on the stack.
func (m *Meter) enter(name string) error {
	if err := m.interrupted(); err != nil {
		return err
	}
	if len(m.callers) >= m.limits.Depth {
		last := m.callers[max(0, len(m.callers)-3):]
		return Exceeded("templates call each other more than %d levels deep (... %s, %s)", m.limits.Depth, strings.Join(last, ", "), name)
	}
	m.callers = append(m.callers, name)
	return nil
}

func (m *Meter) leave() { m.callers = m.callers[:len(m.callers)-1] }

// spend counts what a function is going to return, or has returned.
func (m *Meter) spend(bytes int64) error {
	if m.work += bytes; m.work > m.limits.WorkBytes {
		return Exceeded("functions returned more than %d bytes in this rendering", m.limits.WorkBytes)
	}
	return nil
}

// text refuses a text of this size.
func (m *Meter) text(bytes int64) error {
	if bytes > m.limits.StringBytes || bytes < 0 {
		return Exceeded("the text would be longer than %d bytes", m.limits.StringBytes)
	}
	return nil
}

// items refuses a list or a map of this length.
func (m *Meter) items(count int64) error {
	if count > int64(m.limits.Items) || count < 0 {
		return Exceeded("there would be more than %d items", m.limits.Items)
	}
	return nil
}

// buffer is what templates write to.
type buffer struct {
	strings.Builder
	meter *Meter
	// total is true if the text counts as output; otherwise it is the result
	// of a function.
	total bool
}

// Write implements io.Writer. Its errors end the template.
func (b *buffer) Write(data []byte) (int, error) {
	if err := b.meter.text(int64(b.Len() + len(data))); err != nil {
		return 0, err
	}
	if b.total {
		b.meter.output += int64(len(data))
		if b.meter.output > b.meter.limits.OutputBytes {
			return 0, Exceeded("the output is larger than %d bytes", b.meter.limits.OutputBytes)
		}
	}
	return b.Builder.Write(data)
}
