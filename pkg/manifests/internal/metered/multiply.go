// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"errors"
	"math"
	"math/bits"
	"strings"
	"text/template"
)

// multiplying are the functions whose result can be much larger than their
// arguments. They compute its size before they make it.
func (m *Meter) multiplying(library template.FuncMap) template.FuncMap {
	indent := func(spaces any, text string) (string, error) {
		count, err := whole(spaces)
		if err != nil {
			return "", err
		}
		return m.indent(count, text)
	}
	return template.FuncMap{
		"repeat": func(count any, text string) (string, error) {
			n, err := whole(count)
			if err != nil {
				return "", err
			}
			return m.repeat(n, text)
		},
		"indent": indent,
		"nindent": func(spaces any, text string) (string, error) {
			indented, err := indent(spaces, text)
			return "\n" + indented, err
		},
		"replace": func(old, replacement, text string) (string, error) {
			count := int64(strings.Count(text, old))
			if err := m.text(sum(int64(len(text)), product(count, int64(len(replacement))))); err != nil {
				return "", err
			}
			return strings.ReplaceAll(text, old, replacement), nil
		},
		"join": func(separator string, list any) (string, error) {
			return m.join(library, separator, list)
		},
		"wrapWith": func(width int, separator, text string) (string, error) {
			lines := int64(len(text)/max(width, 1) + strings.Count(text, " ") + 1)
			if err := m.text(sum(int64(len(text)), product(lines, int64(len(separator))))); err != nil {
				return "", err
			}
			return library["wrapWith"].(func(int, string, string) string)(width, separator, text), nil
		},
		"printf": m.printf,
	}
}

// splitting are the functions that make many items of a text.
func (m *Meter) splitting(library template.FuncMap) template.FuncMap {
	return template.FuncMap{
		"split": func(separator, text string) (map[string]string, error) {
			if err := m.items(int64(strings.Count(text, separator)) + 1); err != nil {
				return nil, err
			}
			return library["split"].(func(string, string) map[string]string)(separator, text), nil
		},
		"splitn": func(separator string, limit int, text string) (map[string]string, error) {
			if err := m.items(int64(strings.Count(text, separator)) + 1); limit < 0 && err != nil {
				return nil, err
			}
			if err := m.items(int64(max(limit, 0))); err != nil {
				return nil, err
			}
			return library["splitn"].(func(string, int, string) map[string]string)(separator, limit, text), nil
		},
		"splitList": func(separator, text string) ([]string, error) {
			if err := m.items(int64(strings.Count(text, separator)) + 1); err != nil {
				return nil, err
			}
			return strings.Split(text, separator), nil
		},
	}
}

func (m *Meter) repeat(count int, text string) (string, error) {
	if count < 0 {
		return "", errors.New("the count is negative")
	}
	if err := m.text(product(int64(count), int64(len(text)))); err != nil {
		return "", err
	}
	return strings.Repeat(text, count), nil
}

func (m *Meter) indent(spaces int, text string) (string, error) {
	if spaces < 0 {
		return "", errors.New("the number of spaces is negative")
	}
	lines := int64(strings.Count(text, "\n")) + 1
	if err := m.text(sum(int64(len(text)), product(lines, int64(spaces)))); err != nil {
		return "", err
	}
	padding := strings.Repeat(" ", spaces)
	return padding + strings.ReplaceAll(text, "\n", "\n"+padding), nil
}

func (m *Meter) join(library template.FuncMap, separator string, list any) (string, error) {
	texts := library["toStrings"].(func(any) []string)(list)
	total := product(int64(len(texts)), int64(len(separator)))
	for _, text := range texts {
		total = sum(total, int64(len(text)))
	}
	if err := m.text(total); err != nil {
		return "", err
	}
	return strings.Join(texts, separator), nil
}

// product and sum of sizes; what is too large for an int64 is the largest one.
func product(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
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
