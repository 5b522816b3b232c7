// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"fmt"
	"maps"
	"text/template"
)

// Builtin returns the functions of text/template that could do harm, so that
// they get a guard, too.
func Builtin() template.FuncMap {
	return template.FuncMap{
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
	}
}

// Bounded returns, for the functions of sprig whose result can be much larger
// than their arguments, or that take much time, others that look at the size
// first. The library must hold those of sprig.
func (m *Meter) Bounded(library template.FuncMap) template.FuncMap {
	functions := template.FuncMap{}
	for _, part := range []template.FuncMap{m.counting(), m.multiplying(library), m.splitting(library), m.expensive(library)} {
		maps.Copy(functions, part)
	}
	return functions
}
