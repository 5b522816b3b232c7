// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	if ending, ok := os.LookupEnv(helperVariable); ok {
		runHelper(ending)
	}
	log.SetLogger(logr.Discard())
	os.Exit(Main(m, Options{AuditLog: true, AuditBodies: true}))
}

// eventually looks until the check succeeds, and fails the test if it does not in time.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
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
