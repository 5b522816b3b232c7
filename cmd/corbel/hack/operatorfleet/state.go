// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/helmrelease"
)

// state is the state that the Helm operator has left.
type state struct {
	pods            map[string]string // names and phases by uid
	released, hooks map[string]bool   // objects, as keyOf writes them
	specs           map[string]any
}

func keyOf(resource schema.GroupResource, namespace, name string) string {
	return strings.Join([]string{resource.String(), namespace, name}, " ")
}

// remember reads the state when all pods have started, or after a minute.
func (t *trial) remember(ctx context.Context) (err error) {
	s := &t.before
	for deadline := time.Now().Add(time.Minute); ; {
		was := s.pods
		if s.pods, s.specs, err = t.current(ctx); err != nil {
			return err
		}
		waiting := slices.ContainsFunc(slices.Collect(maps.Values(s.pods)), func(pod string) bool { return strings.HasSuffix(pod, string(corev1.PodPending)) })
		if maps.Equal(was, s.pods) && !waiting {
			break
		}
		if time.Now().After(deadline) {
			t.problem(errors.New("not all pods have started"))
			break
		}
		time.Sleep(calm)
	}
	secrets := &corev1.SecretList{}
	if err := t.client.List(ctx, secrets, client.MatchingLabels{"owner": "helm", "status": helmrelease.StatusDeployed}); err != nil {
		return err
	}
	s.released, s.hooks = map[string]bool{}, map[string]bool{}
	for _, secret := range secrets.Items {
		release, err := helmrelease.Decode(secret.Data["release"])
		if err != nil {
			return err
		}
		if err := errors.Join(t.keys(release.Objects, release.Namespace, s.released), t.keys(release.HookObjects, release.Namespace, s.hooks)); err != nil {
			return err
		}
	}
	t.numbers[objects], t.numbers[hooks], t.numbers[pods] = len(s.released), len(s.hooks), len(s.pods)
	return nil
}

// keys adds the keys of objects of a release.
func (t *trial) keys(objects []object, namespace string, into map[string]bool) error {
	for _, o := range objects {
		mapping, err := t.client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			return err
		}
		in := ""
		if mapping.Scope.Name() == "namespace" {
			in = cmp.Or(o.GetNamespace(), namespace)
		}
		into[keyOf(mapping.Resource.GroupResource(), in, o.GetName())] = true
	}
	return nil
}

// current returns the pods but for those of Jobs, by uid, and the specs and generations of the components.
func (t *trial) current(ctx context.Context) (pods map[string]string, specs map[string]any, err error) {
	list := &corev1.PodList{}
	err = t.client.List(ctx, list)
	pods, specs = map[string]string{}, map[string]any{}
	for _, pod := range list.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind == "Job" { // it ends, and is removed
			continue
		}
		pods[string(pod.UID)] = strings.Join([]string{pod.Namespace, pod.Name, string(pod.Status.Phase)}, " ")
	}
	for _, cr := range t.crs {
		err = errors.Join(err, t.client.Get(ctx, client.ObjectKeyFromObject(cr), cr))
		specs[cr.GetKind()+cr.GetName()] = []any{cr.Object["spec"], cr.GetGeneration(), cr.GetUID()}
	}
	return pods, specs, err
}

// compare counts in the audit log what the project has written, and what has changed.
func (t *trial) compare(ctx context.Context) error {
	events, err := t.env.AuditEventsSince(ctx, t.position, t.user)
	pods, specs, currentErr := t.current(ctx)
	if err := errors.Join(err, currentErr); err != nil {
		return err
	}
	t.numbers[writes], t.numbers[hooksRun], t.numbers[replaced], t.numbers[edited] = 0, 0, 0, 0
	each, log := map[string]int{}, ""
	for _, e := range events {
		if e.Impersonated != t.user || e.Code > 299 || strings.Contains(e.URI, "dryRun=") || slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			continue
		}
		key := keyOf(schema.GroupResource{Group: e.Group, Resource: e.Resource}, e.Namespace, e.Name)
		if t.before.released[key] && e.Subresource == "" {
			each[key]++
			t.numbers[writes]++
			t.most = max(t.most, each[key])
		}
		if t.before.hooks[key] && e.Verb == "create" {
			t.numbers[hooksRun]++
		}
		log += fmt.Sprintln(e.Verb, key, e.Subresource)
	}
	for uid, pod := range pods {
		if t.before.pods[uid] == "" {
			t.numbers[replaced]++ // a deleted pod has a successor, because the number of replicas is the same
			log += fmt.Sprintln("new pod", pod)
		}
	}
	for name, spec := range t.before.specs {
		if !gocmp.Equal(spec, specs[name]) {
			t.numbers[edited]++
		}
	}
	return os.WriteFile(filepath.Join(t.work, "writes.log"), []byte(log), 0o644)
}

// checkLeft waits until all objects of the components are gone.
func (t *trial) checkLeft(ctx context.Context) error {
	return await(ctx, func() error {
		now, err := t.everything(ctx)
		maps.DeleteFunc(now, func(key string, _ bool) bool { return t.known[key] })
		if t.numbers[left] = len(now); len(now) > 0 {
			return fmt.Errorf("left over: %s", strings.Join(slices.Sorted(maps.Keys(now)), ", "))
		}
		return err
	})
}

// passing are kinds of objects that other programs make and remove, or that stay: volumes, and the definitions in the folder crds of a chart.
var passing = []string{"Event", "Lease", "Endpoints", "EndpointSlice", "PersistentVolumeClaim", "PersistentVolume", "CustomResourceDefinition", "APIService", "Namespace"}

// everything returns all objects but the passing ones and those in the namespaces of operators.
func (t *trial) everything(ctx context.Context) (map[string]bool, error) {
	d, err := discovery.NewDiscoveryClientForConfig(t.env.Config())
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredResources(d)
	found := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing, r.Kind) {
				continue
			}
			items := &metav1.PartialObjectMetadataList{}
			items.SetGroupVersionKind(schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind+"List"))
			err = errors.Join(err, t.client.List(ctx, items))
			for _, o := range items.Items {
				if o.Name != "kube-root-ca.crt" && !strings.HasSuffix(o.Namespace, "-system") {
					found[strings.Join([]string{o.Namespace, r.Kind, o.Name}, " ")] = true
				}
			}
		}
	}
	return found, err
}
