// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// maxArgument limits the size of the arguments of a method. The methods of Helm's objects compile
// patterns, and a deeply nested one overflows the stack.
const maxArgument = 64 << 10

// NoTemplate is how the error about a template that does not exist starts.
const NoTemplate = "there is no template"

// errInner ends a template that called a failed template. The cause is kept in the rendering:
// text/template would repeat it at every level, and there may be hundreds.
var errInner = errors.New("the template that it called failed")

// Options are the options of a rendering.
type Options struct {
	Limits manifests.TemplateLimits
	// Interrupted returns why the rendering has to end, or nil.
	Interrupted func() error
	// Nothing is printed for a value that does not exist.
	Nothing string
	// WholeNumbers lets functions that want an int take any whole number, such as the
	// int64 or float64 of a value.
	WholeNumbers bool
	// Functions are the functions of the user. They may have the name of another one.
	Functions template.FuncMap
	// CheckPattern refuses arguments of methods that are called Glob.
	CheckPattern func(pattern string) error
	// Random is called when a template uses a random value; it may be nil.
	Random func()
	// Now returns the time, by default the time of the clock.
	Now func() time.Time
}

// Rendering is a set of templates that call each other, with the cost so far.
type Rendering struct {
	templates *Set
	parser    Parser
	options   Options
	// functions are the functions that templates may call, but for the user's.
	functions template.FuncMap
	*state
}

// state is shared by the templates of a rendering and the templates of its calls of tpl.
type state struct {
	budget
	// own counts the templates without the definitions of texts of tpl.
	own int
	// failure is the first error of the template that is executed, and failed the
	// template.
	failure error
	failed  string
}

// NewRendering returns a rendering of the templates with these functions and include, tpl
// and template. It changes the templates and the functions.
func NewRendering(set *Set, parser Parser, functions template.FuncMap, options Options) *Rendering {
	s := &state{budget: budget{limits: options.Limits.WithDefaults(), interrupted: options.Interrupted, random: options.Random}, own: len(set.Templates())}
	if now := options.Now; now != nil {
		functions["now"], functions["ago"] = now, func(date any) string { return ago(date, now()) }
	}
	r := &Rendering{templates: set, parser: parser, options: options, functions: functions, state: s}
	set.Funcs(template.FuncMap{
		printName: r.print, stepName: s.step, argumentName: s.argument, patternName: r.pattern, resultName: s.result,
	})
	return r.bind(nil)
}

// bind makes the functions known to the templates that they call, but for functions that are known
// already, and functions that depend on the set.
func (r *Rendering) bind(known map[string]bool) *Rendering {
	guarded := template.FuncMap{}
	for name := range r.templates.called {
		f, isFunction := r.functions[name]
		own, isOwn := r.options.Functions[name]
		switch {
		case known[name]:
		case isOwn:
			guarded[name] = r.guard(reflect.ValueOf(own), "", false)
		case isFunction:
			guarded[name] = r.guard(reflect.ValueOf(f), name, r.options.WholeNumbers)
		}
	}
	guarded["include"], guarded[templateName], guarded["tpl"] = r.include, r.include, r.tpl
	r.templates.Funcs(guarded)
	return r
}

// Execute returns the output of a template, which counts as output of the rendering.
func (r *Rendering) Execute(name string, data any) (string, error) {
	called := r.templates.Lookup(name)
	if called == nil || called.Tree == nil {
		return "", fmt.Errorf(NoTemplate+" %q", name)
	}
	r.callers, r.failure = append(r.callers[:0], name), nil
	output := &buffer{budget: &r.budget, total: true}
	if err := r.execute(called, output, data); err != nil {
		return "", r.describe(err)
	}
	return output.String(), nil
}

func (r *Rendering) execute(called *template.Template, output *buffer, data any) error {
	err := called.Execute(output, data)
	if err != nil && r.failure == nil {
		r.failure, r.failed = err, called.Name()
	}
	return err
}

// include returns the output of a template.
func (r *Rendering) include(name string, data any) (string, error) {
	if err := r.enter(name); err != nil {
		return "", err
	}
	defer r.leave()
	called := r.templates.Lookup(name)
	if called == nil {
		// The folder of the templates may be "." and lead to "./name".
		called = r.templates.Lookup(path.Clean(name))
	}
	if called == nil || called.Tree == nil {
		return "", fmt.Errorf(NoTemplate+" %q", name)
	}
	return r.call(called, data)
}

