// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

const (
	// renderings is how often each part of Deterministic renders.
	renderings = 8
	// places limits how many differences are reported.
	places = 10
)

// Deterministic renders 24 times and reports every field that is not always the same, another order
// of the objects, and a generator that changes its parameters. Between some of the renderings it
// changes the objects, which belong to the caller, and so finds a generator that hands out the same
// ones again. The last ones happen at the same time; under the race detector (go test -race), that
// also finds memory that renderings share. It cannot see differences from day to day, or from one
// process to the next.
func (c Case) Deterministic(t testing.TB) {
	t.Helper()
	if err := c.deterministic(c.context(t)); err != nil {
		t.Error(err)
	}
}

func (c Case) deterministic(ctx context.Context) error {
	before, err := json.Marshal(c.content())
	if err != nil {
		return fmt.Errorf("the parameters cannot be serialised: %w", err)
	}
	first, err := c.render(ctx)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	for i, object := range first {
		first[i] = object.DeepCopy()
	}
	repeat := repetition{Case: c, first: first}
	if repeat.want, err = renders.Text(first); err != nil {
		return err
	}
	for range renderings - 1 {
		if _, err := repeat.render(ctx); err != nil {
			return err
		}
	}
	// Before anything happens at the same time, so that the reading is no race.
	after, err := json.Marshal(c.content())
	if err != nil || string(before) != string(after) {
		return errors.New("the generator changes its parameters, which belong to the caller")
	}
	for range renderings {
		objects, err := repeat.render(ctx)
		if err != nil {
			return fmt.Errorf("after a caller changed the objects that it got: %w", err)
		}
		for _, object := range objects {
			spoil(object)
		}
	}
	return repeat.together(ctx)
}

// repetition renders again and compares.
type repetition struct {
	Case
	first []*unstructured.Unstructured
	want  string
}

func (r repetition) render(ctx context.Context) ([]client.Object, error) {
	rendered, err := r.generate(ctx)
	if err != nil {
		return nil, fmt.Errorf("a later rendering fails, the first one did not: %w", err)
	}
	objects, err := r.convertAll(rendered)
	if err != nil {
		return nil, err
	}
	got, err := renders.Text(objects)
	if err != nil || got == r.want {
		return rendered, err
	}
	found := difference.Between(convert.ToObjects(r.first), convert.ToObjects(objects), places)
	if len(found) == 0 {
		return nil, errors.New("two renderings of the same input have the same objects in another order")
	}
	var texts []string
	for _, place := range found {
		texts = append(texts, place.String())
	}
	return nil, fmt.Errorf("two renderings of the same input are not the same:\n%s", strings.Join(texts, "\n"))
}

// together renders at the same time.
func (r repetition) together(ctx context.Context) error {
	errs := make([]error, renderings)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = r.render(ctx) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("at the same time as others: %w", err)
		}
	}
	return nil
}

// spoil changes an object as deeply as it can be reached.
func spoil(object client.Object) {
	for _, texts := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		clear(texts)
	}
	if plain, ok := object.(*unstructured.Unstructured); ok {
		empty(plain.Object)
		return
	}
	object.SetName(object.GetName() + "-changed")
}

func empty(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			empty(inner)
		}
		clear(value)
	case []any:
		for _, inner := range value {
			empty(inner)
		}
		clear(value)
	}
}
