// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"fmt"
	"maps"
	"text/template"

	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

// functionsFor returns the functions that are the same for every rendering, not
// yet guarded.
func functionsFor(library template.FuncMap, options Options) template.FuncMap {
	functions := maps.Clone(library)
	for name, reason := range unavailable {
		functions[name] = refuse(name, reason)
	}
	maps.Copy(functions, codecs)
	functions["required"] = required
	maps.Copy(functions, metered.Ordered())
	maps.Copy(functions, metered.Builtin())
	maps.Copy(functions, options.Functions)
	return functions
}

// unavailable are functions that would let a template see more than it is
// given. An empty result in their place would go unnoticed.
var unavailable = map[string]string{
	"env":           "templates cannot read the environment",
	"expandenv":     "templates cannot read the environment",
	"getHostByName": "templates cannot use the network",
}

func refuse(name, reason string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("%s is not available: %s", name, reason)
	}
}

// required returns the value, or fails with the message if there is none.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}
