// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// realCluster plays on a real API server, with the real engine.
type realCluster struct {
	client.Client
	t         *testing.T
	config    Config
	engine    *reconciler.Reconciler
	namespace string
	inventory v1alpha1.Inventory
	outputs   []reconciler.Output
	gone      bool
	gate      *wire.Gate
}

// read are the objects that were read in the last reconcile before anything was written.
func (r *realCluster) read() []string {
	kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}
	var read []string
	for _, request := range r.gate.Requests() {
		method, path, _ := strings.Cut(request, " ")
		if method != http.MethodGet {
			break
		}
		parts := strings.Split(path, "/") // "", api, v1, namespaces, shop, configmaps, a
		if len(parts) == 7 && kinds[parts[5]] != "" {
			read = append(read, kinds[parts[5]]+" "+parts[6])
		}
	}
	slices.Sort(read)
	return slices.Compact(read)
}

func newReal(t *testing.T, config Config) *realCluster {
	t.Helper()
	gate := &wire.Gate{}
	rest := env.Shared(t).Config()
	rest.Wrap(gate.Wrap)
	target := check.Must(cluster.New(rest, cluster.Options{}))(t)
	t.Cleanup(target.Close)
	options := reconciler.ReconcilerOptions{DigestKey: []byte("0123456789abcdef")}
	if config.Watched {
		options.Changed = func(reconciler.Owner, reconciler.Change) {}
	}
	engine := check.Must(reconciler.NewReconciler(reconcilerName, reconciler.Target{Target: target}, options))(t)
	t.Cleanup(engine.Close)
	others := check.Must(cluster.New(env.Shared(t).Config(), cluster.Options{}))(t)
	t.Cleanup(others.Close)
	r := &realCluster{Client: others.Client(), t: t, config: config, engine: engine, gate: gate}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "model-"}}
	check.NoError(r.t, r.Create(t.Context(), namespace))
	r.namespace = namespace.Name
	return r
}

// manifest is the real form of a desired object. Its value is a label, because
// that is where a Secret shows it, too.
func (r *realCluster) manifest(w Want) client.Object {
	set := desiredOf(w, ownerOf(0, 1)).Policies
	annotations := map[string]string{
		v1alpha1.AnnotationAdoptionPolicy: string(set.Adoption), v1alpha1.AnnotationReconcilePolicy: string(set.Reconcile),
		v1alpha1.AnnotationUpdatePolicy: string(set.Update), v1alpha1.AnnotationDeletePolicy: string(set.Delete),
		v1alpha1.AnnotationApplyOrder: fmt.Sprint(set.Order.Apply), v1alpha1.AnnotationDeleteOrder: fmt.Sprint(set.Order.Delete),
		v1alpha1.AnnotationOutput + "." + w.Key.Kind + "-" + w.Key.Name: "self.metadata.labels.value",
	}
	if set.Order.Purge != nil {
		annotations[v1alpha1.AnnotationPurgeOrder] = fmt.Sprint(*set.Order.Purge)
	}
	object := r.bare(w.Key, w.Value)
	prefixed := map[string]string{}
	for name, value := range annotations {
		prefixed[reconcilerName+"/"+name] = value
	}
	object.SetAnnotations(prefixed)
	return object
}

func (r *realCluster) bare(key plan.Key, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": key.Kind}}
	object.SetNamespace(r.namespace)
	object.SetName(key.Name)
	object.SetLabels(map[string]string{"value": value})
	return object
}

func (r *realCluster) reconcile(version int, deleting bool) []string {
	owner := reconciler.Owner{Group: "example.com", Kind: "Shop", Namespace: r.namespace, Name: "a", UID: "1"}
	record := func(_ context.Context, inventory v1alpha1.Inventory) error {
		r.inventory = inventory
		return nil
	}
	r.gate.Aim(0, false, nil)
	var outcome reconciler.Outcome
	switch {
	case r.gone:
		return []string{"done"}
	case deleting:
		// Errors are about single objects, and what is waited for names them.
		outcome, _ = r.engine.Delete(r.t.Context(), reconciler.DeleteRequest{Owner: owner, Inventory: r.inventory, Record: record})
		r.gone = outcome.Done()
	default:
		var objects []client.Object
		for _, w := range r.config.Components[0][version] {
			objects = append(objects, r.manifest(w))
		}
		outcome, _ = r.engine.Apply(r.t.Context(), reconciler.ApplyRequest{
			Owner: owner, Namespace: r.namespace, Objects: objects, Inventory: r.inventory, Record: record,
		})
	}
	r.inventory, r.outputs = outcome.Inventory, outcome.Outputs
	var did []string
	for verb, n := range outcome.Steps {
		for range n {
			did = append(did, verb)
		}
	}
	var waits []plan.Wait
	for _, wait := range outcome.Waiting {
		waits = append(waits, plan.Wait{Key: plan.Key(wait.Key), Reason: wait.Reason, Message: wait.Message, Until: wait.Until})
	}
	return described(did, waits)
}

