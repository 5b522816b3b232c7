// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A process is one started program. Its output goes to a log file.
type process struct {
	name    string
	log     string
	from    int64 // where its part of the log starts; a restart appends
	command *exec.Cmd
	exited  chan struct{} // closed when the program has ended; err may be read then
	err     error
}

// start runs a program of the environment inside the guarded group.
func (e *Environment) start(name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(e.logs, name+".log"), exited: make(chan struct{})}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer output.Close() // the program has its own copy
	if p.from, err = output.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.command = exec.Command(e.Program(name), args...)
	p.command.Dir = e.run
	p.command.Env = programEnvironment(e.run)
	p.command.Stdout, p.command.Stderr = output, output
	e.guard.adopt(p.command)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// programEnvironment is all that programs see of our environment. The rest could
// only do harm: etcd refuses to start when a variable ETCD_* contradicts a flag.
func programEnvironment(dir string) []string {
	environment := []string{"HOME=" + dir}
	for _, name := range []string{"PATH", "TMPDIR", "GOMAXPROCS", "GOGC", "GOMEMLIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks the program to end and, when the grace period has passed, kills it.
func (p *process) stop(grace time.Duration) {
	if !p.running() {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // fails only if it has just ended
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill() // fails only if it has just ended
	<-p.exited
}

// died describes a program that ended without being stopped.
func (p *process) died() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); the end of %s:\n%s", p.name, how, p.log, p.tail(15))
}

// output returns what the program has logged since it was started.
func (p *process) output() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(content[min(p.from, int64(len(content))):])
}

// tail returns the last lines of the output.
func (p *process) tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.output(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lostPort reports whether the program ended because another process was using its
// port since we found it free. A nil process never ran.
func (p *process) lostPort() bool {
	return p != nil && !p.running() && strings.Contains(p.output(), "address already in use")
}
