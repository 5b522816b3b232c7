// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/outputs"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// RenderOffline returns the manifests of a component as they are rendered for its installation, with its patches, and
// without a cluster: what a template looks up does not exist, hooks do not run, and the time
// is the beginning of 1970. It needs no setup.
//
// Notes are sentences about what is another than in a cluster: references of the spec that are not loaded, and
// random values.
func (r *Reconciler[T]) RenderOffline(ctx context.Context, obj T) (objects []client.Object, notes []string, err error) {
	if err := errors.Join(r.wiring()...); err != nil {
		return nil, nil, r.setupError(err)
	}
	duplicate, err := identity.Copy(obj)
	if err != nil {
		return nil, nil, err
	}
	obj = duplicate.(T)
	found, _ := finderFor[T]().Find(specOf(obj))
	resolved, configErr := resolveConfig(obj, r.settings)
	if err := errors.Join(configErr, references.Mistakes(found, obj.GetNamespace())); err != nil {
		return nil, nil, err
	}
	for _, reference := range found {
		if _, isDuration := reference.Pointer.(*types.Duration); !isDuration {
			notes = append(notes, fmt.Sprintf("%s refers to an object that is not read without a cluster", reference.Path))
		}
	}
	known := manifests.FromContext(ctx)
	known.ReconcilerName, known.Component, known.Revision, known.Preview = r.settings.Name, obj, 1, true
	ctx = known.In(renders.WithTime(ctx, time.Unix(0, 0).UTC()))
	ctx, randomness := renders.WithRandomness(ctx)
	generator := rendering.Patched(r.generator, r.settings.users.AllowSecretPatches, func() ([]v1alpha1.Patch, []v1alpha1.Image) { return patchesOf(obj) })
	objects, err = manifests.Generate(ctx, generator, resolved.Namespace, resolved.Name, obj.GetSpec())
	outputs.Annotate(r.settings.Name, outputRules(r.settings.objects.Outputs), objects)
	if randomness.Used() {
		notes = append(notes, "a template uses random values or the time, so another rendering may differ")
	}
	return objects, notes, err
}

func newRenderer(generator manifests.Generator, s *steps) *rendering.Renderer {
	return &rendering.Renderer{
		Self: &s.self, Generator: generator, Parameters: s.author.parametersOf, Patches: patchesOf, SecretPatches: s.settings.users.AllowSecretPatches, Telemetry: s.telemetry,
		HooksOnRestore: s.settings.hooksOnRestore, Outputs: outputRules(s.settings.objects.Outputs),
		Now: func() time.Time { return s.now() }, Leading: s.code.leaderLock.leading, Scheme: scheme.Scheme,
		Run: func(ctx context.Context, key client.ObjectKey, generate func(context.Context) ([]client.Object, error)) ([]client.Object, error) {
			return callUserCode(ctx, s.code, key, "generator", s.code.generateTimeout, generate)
		},
	}
}

// ClientFromContext returns a client for the deployment target: the cluster and
// the user that the dependent objects are written as. It reads from the
// server. It is there in generators and in all hooks but the post-read hooks;
// elsewhere there is an error. What else a context holds, manifests.FromContext returns.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	if c := manifests.FromContext(ctx).Client; c != nil {
		return c, nil
	}
	return nil, errors.New("the context holds no client of the target cluster")
}
