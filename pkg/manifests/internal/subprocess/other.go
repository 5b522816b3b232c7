//go:build !linux

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"os"
)

// Run returns ErrUnsupported.
func Run(context.Context, []byte, Limits) ([]byte, error) { return nil, ErrUnsupported }

// Serve ends the process.
func Serve(func(ctx context.Context, work []byte) (answer []byte)) { os.Exit(1) }
