// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/bench/limit"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// subjectVariable makes our program a subject.
const subjectVariable = "CORBEL_BENCH_SUBJECT"

// ServeSubject makes this process a subject if it was started as one, and then
// does not return. Main functions, and TestMain, call it first.
func ServeSubject() {
	workers := map[string]subject.Worker{
		string(report.Corbel): &operator.Worker{},
		string(report.Limit):  &limit.Worker{},
	}
	name, chosen := os.LookupEnv(subjectVariable)
	if !chosen {
		return
	}
	worker, known := workers[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s=%s: no such subject\n", subjectVariable, name)
		os.Exit(2)
	}
	if err := subject.Serve(context.Background(), worker, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is a running subject.
type Process struct {
	// Started is when it was started.
	Started time.Time

	name    report.Subject
	command *exec.Cmd
	input   io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
	log     *bytes.Buffer
	exited  chan struct{} // closed when the process is gone
}

// Connect starts a subject that works on the environment, under a name of its own.
// The program is that of Flux, or empty for our own.
func Connect(ctx context.Context, e *env.Environment, name report.Subject, program, namespace string) (*Process, error) {
	config, err := ConfigFor(e, name)
	if err != nil {
		return nil, err
	}
	return ConnectTo(ctx, name, program, subject.Order{Cluster: subject.ClusterOf(config), Namespace: namespace})
}

// ConfigFor returns the configuration of a subject.
func ConfigFor(e *env.Environment, name report.Subject) (*rest.Config, error) {
	return e.ConfigFor(User(name), "system:masters")
}

// ConnectTo starts a subject that connects as ordered.
func ConnectTo(ctx context.Context, name report.Subject, program string, order subject.Order) (*Process, error) {
	p, err := start(name, program)
	if err != nil {
		return nil, err
	}
	order.Do = subject.Connect
	if _, err := p.Order(ctx, order); err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// User is the name of a subject on the API server.
func User(name report.Subject) string { return "bench-" + string(name) }

func start(name report.Subject, program string) (*Process, error) {
	p := &Process{name: name, log: &bytes.Buffer{}, exited: make(chan struct{})}
	environment := os.Environ()
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
		environment = append(environment, subjectVariable+"="+string(name))
	}
	p.command = exec.Command(program)
	p.command.Env, p.command.Stderr = environment, p.log
	input, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.input, p.orders, p.answers = input, json.NewEncoder(input), json.NewDecoder(output)
	p.Started = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.command.Wait() // how it ended is in its state
		close(p.exited)
	}()
	return p, nil
}

// Order gives an order and waits for the answer. A process that does not answer
// until the context ends is killed.
func (p *Process) Order(ctx context.Context, order subject.Order) (subject.Answer, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	defer stop()
	var answer subject.Answer
	err := p.orders.Encode(order)
	if err == nil {
		err = p.answers.Decode(&answer)
	}
	if err != nil {
		return answer, fmt.Errorf("%s does not answer %s: %w\n%s", p.name, order.Do, errors.Join(ctx.Err(), err), p.log)
	}
	if answer.Error != "" {
		return answer, fmt.Errorf("%s: %s", p.name, answer.Error)
	}
	return answer, nil
}

// Take returns what the process has used since the last time. A profile of the heap
// is written if a path is given.
func (p *Process) Take(ctx context.Context, profile string) (subject.Usage, error) {
	answer, err := p.Order(ctx, subject.Order{Do: subject.Take, Collect: true, Profile: profile})
	if err != nil {
		return subject.Usage{}, err
	}
	return *answer.Usage, nil
}

// End ends the process and waits until it is gone.
func (p *Process) End() {
	_ = p.input.Close() // it is gone already if this fails
	timer := time.AfterFunc(10*time.Second, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	<-p.exited // how it ends does not matter any more
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Ending describes how the process ended. It must have.
func (p *Process) Ending() (code int, text string) {
	return p.command.ProcessState.ExitCode(), fmt.Sprintf("%s: %s", p.command.ProcessState, p.log)
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal os.Signal) error { return p.command.Process.Signal(signal) }
