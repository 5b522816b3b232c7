// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/component"
)

// samples are the components of a project, and the objects that they need, with what is still to be applied, and what was
// applied, by title.
type samples struct {
	all, prerequisites, pending []*unstructured.Unstructured
	applied                     map[string]*unstructured.Unstructured
}

// readSamples reads the folder samples of each kind, and the folder prerequisites in it. Objects without a namespace get the only one that the
// operator watches, or default. Applied are those that were applied before.
func readSamples(folder string, installed deploy.Operator, applied map[string]*unstructured.Unstructured) (samples, error) {
	namespace := "default"
	if slices.ContainsFunc(installed.Args, func(arg string) bool { return strings.HasPrefix(arg, "--watch-namespace") }) {
		namespace = installed.Namespace
	}
	s := samples{applied: applied}
	for _, of := range scaffold.KindFolders(folder) {
		all, err := readObjects(folder, path.Join(of, "samples"), namespace)
		if err != nil {
			return samples{}, err
		}
		prerequisites, err := readObjects(folder, path.Join(of, "samples/prerequisites"), namespace)
		if err != nil {
			return samples{}, err
		}
		s.all, s.prerequisites = append(s.all, all...), append(s.prerequisites, prerequisites...)
	}
	s.pending = slices.Concat(s.prerequisites, s.all)
	return s, nil
}

// readObjects reads the files of a folder of the project. Objects without a namespace get the given one.
func readObjects(project, folder, namespace string) (all []*unstructured.Unstructured, err error) {
	names, err := filepath.Glob(filepath.Join(project, folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		objects, err := document.Decode(folder+"/"+filepath.Base(name), text)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if object.GetNamespace() == "" {
				object.SetNamespace(namespace)
			}
		}
		all = append(all, objects...)
	}
	return all, nil
}

// titleOf names an object.
func titleOf(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// look applies what is not applied yet, tells the state of each sample, shows those that have become ready, and reports whether
// all of them are. A definition that was changed just now may not be served yet, so an error may pass.
func (s *samples) look(ctx context.Context, c client.Client, tell func(about, text string) (isNew bool), show func(context.Context, *unstructured.Unstructured)) (ready bool, err error) {
	for len(s.pending) > 0 {
		if err := s.apply(ctx, c, s.pending[0]); err != nil {
			return false, err
		}
		s.pending = s.pending[1:]
	}
	ready = len(s.all) > 0
	for _, sample := range s.all {
		live := sample.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(sample), live); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read %s: %w", titleOf(sample), err)
		} else if err != nil {
			ready = false
			continue
		}
		if cluster.IsBuiltIn(sample.GroupVersionKind().Group) { // such as a Secret that the spec of a sample refers to
			tell(titleOf(sample), "is applied")
			continue
		}
		now := stateOf(live)
		if isNew := tell(titleOf(sample), now.String()); isNew && now.ready {
			show(ctx, live)
		}
		ready = ready && now.ready
	}
	return ready, nil
}

// apply applies a sample if its file has changed, or if the sample does not exist. Otherwise a user may have changed the sample in
// the cluster, and the change stays. A prerequisite that exists already is neither changed nor deleted.
func (s *samples) apply(ctx context.Context, c client.Client, sample *unstructured.Unstructured) error {
	title := titleOf(sample)
	if equality.Semantic.DeepEqual(sample, s.applied[title]) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(sample), sample.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read %s: %w", title, err)
		} else if err == nil {
			return nil
		}
	}
	if s.applied[title] == nil && slices.Contains(s.prerequisites, sample) { // the file may have placeholders for a Secret of the cluster
		switch err := c.Create(ctx, sample.DeepCopy(), client.FieldOwner("corbel")); {
		case apierrors.IsAlreadyExists(err):
			return nil
		case err != nil:
			return fmt.Errorf("create %s: %w", title, err)
		}
		s.applied[title] = sample
		return nil
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sample.DeepCopy()), client.FieldOwner("corbel"), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s: %w", title, err)
	}
	s.applied[title] = sample
	return nil
}

// remove deletes the samples, and reports whether they are gone. Their prerequisites go last: pods that run before a deletion
// may need them.
func (s *samples) remove(ctx context.Context, c client.Client, tell func(about, text string) (isNew bool)) (gone bool, err error) {
	gone = true
	for _, sample := range s.all {
		live := sample.DeepCopy()
		err := c.Get(ctx, client.ObjectKeyFromObject(sample), live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("read %s: %w", titleOf(sample), err)
		case err != nil:
			tell(titleOf(sample), "is gone")
			continue
		case live.GetDeletionTimestamp() == nil:
			if err := c.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())}); client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("delete %s: %w", titleOf(sample), err)
			}
		default:
			tell(titleOf(sample), stateOf(live).String())
		}
		gone = false
	}
	if !gone {
		return false, nil
	}
	for _, object := range s.prerequisites {
		if s.applied[titleOf(object)] == nil {
			continue
		}
		live := object.DeepCopy()
		err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if err == nil {
			err = c.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID())})
		}
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete %s: %w", titleOf(object), err)
		}
	}
	return true, nil
}

// state is what the status of a component says.
type state struct {
	ready                     bool
	reason, progress, message string
}

// stateOf reads the status of a component.
func stateOf(live *unstructured.Unstructured) state {
	status := component.Status{}
	content, _, _ := unstructured.NestedMap(live.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return state{reason: "Unknown", message: "the status cannot be read: " + err.Error()}
	}
	_, reason, message := status.GetState()
	return state{
		ready:  status.IsReady() && status.ObservedGeneration == live.GetGeneration(),
		reason: reason, message: message, progress: status.Progress,
	}
}

// String returns the state as text.
func (s state) String() string {
	if s.reason == "" {
		return "is not reconciled yet"
	}
	return strings.Join(slices.DeleteFunc([]string{s.reason, s.progress}, func(part string) bool { return part == "" }), " ") + ": " + s.message
}
