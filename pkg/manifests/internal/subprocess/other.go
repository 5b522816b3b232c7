//go:build !linux

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"errors"
	"os"
)

// Run returns an error.
func Run(context.Context, []byte, Limits) ([]byte, error) {
	return nil, errors.New("a child process with limits needs Linux")
}

// Serve ends the process.
func Serve(func(ctx context.Context, work []byte) (answer []byte)) { os.Exit(1) }
