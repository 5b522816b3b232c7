// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxPattern limits the length of regular expressions.
	//
	// Limit: a regular expression in a template.
	maxPattern = 16 << 10
	// keyWork is the cost of making a key or a slow hash, in bytes.
	keyWork = 4 << 20
	// characterWork is the cost of each random character.
	characterWork = 512
	// instructionsPerWork is how many steps of a regular expression count as one byte.
	instructionsPerWork = 16
	// comparisonWork is the least cost of a comparison of two items, and readPerWork how many
	// compared bytes count as one.
	comparisonWork = 16
	readPerWork    = 4
	// maxWidth is the largest width and precision that fmt accepts.
	maxWidth = 1_000_000
)

// Functions that are not in these sets may walk through all that their arguments contain,
// and return something new.
var (
	// makers do not look into their arguments, but return something new.
	makers = set("list tuple dict append push prepend rest initial reverse compact concat chunk " +
		"mustAppend mustPush mustPrepend mustRest mustInitial mustReverse mustCompact mustChunk " +
		"keys values pick omit pluck")
	// pickers return one of their arguments, a part of one, or something small.
	pickers = set("eq ne get set unset hasKey dig first last mustFirst mustLast slice mustSlice default coalesce ternary " +
		"empty all any required kindOf kindIs typeOf typeIs typeIsLike")
	// random return something else with every call.
	random = set("randAlphaNum randAlpha randAscii randNumeric randBytes randInt uuidv4 shuffle bcrypt htpasswd encryptAES " +
		"genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey")
)

func set(names string) map[string]bool {
	members := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		members[name] = true
	}
	return members
}

// guard returns a function that counts the arguments and the result of f. The name selects the
// estimate for f; a function of a user has none. A guard ends the template by a panic with an
// error, which text/template converts to an error of the call.
func (b *budget) guard(f reflect.Value, name string, wholeNumbers bool) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	estimate := estimates[name]
	deep := b.limits.StringBytes
	switch {
	case makers[name]:
		deep = 0
	case name == "lookup": // it has a limit of its own
		deep = b.limits.WorkBytes
	}
	guarded := func(arguments []reflect.Value) []reflect.Value {
		must(b.interrupted())
		must(b.spend(stepBytes))
		if random[name] && b.random != nil {
			b.random()
		}
		var given size
		if !makers[name] && !pickers[name] {
			var err error
			given, err = b.measure(arguments...)
			must(err)
			// The read bytes are not kept.
			must(b.spend(given.bytes / itemBytes))
		}
		if estimate != nil {
			must(estimate(b, arguments, given))
		}
		results := call(arguments)
		if !pickers[name] && len(results) > 0 {
			must(b.account(results[0], deep))
		}
		return results
	}
	if wholeNumbers {
		return takingWholeNumbers(f.Type(), guarded)
	}
	return reflect.MakeFunc(f.Type(), guarded).Interface()
}

// must ends the call of a template function.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// account counts the result of a function: all that it contains, which is at most so many bytes, or
// only its own items, if their content was there before and deep is 0.
func (b *budget) account(result reflect.Value, deep int64) error {
	for result.Kind() == reflect.Interface && !result.IsNil() {
		result = result.Elem()
	}
	bytes := int64(itemBytes)
	switch kind := result.Kind(); {
	case kind == reflect.String, kind == reflect.Slice && result.Type().Elem().Kind() == reflect.Uint8:
		bytes = int64(result.Len())
		if err := b.text(bytes); err != nil {
			return err
		}
	case kind == reflect.Slice, kind == reflect.Map:
		if err := b.items(int64(result.Len())); err != nil {
			return err
		}
		bytes = itemBytes * int64(result.Len())
		if deep > 0 {
			made, err := measure(deep, result)
			if err != nil {
				return err
			}
			bytes = made.bytes
		}
	}
	return b.spend(bytes)
}

// An estimate refuses a call by the size of its result, or counts the work of a slow one. Given is
// the size of the arguments.
type estimate func(b *budget, arguments []reflect.Value, given size) error

