// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corbel-run/corbel/test/env"
)

// operatorLog is the name of the operator's log, beside those of the control plane.
const operatorLog = "shop.log"

// operator is the example operator as a process of its own.
type operator struct {
	command *exec.Cmd
	log     *os.File
	ended   chan struct{} // closed when the process ended
}

// startOperator runs the program with administrator's rights on the cluster.
func startOperator(environment *env.Environment, program string) (*operator, error) {
	log, err := os.Create(filepath.Join(environment.LogDir(), operatorLog))
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	command.Env = append(os.Environ(), "KUBECONFIG="+environment.Kubeconfig())
	command.Stdout, command.Stderr = log, log
	environment.Adopt(command)
	if err := command.Start(); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("start the operator, which `make demo` builds: %w", err)
	}
	o := &operator{command: command, log: log, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // said by ProcessState
		close(o.ended)
	}()
	return o, nil
}

// check returns an error if the operator ended unasked.
func (o *operator) check() error {
	select {
	case <-o.ended:
		return fmt.Errorf("the operator ended by itself (%v)", o.command.ProcessState)
	default:
		return nil
	}
}

// stop ends the operator, as Kubernetes would. It may not have been started.
func (o *operator) stop() error {
	if o == nil {
		return nil
	}
	if o.check() == nil {
		_ = o.command.Process.Signal(syscall.SIGTERM) // it may be ending
		select {
		case <-o.ended:
		case <-time.After(5 * time.Second):
			_ = o.command.Process.Kill()
			<-o.ended
		}
	}
	return o.log.Close()
}
