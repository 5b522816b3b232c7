// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/internal/subprocess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// Isolation sets the limits of an isolated generator.
type Isolation struct {
	// Name distinguishes the isolated generators of a program, also in errors.
	//
	// Default: "generator"
	Name string
	// ProcessorTime is the processor time of one rendering, in full seconds.
	//
	// Default: 1 minute
	ProcessorTime time.Duration
	// Timeout is the time of one rendering, with the start of the process.
	//
	// Default: 10 minutes
	Timeout time.Duration
	// MemoryBytes is the memory of one rendering, in addition to that of the program at its start; at least 64
	// MiB.
	//
	// Default: 512 MiB
	// Unit: bytes
	MemoryBytes int64
	// OutputBytes limits the rendered objects, as JSON.
	//
	// Unit: bytes
	// Default: 32 MiB
	OutputBytes int64
}

const (
	defaultProcessorTime   = time.Minute
	defaultIsolatedTimeout = 10 * time.Minute
	defaultIsolatedMemory  = 512 << 20
	// Limit: the least value of the option Isolation.MemoryBytes.
	minIsolatedMemory     = 64 << 20
	defaultIsolatedOutput = 32 << 20
)

// Isolated returns a generator that lets g render in a process of its own for every
// rendering, so that a g that takes all memory, never ends, or ends its process
// does no harm to the operator. Only Linux has such processes; elsewhere, Generate
// returns an error.
//
// The process is the program itself, started once more. Therefore Isolated must be called
// in the same way whenever the program starts, before RunIsolated, and RunIsolated
// must be called at the start of main:
//
//	var generator = manifests.Isolated(chart, manifests.Isolation{Name: "chart"})
//
//	func main() {
//		manifests.RunIsolated()
//		...
//
// The process has an empty environment, none of the open files of the operator, and the
// limits of the Isolation. It is killed, with the processes that it started, when its
// time has passed or the operator ends. It is no sandbox: it has the user, the file system and
// the network of the operator.
//
// The input and the output of g are JSON. So g finds a types.UnstructurableMap in place of the type
// of the spec, an unstructured.Unstructured as the component, and all that the context holds except
// for the clients: it cannot look anything up. It must return objects with apiVersion and kind, or
// of a type that is built in or that its AddToScheme knows. They come back as
// unstructured.Unstructured.
//
// Errors of g come back as their text and with the delay of a types.RetriableError.
func Isolated(g Generator, isolation Isolation) Generator {
	i := &isolated{transformed: transformed{generator: g}, isolation: isolation}
	i.isolation.Name = cmp.Or(isolation.Name, "generator")
	i.isolation.ProcessorTime = cmp.Or(isolation.ProcessorTime, defaultProcessorTime)
	i.isolation.Timeout = cmp.Or(isolation.Timeout, defaultIsolatedTimeout)
	i.isolation.MemoryBytes = cmp.Or(isolation.MemoryBytes, defaultIsolatedMemory)
	i.isolation.OutputBytes = cmp.Or(isolation.OutputBytes, defaultIsolatedOutput)
	i.err = isolates.add(i)
	return i
}

type isolated struct {
	transformed // without transformers
	isolation   Isolation
	err         error // a mistake in its making
}

func (i *isolated) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if subprocess.IsChild() {
		// An isolated generator inside of another one.
		return Generate(ctx, i.generator, namespace, name, parameters)
	}
	if err := errors.Join(i.ValidateParts(), isolates.ready()); err != nil {
		return nil, err
	}
	work, err := encodeWork(ctx, i.isolation.Name, namespace, name, parameters)
	if err != nil {
		return nil, i.failed(err)
	}
	renders.NoteProgress(ctx, fmt.Sprintf("isolated generator %q", i.isolation.Name))
	start := time.Now()
	answer, err := subprocess.Run(ctx, work, subprocess.Limits{
		Time: i.isolation.Timeout, Processor: i.isolation.ProcessorTime, Memory: i.isolation.MemoryBytes, Output: i.isolation.OutputBytes,
	})
	switch {
	case errors.Is(err, subprocess.ErrTime), errors.Is(err, context.DeadlineExceeded):
		return nil, &timeout.Error{
			Generator: fmt.Sprintf("isolated generator %q", i.isolation.Name), After: time.Since(start), Err: context.DeadlineExceeded,
		}
	case errors.Is(err, subprocess.ErrMemory):
		return nil, i.failed(fmt.Errorf("%w: %d MiB", err, i.isolation.MemoryBytes>>20))
	case errors.Is(err, subprocess.ErrOutput):
		return nil, i.failed(fmt.Errorf("%w: %d bytes", err, i.isolation.OutputBytes))
	case err != nil:
		return nil, i.failed(err)
	}
	return i.decode(ctx, answer)
}

func (i *isolated) failed(err error) error {
	return fmt.Errorf("isolated generator %q: %w", i.isolation.Name, err)
}

// ValidateParts validates the generator and the limits.
func (i *isolated) ValidateParts() error {
	errs := []error{renders.Validate(i.generator), i.err}
	if i.isolation.Timeout < 0 || i.isolation.ProcessorTime < time.Second {
		errs = append(errs, i.failed(fmt.Errorf("the timeout of %s is negative, or less than a second of the processor: %s", i.isolation.Timeout, i.isolation.ProcessorTime)))
	}
	if i.isolation.MemoryBytes < minIsolatedMemory {
		errs = append(errs, i.failed(fmt.Errorf("%d bytes of memory are too few, it needs at least %d", i.isolation.MemoryBytes, minIsolatedMemory)))
	}
	if i.isolation.OutputBytes < 0 {
		errs = append(errs, i.failed(errors.New("the limit of the output is negative")))
	}
	return errors.Join(errs...)
}

// isolates are the isolated generators of this program, by name: how the other
// process finds the same one.
var isolates = &isolateSet{byName: map[string]*isolated{}}

type isolateSet struct {
	mu     sync.Mutex
	byName map[string]*isolated
	hooked bool // RunIsolated was called
}

func (s *isolateSet) add(i *isolated) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hooked {
		return i.failed(errors.New("it was made after manifests.RunIsolated was called, so its process would not know it; make it before"))
	}
	if s.byName[i.isolation.Name] != nil {
		return i.failed(errors.New("there is another one of this name; give each of them its Isolation.Name"))
	}
	s.byName[i.isolation.Name] = i
	return nil
}

// ready refuses to start the program once more if that would be another operator.
func (s *isolateSet) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hooked {
		return errors.New("isolated generators need a call of manifests.RunIsolated at the start of main (in tests: of TestMain)")
	}
	return nil
}

func (s *isolateSet) get(name string) *isolated {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}
