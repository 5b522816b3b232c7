// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "sync"

// maxPrograms bounds the memory of a Compiler. Components have a handful of
// different expressions, so it is a limit for what went wrong.
const maxPrograms = 1000

// Compiler compiles expressions and remembers the results, mistakes included.
// The zero value is ready to use, and so is nil, which remembers nothing. It is
// safe for concurrent use.
type Compiler struct {
	mutex    sync.Mutex
	compiled map[string]compiled
}

type compiled struct {
	program *Program
	err     error
}

// Compile is CompileReadyWhen; the empty expression gives nil and no error.
func (c *Compiler) Compile(expression string) (*Program, error) {
	if expression == "" {
		return nil, nil
	}
	if c == nil {
		return CompileReadyWhen(expression)
	}
	c.mutex.Lock()
	known, found := c.compiled[expression]
	c.mutex.Unlock()
	if found {
		return known.program, known.err
	}
	program, err := CompileReadyWhen(expression)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.compiled == nil || len(c.compiled) >= maxPrograms {
		c.compiled = map[string]compiled{}
	}
	c.compiled[expression] = compiled{program, err}
	return program, err
}
