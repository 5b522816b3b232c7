// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/test/env"
)

// controlPlaneCommand returns the command that builds the control plane.
func controlPlaneCommand() *cobra.Command {
	return &cobra.Command{
		Use: "controlplane", Short: "Build the control plane for tests, once, and print its folder", Args: cobra.NoArgs,
		Long: "Build " + strings.Join(programs, ", ") + " (which simulates nodes and pods) once, and print their folder. If the folder KUBEBUILDER_ASSETS has them all, nothing is built.",
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := controlPlane(c.Context(), c.ErrOrStderr())
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), folder)
			}
			return err
		},
	}
}

// programs are those of a control plane with controllers.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "podsim"}

// controlPlane returns a folder with the programs of the control plane: that of KUBEBUILDER_ASSETS, if it has them
// all, or one in which they are built, which takes minutes the first time.
func controlPlane(ctx context.Context, progress io.Writer) (string, error) {
	if os.Getenv(env.AssetsVariable) != "" {
		if folder, err := env.Assets(programs...); err == nil {
			return folder, nil
		}
	}
	library, err := findLibrary("")
	if err != nil {
		return "", err
	}
	if library.Folder != "" { // make knows when to build it again
		return filepath.Join(library.Folder, "bin", "k8s"), runProgram(ctx, progress, library.Folder, nil, "make", "--no-print-directory", "controlplane")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, "corbel", "controlplane-"+library.Version)
	if isComplete(target) {
		return target, nil
	}
	sources, err := download(ctx, libraryModule+"/hack/controlplane@"+library.Version)
	if err != nil {
		return "", err
	}
	return target, build(ctx, progress, sources, target)
}

// isComplete reports whether a folder has all programs.
func isComplete(folder string) bool {
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			return false
		}
	}
	return true
}

// download returns the folder of a module.
func download(ctx context.Context, module string) (string, error) {
	output, err := scaffold.GoCommand(ctx, "go", "mod", "download", "-json", module).Output()
	var found struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(output, &found); decodeErr != nil {
		return "", fmt.Errorf("download %s: %w", module, errors.Join(err, decodeErr))
	}
	if found.Error != "" {
		return "", fmt.Errorf("download %s; check the network and GOPROXY: %s", module, found.Error)
	}
	return found.Dir, err
}

// build builds the programs, which are one binary, into a folder.
func build(ctx context.Context, progress io.Writer, sources, target string) error {
	listed := scaffold.GoCommand(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	outside := []string{"GOWORK=off", "GOFLAGS="}
	listed.Dir, listed.Env = sources, append(listed.Env, outside...)
	output, err := listed.Output()
	if err != nil {
		return fmt.Errorf("find the version of Kubernetes in %s: %w", sources, err)
	}
	version := strings.TrimSpace(string(output))
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(numbers) < 2 {
		return fmt.Errorf("%s is no version of Kubernetes", version)
	}
	flags := []string{"-s", "-w"}
	for name, value := range map[string]string{"gitVersion": version, "gitMajor": numbers[0], "gitMinor": numbers[1], "gitTreeState": "clean"} {
		flags = append(flags, "-X", "k8s.io/component-base/version."+name+"="+value)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(progress, "building the control plane %s into %s: minutes the first time\n", version, target)
	binary := filepath.Join(target, "controlplane")
	next := fmt.Sprintf("%s.%d", binary, os.Getpid())
	defer os.Remove(next)
	if err := runProgram(ctx, progress, sources, outside, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", next, "."); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	if err := os.Rename(next, binary); err != nil {
		return err
	}
	for _, program := range programs {
		if err := link("controlplane", filepath.Join(target, program)); err != nil {
			return err
		}
	}
	return nil
}

// link makes a symbolic link, in place of what is there. Another process may do the same.
func link(to, name string) error {
	if known, err := os.Readlink(name); err == nil && known == to {
		return nil
	}
	temporary := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.Symlink(to, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}

// runProgram runs a program in a folder, with variables beside those of the environment, and prints what it prints.
func runProgram(ctx context.Context, progress io.Writer, folder string, variables []string, program string, args ...string) error {
	command := scaffold.GoCommand(ctx, program, args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = folder, append(command.Env, variables...), progress, progress
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s in %s: %w", program, args[0], folder, err)
	}
	return nil
}
