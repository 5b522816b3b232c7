// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Toolchain runs the commands that complete a project.
type Toolchain struct {
	// Go is the go command; by default that of PATH.
	Go string
	// Progress is called before each command with what it does. Nil reports nothing.
	Progress func(string)
}

// complete makes the files that follow from the others, such as from the Go types in the folders of the API.
func (t Toolchain) complete(ctx context.Context, folder string, apis []string) error {
	// controller-gen reads the types with the modules that they import.
	if err := t.run(ctx, folder, "resolve the modules", "mod", "tidy"); err != nil {
		return err
	}
	args := []string{"run", "sigs.k8s.io/controller-tools/cmd/controller-gen@" + ControllerGen, "object", "crd:maxDescLen=200", "output:crd:dir=deploy/files"}
	for _, api := range apis {
		args = append(args, "paths=./"+api+"/...")
	}
	return t.run(ctx, folder, "generate DeepCopy and the CustomResourceDefinition", args...)
}

// GoCommand returns a go command that is interrupted when the context ends, so that it stops its own
// processes and removes its temporary folders. Unless the environment says so, it uses no cgo: nothing of Corbel needs a C
// compiler, and the same packages are in the cache for each of the commands.
func GoCommand(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append([]string{"CGO_ENABLED=0"}, os.Environ()...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	return command
}

// run runs the go command in a folder.
func (t Toolchain) run(ctx context.Context, folder, what string, args ...string) error {
	if t.Progress != nil {
		t.Progress(what)
	}
	program := t.Go
	if program == "" {
		program = "go"
	}
	command := GoCommand(ctx, program, args...)
	// The flags of the user's environment hold as well; of two that contradict each other, the last one does.
	command.Dir, command.Env = folder, append(command.Env, "GOWORK=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"))
	output, err := command.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: there is no go command: install Go 1.26 or later", what)
	}
	text := trimmed(string(output))
	for _, sign := range []string{"dial tcp", "no such host", "connection refused", "i/o timeout", "module lookup disabled", "cannot query module"} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%s: modules cannot be downloaded; check the network and GOPROXY (go %s):\n%s", what, strings.Join(args, " "), text)
		}
	}
	return fmt.Errorf("%s (go %s): %w\n%s", what, strings.Join(args, " "), err, text)
}