// estimates are the estimates for functions with a result that can be much larger than their
// arguments, or that take much time.
var estimates = func() map[string]estimate {
	all := map[string]estimate{
		// A key that is no text is printed.
		"dict": func(b *budget, arguments []reflect.Value, _ size) error {
			for i := 0; i < arguments[0].Len(); i += 2 {
				if _, err := b.measure(arguments[0].Index(i)); err != nil {
					return err
				}
			}
			return nil
		},
		"concat": func(b *budget, a []reflect.Value, _ size) error { return b.together(a[0]) },
		"keys":   func(b *budget, a []reflect.Value, _ size) error { return b.together(a[0]) },
		"repeat": func(b *budget, a []reflect.Value, _ size) error {
			return b.text(product(a[0].Int(), int64(a[1].Len())))
		},
		"indent":  indented,
		"nindent": indented,
		"replace": func(b *budget, a []reflect.Value, given size) error {
			return b.text(sum(given.bytes, product(occurrences(a[0], a[2]), int64(a[1].Len()))))
		},
		"join": func(b *budget, a []reflect.Value, given size) error {
			return b.text(sum(given.bytes, product(given.values, int64(a[0].Len()))))
		},
		"wrapWith": func(b *budget, a []reflect.Value, given size) error {
			lines := int64(a[2].Len())/max(a[0].Int(), 1) + int64(strings.Count(a[2].String(), " ")) + 1
			return b.text(sum(given.bytes, product(lines, int64(a[1].Len()))))
		},
		"printf":     printed,
		"split":      func(b *budget, a []reflect.Value, _ size) error { return b.items(occurrences(a[0], a[1]) + 1) },
		"splitList":  func(b *budget, a []reflect.Value, _ size) error { return b.items(occurrences(a[0], a[1]) + 1) },
		"splitn":     splitN,
		"until":      func(b *budget, a []reflect.Value, _ size) error { return b.numbers(0, a[0].Int(), 1) },
		"untilStep":  func(b *budget, a []reflect.Value, _ size) error { return b.numbers(a[0].Int(), a[1].Int(), a[2].Int()) },
		"seq":        sequence,
		"uniq":       func(b *budget, a []reflect.Value, given size) error { return b.comparisons(a[0], a[0], given) },
		"without":    func(b *budget, a []reflect.Value, given size) error { return b.comparisons(a[0], a[1], given) },
		"regexMatch": func(b *budget, a []reflect.Value, _ size) error { return b.match(a[0].String(), a[1].String()) },
		"regexFind":  func(b *budget, a []reflect.Value, _ size) error { return b.match(a[0].String(), a[1].String()) },
	}
	for name := range set("regexFindAll regexSplit regexReplaceAll regexReplaceAllLiteral") {
		all[name] = matches
	}
	for name := range set("randAlphaNum randAlpha randAscii randNumeric randBytes") {
		all[name] = func(b *budget, a []reflect.Value, _ size) error { return b.spend(product(a[0].Int(), characterWork)) }
	}
	for name := range set("bcrypt htpasswd derivePassword genPrivateKey genCA genCAWithKey genSelfSignedCert " +
		"genSelfSignedCertWithKey genSignedCert genSignedCertWithKey") {
		all[name] = func(b *budget, _ []reflect.Value, _ size) error { return b.spend(keyWork) }
	}
	for name := range set("uniq without regexMatch regexFind regexFindAll regexSplit regexReplaceAll regexReplaceAllLiteral") {
		all["must"+strings.ToUpper(name[:1])+name[1:]] = all[name]
	}
	return all
}()

// together refuses collections that hold too many items together.
func (b *budget) together(collections reflect.Value) error {
	var count int64
	for i := range collections.Len() {
		v := collections.Index(i)
		for v.Kind() == reflect.Interface && !v.IsNil() {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			count += int64(v.Len())
		}
	}
	return b.items(count)
}

func occurrences(part, text reflect.Value) int64 {
	return int64(strings.Count(text.String(), part.String()))
}

func indented(b *budget, a []reflect.Value, given size) error {
	lines := int64(strings.Count(a[1].String(), "\n")) + 1
	return b.text(sum(given.bytes, product(lines, a[0].Int())))
}

func splitN(b *budget, a []reflect.Value, _ size) error {
	parts := occurrences(a[0], a[2]) + 1
	if limit := a[1].Int(); limit >= 0 {
		parts = min(parts, limit)
	}
	return b.items(parts)
}

// numbers refuses a list of the numbers from start to stop that has too many, or a list that never
// ends because an int overflows.
func (b *budget) numbers(start, stop, step int64) error {
	const largest = 1 << 53
	for _, number := range []int64{start, stop, step} {
		if number > largest || number < -largest {
			return exceeded("the number %d is larger than 2 to the power of 53", number)
		}
	}
	if step == 0 {
		return nil // the list is empty
	}
	return b.items(max(stop-start, start-stop) / max(step, -step))
}

// sequence is for seq LAST, seq FIRST LAST and seq FIRST STEP LAST.
func sequence(b *budget, a []reflect.Value, _ size) error {
	n := make([]int64, a[0].Len())
	for i := range n {
		n[i] = a[0].Index(i).Int()
	}
	switch len(n) {
	case 1:
		return b.numbers(1, n[0], 1)
	case 2:
		return b.numbers(n[0], n[1], 1)
	case 3:
		return b.numbers(n[0], n[2], n[1])
	}
	return nil
}

