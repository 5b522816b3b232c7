// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// helperVariable makes the test binary a program that starts an environment
// and then ends in the way that the value says.
const helperVariable = "CORBEL_ENV_HELPER"

const (
	waitToBeKilled = "wait"
	exitAtOnce     = "exit"
	panicAtOnce    = "panic"
)

// report is what the helper prints for the test on its standard output.
type report struct {
	Dir  string
	Pids []int
}

func runHelper(ending string) {
	e, err := Start(context.Background(), Options{Cluster: ending == waitToBeKilled})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(report{Dir: e.Dir(), Pids: e.pids()}) // the test misses it if it fails
	switch ending {
	case waitToBeKilled:
		select {}
	case exitAtOnce:
		os.Exit(3)
	default:
		panic("the test asked the helper to panic")
	}
}

func TestNoProcessSurvivesItsParent(t *testing.T) {
	for _, test := range []struct {
		name, ending string
		processes    int
	}{
		{"that is killed", waitToBeKilled, 6},
		{"that exits without stopping", exitAtOnce, 3},
		{"that panics", panicAtOnce, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			helper, report := startHelper(t, test.ending)
			if len(report.Pids) != test.processes {
				t.Errorf("the environment has processes %v, want %d of them", report.Pids, test.processes)
			}
			if test.ending == waitToBeKilled {
				if gone(report.Pids[:1]) == nil || gone(report.Pids[1:]) == nil {
					t.Error("a process ended before its parent")
				}
				check.NoError(t, helper.Process.Kill())
			}
			_ = helper.Wait() // ends with an error, as the test asked
			Until(t, "all processes end", func() error { return gone(report.Pids) })
			Until(t, "keys and data are removed", func() error { return noSecrets(report.Dir) })
		})
	}
}

func startHelper(t *testing.T, ending string) (*exec.Cmd, report) {
	t.Helper()
	helper := exec.Command(os.Args[0])
	helper.Env = append(os.Environ(), helperVariable+"="+ending, "TMPDIR="+shortTempDir(t))
	helper.Stderr = t.Output()
	if ending == panicAtOnce {
		helper.Stderr = nil // a stack that no reader needs
	}
	stdout := check.Must(helper.StdoutPipe())(t)
	check.NoError(t, helper.Start())
	t.Cleanup(func() { _ = helper.Process.Kill() }) // mostly it is dead already
	var r report
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&r); err != nil {
		t.Fatalf("the helper did not start an environment: %v", err)
	}
	return helper, r
}

// shortTempDir is removed with all that a helper leaves. The test's own folder has
// a name too long for a socket.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir := check.Must(os.MkdirTemp("", "env-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// noSecrets reports what is left of an environment besides its logs.
func noSecrets(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "logs" {
			return fmt.Errorf("%s is still there", entry.Name())
		}
	}
	return nil
}

func TestMain(m *testing.M) {
	if ending, ok := os.LookupEnv(helperVariable); ok {
		runHelper(ending)
	}
	os.Exit(Main(m, Options{AuditLog: true, AuditBodies: true}))
}

// gone returns an error that names the first process that still runs. One that has
// ended, and is not waited for yet by its parent, does not run.
func gone(pids []int) error {
	for _, pid := range pids {
		if syscall.Kill(pid, 0) != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !zombie(string(stat)) {
			return fmt.Errorf("process %d still runs: %s", pid, stat)
		}
	}
	return nil
}

// zombie reads the state in /proc/PID/stat, which follows the name in parentheses.
func zombie(stat string) bool {
	var pid int
	var name, state string
	_, err := fmt.Sscanf(stat, "%d %s %s", &pid, &name, &state)
	return err == nil && state == "Z"
}

// pids returns all processes of an environment, the guard included.
func (e *Environment) pids() []int {
	pids := []int{e.guard.shell.Process.Pid}
	for _, p := range e.processes() {
		pids = append(pids, p.command.Process.Pid)
	}
	return pids
}
