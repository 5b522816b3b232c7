// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"errors"
	"regexp"
	"strings"
	"text/template"
)

// innerError is an error in a template that another one called. It keeps the
// message short: text/template repeats the whole message at every level, and
// there may be hundreds of levels.
type innerError struct{ err error }

func (e *innerError) Error() string { return "it failed" }
func (e *innerError) Unwrap() error { return e.err }

// renderError is an error in a template, told from its inner end.
type renderError struct {
	message string
	err     error
}

func (e *renderError) Error() string { return e.message }
func (e *renderError) Unwrap() error { return e.err }

var (
	placePattern = regexp.MustCompile(`^template: (.+?:\d+(?::\d+)?): `)
	ownFunctions = strings.NewReplacer(" | "+printName, "", templateName+" ", "template ", "<"+templateName+">", "<template>")
)

// Describe returns an error of text/template in a form that begins with the
// place and the cause, and ends with the file that it all began in.
func Describe(file string, err error) error {
	place, message := file, err.Error()
	first := ""
	for at := err; at != nil; {
		var execution template.ExecError
		if !errors.As(at, &execution) {
			// Errors of the writer and of the parser have no place in the
			// template that they end.
			if inner := innermost(at); inner != nil && first != "" {
				message = inner.Error()
			}
			break
		}
		place, message = placeOf(execution)
		if first == "" {
			first = place
		}
		var inner *innerError
		if !errors.As(execution.Err, &inner) {
			break
		}
		at = inner.err
	}
	text := place + ": " + ownFunctions.Replace(message)
	if first != "" && first != place {
		text += " (called from " + first + ")"
	}
	return &renderError{message: text, err: err}
}

// innermost returns the error behind the last innerError.
func innermost(err error) error {
	for {
		var inner *innerError
		if !errors.As(err, &inner) {
			return err
		}
		err = inner.err
	}
}

// placeOf splits the message of text/template into the place and the rest.
func placeOf(err template.ExecError) (place, rest string) {
	message := err.Error()
	if match := placePattern.FindStringSubmatch(message); match != nil {
		return match[1], message[len(match[0]):]
	}
	return err.Name, strings.TrimPrefix(message, "template: ")
}