// comparisons counts the cost of comparing all items of two lists with each other. An item may be
// large, and is walked as far as it is the same as the other one.
func (b *budget) comparisons(list, others reflect.Value, given size) error {
	length := func(v reflect.Value) int64 {
		for v.Kind() == reflect.Interface && !v.IsNil() {
			v = v.Elem()
		}
		if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
			return 0
		}
		return int64(v.Len())
	}
	items := product(product(length(list), length(others)), comparisonWork)
	return b.spend(max(items, product(max(length(list), length(others)), given.bytes)/readPerWork))
}

// match counts the work of a search for a regular expression, which cannot be
// interrupted: at worst each instruction of its program meets each byte of the text.
func (b *budget) match(pattern, text string) error {
	if len(pattern) > maxPattern {
		return exceeded("the regular expression is longer than %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // the function reports that
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	return b.spend(product(int64(len(program.Inst)), int64(len(text))) / instructionsPerWork)
}

// matches is for the functions that look at all matches of a pattern. The pattern comes
// first, the text second; if there is a replacement, it comes third.
func matches(b *budget, a []reflect.Value, given size) error {
	if err := b.match(a[0].String(), a[1].String()); err != nil {
		return err
	}
	pattern, err := regexp.Compile(a[0].String())
	if err != nil {
		return nil // the function reports that
	}
	text := a[1].String()
	found := int64(len(pattern.FindAllStringIndex(text, b.limits.Items+1)))
	if err := b.items(found); err != nil || a[2].Kind() != reflect.String {
		return err
	}
	replacement := a[2].String()
	// Every reference in the replacement may stand for the whole match.
	references := int64(strings.Count(replacement, "$"))
	return b.text(sum(given.bytes, sum(product(references, int64(len(text))), product(found, int64(len(replacement))))))
}

// printed estimates generously: every verb of the format may print the largest argument, each of
// its items as wide as the widest number in the format.
func printed(b *budget, a []reflect.Value, _ size) error {
	format, arguments := a[0].String(), a[1]
	var largest size
	widest := int64(0)
	for i := range arguments.Len() {
		argument, err := b.measure(arguments.Index(i))
		if err != nil {
			return err
		}
		largest = size{bytes: max(largest.bytes, argument.bytes), values: max(largest.values, argument.values)}
		if width := arguments.Index(i).Elem(); width.IsValid() && width.CanInt() && strings.Contains(format, "*") {
			widest = max(widest, min(max(width.Int(), -width.Int()), maxWidth))
		}
	}
	number := int64(0)
	for _, c := range []byte(format) {
		if c < '0' || c > '9' {
			number = 0
			continue
		}
		number = min(number*10+int64(c-'0'), maxWidth)
		widest = max(widest, number)
	}
	verbs := int64(strings.Count(format, "%"))
	return b.text(sum(int64(len(format)), product(verbs, sum(largest.bytes, product(largest.values+1, widest)))))
}

// takingWholeNumbers returns the function with parameters of any type in place of int parameters.
func takingWholeNumbers(f reflect.Type, call func([]reflect.Value) []reflect.Value) any {
	in, found := slices.Collect(f.Ins()), false
	for i, t := range in {
		switch t {
		case reflect.TypeFor[int]():
			in[i], found = reflect.TypeFor[any](), true
		case reflect.TypeFor[[]int]():
			in[i], found = reflect.TypeFor[[]any](), true
		}
	}
	if !found {
		return reflect.MakeFunc(f, call).Interface()
	}
	wide := reflect.FuncOf(in, slices.Collect(f.Outs()), f.IsVariadic())
	return reflect.MakeFunc(wide, func(arguments []reflect.Value) []reflect.Value {
		for i, argument := range arguments {
			switch f.In(i) {
			case reflect.TypeFor[int]():
				arguments[i] = reflect.ValueOf(whole(argument))
			case reflect.TypeFor[[]int]():
				numbers := make([]int, argument.Len())
				for j := range numbers {
					numbers[j] = whole(argument.Index(j))
				}
				arguments[i] = reflect.ValueOf(numbers)
			}
		}
		return call(arguments)
	}).Interface()
}

// whole returns a whole number of any kind, or a text that is one, as an int.
func whole(v reflect.Value) int {
	v = v.Elem()
	switch {
	case v.IsValid() && v.CanInt():
		return int(v.Int())
	case v.IsValid() && v.CanFloat():
		if v.Float() != math.Trunc(v.Float()) || math.Abs(v.Float()) >= 1<<53 {
			// It shows numbers only; anything else may be secret.
			panic(fmt.Errorf("want a whole number, got %v", v.Float()))
		}
		return int(v.Float())
	case v.Kind() == reflect.String:
		if number, err := strconv.Atoi(v.String()); err == nil {
			return number
		}
	}
	if !v.IsValid() {
		panic(errors.New("want a whole number, got nothing"))
	}
	panic(fmt.Errorf("want a whole number, got a value of type %s", v.Type()))
}
