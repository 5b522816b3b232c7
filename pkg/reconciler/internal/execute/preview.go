// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Preview asks the server for its answers to steps, with the requests that an Executor sends, each
// as a dry run. Nothing is stored: neither by the server nor by the Executor or the Observer. It
// keeps every object that it reads, and reads none twice.
type Preview struct {
	executor *Executor
	lock     sync.Mutex
	known    map[address]*unstructured.Unstructured
}

// address identifies an object in one version of its type.
type address struct {
	version         string
	kind            string
	namespace, name string
}

func addressOf(r cluster.Resource, namespace, name string) address {
	return address{r.GVR.GroupVersion().String(), r.Kind, namespace, name}
}

// NewPreview returns a Preview of the requests of the Executor.
func (e *Executor) NewPreview() *Preview {
	return &Preview{executor: e, known: map[address]*unstructured.Unstructured{}}
}

func (p *Preview) find(r cluster.Resource, namespace, name string) *unstructured.Unstructured {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.known[addressOf(r, namespace, name)]
}

func (p *Preview) keep(r cluster.Resource, live *unstructured.Unstructured) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.known[addressOf(r, live.GetNamespace(), live.GetName())] = live
}

// Forget drops the copy of an object, so that it is read again.
func (p *Preview) Forget(key plan.Key) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for at := range p.known {
		if at.kind == key.Kind && at.namespace == key.Namespace && at.name == key.Name {
			delete(p.known, at)
		}
	}
}

// Observer returns an Observer that reads the objects that are not known yet.
func (p *Preview) Observer() *observe.Observer {
	return p.executor.observer.Detached(p.executor.objects.DryRun(cluster.DryRun{Known: p.find, Read: p.keep}))
}

// Live returns the object of a step as it was read; nil if it was not.
func (p *Preview) Live(ctx context.Context, step plan.Step) *unstructured.Unstructured {
	resource, err := p.resourceOf(ctx, step.Key, step.Version, step.Desired)
	if err != nil {
		return nil
	}
	return p.find(resource, step.Key.Namespace, step.Key.Name)
}

func (p *Preview) resourceOf(ctx context.Context, key plan.Key, version string, desired *plan.Desired) (cluster.Resource, error) {
	if desired != nil {
		return p.executor.types.Resolve(ctx, key.GroupKind().WithVersion(desired.Version))
	}
	return p.executor.types.ResolveAny(ctx, key.GroupKind(), version)
}

// minList is from how many objects on a list takes the place of single reads.
const minList = 3

// List reads the recorded objects among the requests, by the label of the owner, where that takes
// less requests than to read each of them. Objects that it does not find are read later.
func (p *Preview) List(ctx context.Context, owner plan.Owner, requests []observe.Request) {
	type listing struct {
		resource   cluster.Resource
		namespaces []string
		count      int
	}
	listings := map[address]*listing{}
	for _, request := range requests {
		if request.Recorded == nil || request.Recorded.UID == "" {
			continue
		}
		resource, err := p.resourceOf(ctx, request.Key, request.Version, request.Desired)
		if err != nil || resource.Namespaced != (request.Key.Namespace != "") || !resource.Can("list") {
			continue
		}
		at := addressOf(resource, "", "")
		l := listings[at]
		if l == nil {
			l = &listing{resource: resource}
			listings[at] = l
		}
		l.count++
		if !slices.Contains(l.namespaces, request.Key.Namespace) {
			l.namespaces = append(l.namespaces, request.Key.Namespace)
		}
	}
	selector := p.executor.options.Name + "/" + vocabulary.LabelOwnerID + "=" + owner.ID
	list := func(resource cluster.Resource, namespace string) bool {
		options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
		for {
			page, err := p.executor.objects.List(ctx, resource, namespace, options)
			if err != nil {
				return false
			}
			for i := range page.Items {
				p.keep(resource, &page.Items[i])
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				return true
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(p.executor.options.Parallelism)
	for _, l := range listings {
		if l.count < minList {
			continue
		}
		group.Go(func() error {
			if len(l.namespaces) > 1 && list(l.resource, "") {
				return nil
			}
			for _, namespace := range l.namespaces {
				if l.count < minList*len(l.namespaces) || !list(l.resource, namespace) {
					break // each is read by itself
				}
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}

// Previewed is the server's answer to the dry run of a step.
type Previewed struct {
	// Result is the expected result of the step. Its observation is of the object in the server's
	// answer.
	Result plan.Result
	// Answer is the object as the server would keep it; nil if it did not say.
	Answer *unstructured.Unstructured
	// Partial: the step needs more than one write, and the server was asked about the first.
	Partial bool
	// Removes are the fields that a later request removes, such as .spec.template.metadata.annotations.key.
	Removes []string
}

// errPartial ends a step after its first write: the second would be about an object that
// the first has not changed.
var errPartial = errors.New("the server can be asked only about the first request of a step")

// Ask asks the server about steps, several at once. Guards count the objects in removed as
// gone. Steps that were not started because the context ended have no result.
func (p *Preview) Ask(ctx context.Context, steps []plan.Step, removed map[types.UID]bool) []Previewed {
	if removed == nil {
		removed = map[types.UID]bool{}
	}
	asked := make([]Previewed, len(steps))
	var group errgroup.Group
	group.SetLimit(p.executor.options.Parallelism)
	for i, step := range steps {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			asked[i] = p.ask(ctx, step, removed)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return slices.DeleteFunc(asked, func(one Previewed) bool { return one.Result.Step.Verb == "" })
}

func (p *Preview) ask(ctx context.Context, step plan.Step, removed map[types.UID]bool) (asked Previewed) {
	sent := false
	objects := p.executor.objects.DryRun(cluster.DryRun{
		Known: func(r cluster.Resource, namespace, name string) *unstructured.Unstructured {
			if sent {
				return nil // the server knows something newer
			}
			return p.find(r, namespace, name)
		},
		Read: p.keep,
		BeforeWrite: func() error {
			if asked.Answer != nil {
				return errPartial
			}
			sent = true
			return nil
		},
		Answered: func(live *unstructured.Unstructured) { asked.Answer = live },
	})
	e := &Executor{
		objects: objects, types: p.executor.types, observer: p.executor.observer.Detached(objects), removed: removed, options: p.executor.options,
	}
	asked.Result = e.tryStep(ctx, step)
	if errors.Is(asked.Result.Err, errPartial) {
		asked.Partial = true
		if e.reclaimed != nil {
			e.reclaimed.Leaves().Iterate(func(field fieldpath.Path) { asked.Removes = append(asked.Removes, field.String()) })
		}
		asked.Result = plan.Result{Step: step, Observation: e.observer.ObservationOf(ctx, asked.Answer, step.Desired.Unpacked())}
	}
	return asked
}

// Assume returns the object of a creation as the server is assumed to answer it.
func (p *Preview) Assume(ctx context.Context, step plan.Step) plan.Observation {
	desired := step.Desired.Unpacked()
	if desired == nil || desired.Manifest == nil {
		return plan.Observation{}
	}
	live := desired.Manifest.DeepCopy()
	live.SetUID("assumed")
	live.SetGeneration(1)
	return p.Observer().ObservationOf(ctx, live, desired)
}
