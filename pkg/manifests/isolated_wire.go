// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/manifests/internal/subprocess"
	"github.com/corbel-run/corbel/pkg/types"
)

// RunIsolated must be called at the start of main, before flags are parsed and
// anything is started, by programs that use Isolated. In the operator it does nothing.
// In a process that was started to render, it renders and ends the process.
func RunIsolated() {
	isolates.mu.Lock()
	isolates.hooked = true
	isolates.mu.Unlock()
	if subprocess.IsChild() {
		subprocess.Serve(answerWork)
	}
}

// work is the request to the other process.
type work struct {
	Generator       string
	Namespace, Name string
	Parameters      map[string]any
	ReconcilerName  string
	Digest          string
	Revision        int64
	Upgrade         bool
	Preview         bool
	// RollbackHooks asks for the objects that only a rollback applies, too.
	RollbackHooks bool
	// Component is serialised.
	Component map[string]any
	Origins   bool
	// Time replaces the current time in the rendering, if it is set.
	Time *time.Time
}

// answer is the answer of the other process.
type answer struct {
	Objects []map[string]any
	Origins []string // of the objects; none if the context does not ask for them
	// Random and Time mean that random values and the time were used.
	Random, Time bool

	Error string
	// Isolation means that the process is to blame, not the generator.
	Isolation  bool
	Panic      string
	Retriable  bool
	RetryAfter *time.Duration
}

func encodeWork(ctx context.Context, generator, namespace, name string, parameters types.Unstructurable) ([]byte, error) {
	c := FromContext(ctx)
	w := work{
		Generator: generator, Namespace: namespace, Name: name, ReconcilerName: c.ReconcilerName, Digest: c.Digest, Revision: c.Revision,
		Upgrade: c.Upgrade, Preview: c.Preview, RollbackHooks: renders.RollbackHooks(ctx), Origins: renders.WantsOrigins(ctx),
	}
	err := guard.Call(func() error {
		if !renders.IsNil(parameters) {
			w.Parameters = parameters.ToUnstructured()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the parameters: %w", err)
	}
	if now, ok := renders.Time(ctx); ok {
		w.Time = &now
	}
	if !renders.IsNil(c.Component) {
		if w.Component, err = runtime.DefaultUnstructuredConverter.ToUnstructured(c.Component); err != nil {
			return nil, fmt.Errorf("the component: %w", err)
		}
	}
	encoded, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be serialised: %w", err)
	}
	return encoded, nil
}

// answerWork is the whole work of the other process.
func answerWork(ctx context.Context, encoded []byte) []byte {
	a := answer{}
	if err := doWork(ctx, encoded, &a); err != nil {
		a = answer{Error: err.Error(), Isolation: a.Isolation}
		if p, ok := errors.AsType[*types.PanicError](err); ok {
			a.Panic = fmt.Sprint(p.Value)
		}
		if r, ok := errors.AsType[types.RetriableError](err); ok {
			a.Retriable, a.RetryAfter = true, r.RetryAfter()
		}
	}
	answered, err := json.Marshal(a)
	if err != nil {
		answered, _ = json.Marshal(answer{Error: fmt.Sprintf("the objects cannot be serialised: %v", err)})
	}
	return answered
}

func doWork(ctx context.Context, encoded []byte, a *answer) error {
	var w work
	if err := utiljson.Unmarshal(encoded, &w); err != nil {
		return err
	}
	i := isolates.get(w.Generator)
	if i == nil {
		a.Isolation = true
		return fmt.Errorf("its process does not know it, only %s; make it whenever the program starts, before manifests.RunIsolated is called",
			strings.Join(slices.Sorted(maps.Keys(isolates.byName)), ", "))
	}
	ctx, origins := w.context(ctx)
	ctx, randomness := renders.WithRandomness(ctx)
	objects, err := Generate(ctx, i.generator, w.Namespace, w.Name, types.UnstructurableMap(w.Parameters))
	if err != nil {
		return err
	}
	a.Random, a.Time = randomness.Values.Load(), randomness.Time.Load()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), renders.AddToScheme(i.generator, scheme)); err != nil {
		return err
	}
	var converted []*unstructured.Unstructured
	err = guard.Call(func() (err error) {
		converted, err = untyped.List(objects, scheme)
		return err
	})
	if err != nil {
		return err
	}
	for n, object := range objects {
		a.Objects = append(a.Objects, converted[n].Object)
		if w.Origins {
			a.Origins = append(a.Origins, origins.Of(object))
		}
	}
	return nil
}

func (w *work) context(ctx context.Context) (context.Context, *renders.Origins) {
	c := Context{ReconcilerName: w.ReconcilerName, Digest: w.Digest, Revision: w.Revision, Upgrade: w.Upgrade, Preview: w.Preview}
	if w.Component != nil {
		c.Component = &unstructured.Unstructured{Object: w.Component}
	}
	ctx = renders.WithRollbackHooks(c.In(ctx), w.RollbackHooks)
	if w.Time != nil {
		ctx = renders.WithTime(ctx, *w.Time)
	}
	return renders.WithOrigins(ctx)
}

// decode makes objects or an error of an answer.
func (i *isolated) decode(ctx context.Context, encoded []byte) ([]client.Object, error) {
	var a answer
	if err := utiljson.Unmarshal(encoded, &a); err != nil {
		return nil, i.failed(fmt.Errorf("its answer cannot be read: %w", err))
	}
	switch {
	case a.Isolation:
		return nil, i.failed(errors.New(a.Error))
	case a.Panic != "":
		return nil, fmt.Errorf("isolated generator %q: %w", i.isolation.Name, &types.PanicError{Value: a.Panic})
	case a.Retriable:
		return nil, types.NewRetriableError(confidential.At(fmt.Sprintf("isolated generator %q", i.isolation.Name), errors.New(a.Error)), a.RetryAfter)
	case a.Error != "":
		return nil, confidential.At(fmt.Sprintf("isolated generator %q", i.isolation.Name), errors.New(a.Error))
	}
	if a.Random {
		NoteRandom(ctx)
	}
	if a.Time {
		_ = Now(ctx)
	}
	objects := make([]client.Object, len(a.Objects))
	for n, content := range a.Objects {
		object := &unstructured.Unstructured{Object: content}
		objects[n] = object
		if n < len(a.Origins) && a.Origins[n] != "" {
			renders.NoteOrigin(ctx, object, a.Origins[n])
		}
	}
	return objects, nil
}
