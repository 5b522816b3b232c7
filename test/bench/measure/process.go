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

	"github.com/corbel-run/corbel/test/bench/limit"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// subjectVariable turns our program into a subject.
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
}

// Connect starts a subject that works on the environment, under a name of its own.
// The program is that of Flux, or empty for our own.
func Connect(ctx context.Context, e *env.Environment, name report.Subject, program, namespace string) (*Process, error) {
	config, err := e.ConfigFor(User(name), "system:masters")
	if err != nil {
		return nil, err
	}
	p, err := start(name, program)
	if err != nil {
		return nil, err
	}
	if _, err := p.Order(ctx, subject.Order{Do: subject.Connect, Cluster: subject.ClusterOf(config), Namespace: namespace}); err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// User is the name of a subject on the API server.
func User(name report.Subject) string { return "bench-" + string(name) }

func start(name report.Subject, program string) (*Process, error) {
	p := &Process{name: name, log: &bytes.Buffer{}}
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
	_ = p.command.Wait() // how it ends does not matter any more
}