func (r *realCluster) patch(key plan.Key, metadata map[string]any) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	check.NoError(r.t, err)
	check.NoError(r.t, r.Patch(r.t.Context(), r.bare(key, ""), client.RawPatch(types.MergePatchType, body), client.FieldOwner("other-client")))
}

// ownership returns the label and annotation of an owner; nil removes them.
func ownership(id, ref any) map[string]any {
	return map[string]any{
		"labels":      map[string]any{reconcilerName + "/" + vocabulary.LabelOwnerID: id},
		"annotations": map[string]any{reconcilerName + "/" + vocabulary.AnnotationOwner: ref},
	}
}

const helmAnnotation = "meta.helm.sh/release-name"

func (r *realCluster) act(act Act) {
	r.t.Helper()
	ctx, theirs := r.t.Context(), client.FieldOwner("other-client")
	switch act.Kind {
	case ActDelete, ActDeleteAnew:
		check.NoError(r.t, r.Delete(ctx, r.bare(act.Key, "")))
	case ActDrift:
		r.patch(act.Key, map[string]any{"labels": map[string]any{"value": drifted}})
	case ActAdd:
		r.patch(act.Key, map[string]any{"labels": map[string]any{"extra": "true"}})
	case ActStrip:
		r.patch(act.Key, ownership(nil, nil))
	case ActSteal:
		r.patch(act.Key, ownership(otherOwner.ID, otherOwner.Ref.String()))
	case ActHelm:
		r.patch(act.Key, map[string]any{"annotations": map[string]any{helmAnnotation: "theirs"}})
	case ActHold:
		r.patch(act.Key, map[string]any{"finalizers": []string{otherFinalizer}})
	case ActUnhold:
		r.patch(act.Key, map[string]any{"finalizers": nil})
	}
	switch act.Kind {
	case ActCreate, ActDeleteAnew, ActCreateOwned:
		check.NoError(r.t, r.Create(ctx, r.bare(act.Key, "theirs"), theirs))
	}
	if act.Kind == ActCreateOwned {
		r.patch(act.Key, ownership(otherOwner.ID, otherOwner.Ref.String()))
	}
}

// published are the outputs that the last reconcile has found, in the form of fresh.
func (r *realCluster) published() (lines []string) {
	for _, output := range r.outputs {
		if output.Found {
			lines = append(lines, output.Name+": "+output.Value)
		}
	}
	slices.Sort(lines)
	return lines
}

// fresh are the outputs that the desired objects have now, if they are ours alone.
func (r *realCluster) fresh(version int) (lines []string) {
	r.t.Helper()
	for _, w := range r.config.Components[0][version] {
		o := r.bare(w.Key, "")
		err := r.Get(r.t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			continue
		}
		check.NoError(r.t, err)
		owner := o.GetAnnotations()[reconcilerName+"/"+vocabulary.AnnotationOwner]
		if strings.Contains(owner, "/"+r.namespace+"/a/") && o.GetAnnotations()[helmAnnotation] == "" {
			lines = append(lines, w.Key.Kind+"-"+w.Key.Name+": "+o.GetLabels()["value"])
		}
	}
	slices.Sort(lines)
	return lines
}

func (r *realCluster) look() []string {
	r.t.Helper()
	var lines []string
	uids := map[plan.Key]string{}
	for _, key := range []plan.Key{configA, configB, {Kind: "Secret", Namespace: "shop", Name: "s"}} {
		o := r.bare(key, "")
		err := r.Get(r.t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			continue
		}
		check.NoError(r.t, err)
		uids[plan.Key{Kind: key.Kind, Namespace: r.namespace, Name: key.Name}] = string(o.GetUID())
		owner := "us"
		switch o.GetLabels()[reconcilerName+"/"+vocabulary.LabelOwnerID] {
		case "":
			owner = "none"
		case otherOwner.ID:
			owner = "another owner"
		}
		lines = append(lines, line(key, o.GetLabels()["value"], owner, o.GetLabels()["extra"] != "", o.GetAnnotations()[helmAnnotation] != "",
			o.GetDeletionTimestamp() != nil, len(o.GetFinalizers()) > 0))
	}
	if !r.gone {
		lines = append(lines, records(r.inventory.Items, func(key plan.Key) string { return uids[key] })...)
	}
	return lines
}
