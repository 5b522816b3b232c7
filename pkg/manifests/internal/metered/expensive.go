// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"text/template"
)

const (
	// maxRandom limits the length of random texts, which are slow to make.
	maxRandom = 1 << 20
	// maxPattern limits the length of regular expressions.
	maxPattern = 16 << 10
	// maxComparisons limits what functions do that compare everything with
	// everything.
	maxComparisons = 25_000_000
	// keyWork is what the making of a key or of a slow hash counts, in bytes.
	keyWork = 4 << 20
)

// expensive are functions that take much time, or much memory for a moment; the
// guard in front of each of them looks at the arguments.
func (m *Meter) expensive(library template.FuncMap) template.FuncMap {
	checks := map[string]func(arguments []reflect.Value) error{
		"uniq": m.comparing, "without": m.comparing,
	}
	for _, name := range []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes"} {
		checks[name] = func(arguments []reflect.Value) error {
			if count := arguments[0].Int(); count < 0 || count > maxRandom {
				return Exceeded("the length of a random text must be between 0 and %d", maxRandom)
			}
			return m.spend(arguments[0].Int())
		}
	}
	for _, name := range []string{
		"bcrypt", "htpasswd", "derivePassword", "genPrivateKey", "genCA", "genCAWithKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	} {
		checks[name] = func([]reflect.Value) error { return m.spend(keyWork) }
	}
	for _, name := range []string{"regexMatch", "regexFind"} {
		checks[name] = func(arguments []reflect.Value) error { return checkPattern(arguments[0].String()) }
	}
	for _, name := range []string{"regexFindAll", "regexSplit", "regexReplaceAll", "regexReplaceAllLiteral"} {
		checks[name] = m.matches
	}
	for name, check := range maps.Clone(checks) {
		checks["must"+strings.ToUpper(name[:1])+name[1:]] = check
	}
	functions := template.FuncMap{}
	for name, check := range checks {
		if f, ok := library[name]; ok {
			functions[name] = checked(reflect.ValueOf(f), check)
		}
	}
	return functions
}

func checked(f reflect.Value, check func([]reflect.Value) error) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(arguments []reflect.Value) []reflect.Value {
		must(check(arguments))
		return call(arguments)
	}).Interface()
}

// comparing refuses lists that are too long to compare all items with each
// other, or with all that are to be left out.
func (m *Meter) comparing(arguments []reflect.Value) error {
	lengths := make([]int64, len(arguments))
	for i, argument := range arguments {
		for argument.Kind() == reflect.Interface && !argument.IsNil() {
			argument = argument.Elem()
		}
		if argument.Kind() == reflect.Slice || argument.Kind() == reflect.Array {
			lengths[i] = int64(argument.Len())
		}
	}
	others := lengths[len(lengths)-1]
	if product(lengths[0], others) > maxComparisons {
		return Exceeded("the list is too long to compare its items with each other")
	}
	return nil
}

func checkPattern(pattern string) error {
	if len(pattern) > maxPattern {
		return Exceeded("the regular expression is longer than %d bytes", maxPattern)
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return errors.New("the regular expression does not parse: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// matches checks the functions that look at all matches of a pattern. The
// pattern comes first, the text second; if there is a replacement, it comes
// third.
func (m *Meter) matches(arguments []reflect.Value) error {
	pattern, text, replacement := arguments[0].String(), arguments[1].String(), ""
	if arguments[2].Kind() == reflect.String {
		replacement = arguments[2].String()
	}
	if err := checkPattern(pattern); err != nil {
		return err
	}
	matches := int64(len(regexp.MustCompile(pattern).FindAllStringIndex(text, m.limits.Items+1)))
	if err := m.items(matches); err != nil {
		return err
	}
	// Every reference in the replacement may stand for the whole match.
	references := int64(strings.Count(replacement, "$"))
	return m.text(sum(product(references+1, int64(len(text))), product(matches, int64(len(replacement)))))
}
