// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Worker does what a subject is asked to do.
type Worker interface {
	// Connect prepares the subject. Its requests are to be counted by the counter.
	Connect(ctx context.Context, order Order, counter *RequestCounter) error
	// Work does what an order says, and returns when the last of it was done.
	Work(ctx context.Context, order Order) (time.Time, error)
}

// Ender is a Worker that has to be ended.
type Ender interface {
	// End returns when everything that the worker has started has ended. The context that it got has ended.
	End()
}

// Serve answers orders until there are no more, and then ends the worker. An order that fails is answered
// with the error; an error is returned if orders cannot be read or answered.
func Serve(ctx context.Context, worker Worker, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if ender, ok := worker.(Ender); ok {
			ender.End()
		}
	}()
	s := &service{worker: worker, counter: newRequestCounter(), meter: newMeter(ctx)}
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var order Order
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		answer, err := s.answer(ctx, order)
		if err != nil {
			answer.Error = fmt.Sprintf("%s: %v", order.Do, err)
		}
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answer an order: %w", err)
		}
	}
}

type service struct {
	worker  Worker
	counter *RequestCounter
	meter   *meter
	// endProfile ends the profile of the processor time, if there is one.
	endProfile func() error
}

func (s *service) answer(ctx context.Context, order Order) (Answer, error) {
	switch order.Do {
	case Connect:
		if order.Profile != "" {
			if err := s.startProfile(order.Profile); err != nil {
				return Answer{Done: time.Now()}, err
			}
		}
		err := s.worker.Connect(ctx, order, s.counter)
		return Answer{Done: time.Now()}, err
	case Profile:
		return Answer{Done: time.Now()}, s.startProfile(order.Profile)
	case Take:
		if s.endProfile != nil {
			if err := s.endProfile(); err != nil {
				return Answer{Done: time.Now()}, err
			}
			s.endProfile = nil
		}
		usage := s.meter.read(order.Collect)
		usage.Traffic = s.counter.drain()
		return Answer{Done: time.Now(), Usage: &usage}, profile(order.Profile)
	default:
		done, err := s.worker.Work(ctx, order)
		return Answer{Done: done}, err
	}
}
