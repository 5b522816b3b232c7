// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mutant is a change that a test must notice.
type mutant struct {
	// name says what the program does then.
	name string
	// file is relative to the root of the module. The text old is in it exactly once.
	file, old, new string
	// packages are those with the tests that notice, relative to the root of the module.
	packages []string
}

// mutated returns the content of the file with the change.
func (m mutant) mutated(root string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, fmt.Errorf("mutant %q: %w", m.name, err)
	}
	if n := bytes.Count(content, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("mutant %q: %s holds the text %q %d times, not once; correct the row in test/mutants/table.go", m.name, m.file, m.old, n)
	}
	return bytes.Replace(content, []byte(m.old), []byte(m.new), 1), nil
}

// patience is how long the tests of a mutant may take. A mutant that makes them hang
// is noticed.
const patience = 3 * time.Minute

// survives runs the tests of the packages with the change, and reports whether all of
// them pass. An error means that they could not be run.
func (m mutant) survives(ctx context.Context, root, folder string) (bool, error) {
	content, err := m.mutated(root)
	if err != nil {
		return false, err
	}
	source, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): source}})
	if err != nil {
		return false, err
	}
	if err := errors.Join(os.WriteFile(source, content, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return false, err
	}
	passes, _, err := test(ctx, root, m.name, append([]string{"-overlay", overlay}, m.packages...))
	return passes, err
}

// test runs tests without a control plane, reports whether they pass, and returns what
// they print.
func test(ctx context.Context, root, name string, arguments []string) (passes bool, printed string, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-short", "-failfast", "-timeout", patience.String()}, arguments...)...)
	command.Dir = root
	output, err := command.CombinedOutput()
	printed = strings.TrimSpace(string(output))
	failed := &exec.ExitError{}
	switch {
	case err == nil:
		return true, printed, nil
	case ctx.Err() != nil:
		return false, printed, ctx.Err()
	case !errors.As(err, &failed):
		return false, printed, fmt.Errorf("%s: %w", name, err)
	case bytes.Contains(output, []byte("build failed]")) || bytes.Contains(output, []byte("setup failed]")) || !bytes.Contains(output, []byte("FAIL")):
		return false, printed, fmt.Errorf("%s: it cannot be built:\n%s", name, printed)
	default:
		return false, printed, nil
	}
}