// tpl renders a text as a template. Templates that it defines, or defines
// anew, are so for this text only.
func (r *Rendering) tpl(text string, data any) (string, error) {
	if err := r.enter("tpl"); err != nil {
		return "", err
	}
	defer r.leave()
	// The clone and the parsed text stay in memory as long as the templates that the text calls
	// run.
	added := int64(len(r.templates.Templates()) - r.own)
	if err := r.spend(sum(int64(len(text)), product(added, nodeBytes))); err != nil {
		return "", err
	}
	clone, err := r.templates.Clone()
	if err != nil {
		return "", err
	}
	// A new one: a text of blanks would not replace the text that calls it.
	set := &Set{Template: clone.New("tpl"), called: maps.Clone(clone.called)}
	nodes, err := r.parser.parse(set, "tpl", text, nil)
	if err != nil {
		return "", err
	}
	inner := (&Rendering{templates: set, parser: r.parser, options: r.options, functions: r.functions, state: r.state}).bind(clone.called)
	if err := r.spend(product(nodes, nodeBytes)); err != nil {
		return "", err
	}
	result, err := inner.call(set.Template, data)
	if r.options.Nothing != "" {
		// As Helm does, unlike for include.
		result = strings.ReplaceAll(result, r.options.Nothing, "")
	}
	return result, err
}

// call returns the output of a template as the result of a function.
func (r *Rendering) call(called *template.Template, data any) (string, error) {
	output := &buffer{budget: &r.budget}
	if err := r.execute(called, output, data); err != nil {
		return "", errInner
	}
	return output.String(), r.spend(int64(output.Len()))
}

// print passes a value on to text/template, which prints it: fmt does not notice that a
// value contains itself.
func (r *Rendering) print(value reflect.Value) (reflect.Value, error) {
	if err := r.interrupted(); err != nil {
		return value, err
	}
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return reflect.ValueOf(r.options.Nothing), nil
	}
	_, err := r.measure(value)
	return value, err
}

// CheckDepth refuses a value that is nested too deep to be walked, or contains itself.
func CheckDepth(value any) error {
	_, err := measure(manifests.TemplateLimits{}.WithDefaults().StringBytes, reflect.ValueOf(value))
	return err
}

// argument passes an argument of a method on.
func (b *budget) argument(value reflect.Value) (reflect.Value, error) {
	given, err := b.measure(value)
	if err == nil && given.bytes > maxArgument {
		err = exceeded("an argument of a method takes more than %d bytes", maxArgument)
	}
	if err == nil {
		// Methods such as Format return a text that is as long as their argument.
		err = b.spend(given.bytes)
	}
	return value, err
}

// pattern passes an argument of a method Glob on.
func (r *Rendering) pattern(value reflect.Value) (reflect.Value, error) {
	value, err := r.argument(value)
	for value.Kind() == reflect.Interface && !value.IsNil() {
		value = value.Elem()
	}
	if err == nil && value.Kind() == reflect.String && r.options.CheckPattern != nil {
		err = r.options.CheckPattern(value.String())
	}
	return value, err
}

// result passes on the possible result of a method. Its content was there before, or is in
// proportion to it.
func (b *budget) result(value reflect.Value) (reflect.Value, error) {
	err := b.interrupted()
	if err == nil {
		err = b.spend(stepBytes)
	}
	if err == nil {
		err = b.account(value, 0)
	}
	return value, err
}

// renderError is an error in a template.
type renderError struct {
	message, place string
	err            error
}

func (e *renderError) Error() string { return e.message }
func (e *renderError) Unwrap() error { return e.err }

// Place returns the file and the line, and the function that failed.
func (e *renderError) Place() string { return e.place }

var (
	callPattern  = regexp.MustCompile(`: error calling (\w+): `)
	placePattern = regexp.MustCompile(`^template: (.+?:\d+(?::\d+)?): `)
	ownNames     = strings.NewReplacer(" | "+printName, "", "error calling "+printName+": ", "", "error calling "+stepName+": ", "",
		argumentName+" | ", "", argumentName+" ", "", "error calling "+argumentName+": ", "",
		patternName+" | ", "", patternName+" ", "", "error calling "+patternName+": ", "",
		"<"+argumentName+">", "<an argument of a method>", "<"+patternName+">", "<an argument of a method>", "<"+resultName+">", "<the result of a method>",
		" | "+resultName, "", resultName+" ", "", "error calling "+resultName+": ", "",
		"<"+templateName+">", "<template>", templateName+" ", "template ")
)

// describe returns the error that ended a template in a form that starts with its place
// and the cause, and ends with the place in the template where it started.
func (r *Rendering) describe(outer error) error {
	// Errors of the writer have no place in the template that they end.
	message := r.failed + ": " + r.failure.Error()
	if place := placeOf(r.failure); place != "" {
		message = strings.TrimPrefix(r.failure.Error(), "template: ")
	}
	message = ownNames.Replace(message)
	place := placeOf(r.failure)
	if match := callPattern.FindStringSubmatch(r.failure.Error()); match != nil {
		if name := match[1]; r.functions[name] != nil || r.options.Functions[name] != nil || slices.Contains(builtins, name) {
			place += " (" + name + ")"
		}
	}
	if start := placeOf(outer); start != "" && start != placeOf(r.failure) {
		message += " (called from " + start + ")"
		place += " (called from " + start + ")"
	}
	return &renderError{message: message, place: place, err: r.failure}
}

// placeOf returns the file, line and column that an error of text/template starts with.
func placeOf(err error) string {
	if match := placePattern.FindStringSubmatch(err.Error()); match != nil {
		return match[1]
	}
	return ""
}
