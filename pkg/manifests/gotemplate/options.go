// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// Options are the options of New; the zero value is a good choice.
type Options struct {
	// LeftDelimiter and RightDelimiter enclose actions, by default "{{" and "}}".
	LeftDelimiter, RightDelimiter string
	// Strict makes it an error to use a key that does not exist. By default it
	// gives an empty text, as in Helm.
	Strict bool
	// DisableLookup makes the function lookup fail.
	DisableLookup bool
	// Functions are added to the functions that templates can call, or replace
	// them. They may be called by several goroutines at once.
	Functions template.FuncMap
	// Timeout limits one rendering, by default 2 minutes; the deadline of the
	// context counts as well. A template without end exceeds Limits.WorkBytes before.
	Timeout time.Duration
	// Limits are the limits of one rendering.
	Limits manifests.TemplateLimits
}

const defaultTimeout = 2 * time.Minute

// complete fills in the defaults, and checks the rest.
func (o Options) complete() (Options, error) {
	o.LeftDelimiter = cmp.Or(o.LeftDelimiter, "{{")
	o.RightDelimiter = cmp.Or(o.RightDelimiter, "}}")
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	var errs []error
	for _, delimiter := range []string{o.LeftDelimiter, o.RightDelimiter} {
		if strings.ContainsAny(delimiter, " \t\r\n\"`") || strings.HasPrefix(delimiter, "-") {
			errs = append(errs, fmt.Errorf("delimiter %q: it must not contain blanks or quotes, nor start with a dash", delimiter))
		}
	}
	if o.LeftDelimiter == o.RightDelimiter {
		errs = append(errs, fmt.Errorf("delimiter %q: left and right must differ", o.LeftDelimiter))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Functions)) {
		if err := checkFunction(name, o.Functions[name]); err != nil {
			errs = append(errs, fmt.Errorf("function %q: %w", name, err))
		}
	}
	o.Functions = maps.Clone(o.Functions)
	return o, errors.Join(errs...)
}

// checkFunction refuses what text/template would answer with a panic.
func checkFunction(name string, f any) (err error) {
	if slices.Contains([]string{"include", "tpl", "lookup"}, name) || strings.HasPrefix(name, "_") {
		return errors.New("this name is taken")
	}
	if value := reflect.ValueOf(f); value.Kind() != reflect.Func || value.IsNil() {
		return fmt.Errorf("it is %T, want a function", f)
	}
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%v", value)
		}
	}()
	template.New("").Funcs(template.FuncMap{name: f})
	return nil
}
