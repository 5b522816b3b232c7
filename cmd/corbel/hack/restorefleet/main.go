// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Restorefleet installs a component of each Helm chart in a folder, backs all objects up as Velero does, restores them in sixteen ways, and
// prints what an operator then does that it must not do: it changes a Secret, replaces a pod, deletes an object, or runs a hook of the
// installation again. The ways are a restore into the same cluster or an empty one, of components after or before their objects, with or
// without their status, and with or without the digest keys.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/env"
)

const (
	userAgent         = "restored-operator" // of the operators, in the audit log
	operatorNamespace = "restored-system"   // of the digest keys
	patience          = 4 * time.Minute     // until components are Ready
)

func main() {
	charts := flag.String("charts", "", "a folder with the folders of the charts")
	only := flag.String("ways", "", "a regular expression for the names of the ways that are played; by default all are")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := run(context.Background(), *charts, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// way is a way to restore a backup.
type way struct{ empty, componentsFirst, withoutStatus, withoutKey bool }

func (w way) String() string {
	names := []string{"same cluster", "objects first", "status", "key"}
	for i, other := range map[int]string{0: "empty cluster", 1: "components first", 2: "no status", 3: "no key"} {
		if []bool{w.empty, w.componentsFirst, w.withoutStatus, w.withoutKey}[i] {
			names[i] = other
		}
	}
	return strings.Join(names, ", ")
}

// cluster is a control plane with a namespace for each chart of the folder.
type cluster struct {
	env    *env.Environment
	client client.Client
	folder string
	charts []string
}

func run(ctx context.Context, folder, only string) error {
	ways, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-ways: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("there are no charts in %q: name a folder of charts by -charts", folder))
	}
	var charts []string
	for _, file := range files {
		charts = append(charts, filepath.Base(filepath.Dir(file)))
	}
	source, err := open(ctx, folder, charts)
	if err != nil {
		return err
	}
	defer func() { _ = source.env.Stop() }()
	for _, name := range charts {
		w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, Labels: map[string]string{"chart": name}}}
		if err := source.client.Create(ctx, w); err != nil {
			return err
		}
	}
	unready, err := source.operate(ctx)
	if err != nil {
		return err
	}
	for name, message := range unready {
		fmt.Printf("%-12s is not played, because it is not Ready: %s\n", name, message)
	}
	source.charts = slices.DeleteFunc(charts, func(name string) bool { return unready[name] != "" })
	saved, err := source.objects(ctx)
	bad, all := 0, 0
	for n := 0; n < 1<<4 && err == nil; n++ {
		w := way{n&8 != 0, n&4 != 0, n&2 != 0, n&1 != 0}
		if !ways.MatchString(w.String()) {
			continue
		}
		var results map[string][]string
		results, err = source.play(ctx, w, saved)
		for _, name := range source.charts {
			all++
			if outcome := strings.Join(results[name], "; "); outcome != "" {
				bad++
				fmt.Printf("%-12s %-50s %s\n", name, w, outcome)
			} else {
				fmt.Printf("%-12s %-50s ok\n", name, w)
			}
		}
	}
	fmt.Printf("%d of %d restores are not as they should be\n", bad, all)
	return err
}

// open starts a control plane.
func open(ctx context.Context, folder string, charts []string) (*cluster, error) {
	e, err := env.Start(ctx, env.Options{Cluster: true, AuditLog: true, StartTimeout: 3 * patience})
	if err != nil {
		return nil, err
	}
	c := &cluster{env: e, folder: folder, charts: charts}
	if c.client, err = client.New(e.Config(), client.Options{}); err == nil {
		_, err = envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"pkg/component/testdata/crds"}})
		err = errors.Join(err, widget.AddToScheme(c.client.Scheme()), c.makeNamespaces(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return c, nil
}

func (c *cluster) makeNamespaces(ctx context.Context) error {
	for _, name := range append([]string{operatorNamespace}, c.charts...) {
		if err := c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}

// operate runs an operator of each chart until all components are Ready, and returns the messages of those that are not.
func (c *cluster) operate(ctx context.Context) (unready map[string]string, err error) {
	configuration := c.env.Config()
	configuration.UserAgent = userAgent
	manager, err := ctrl.NewManager(configuration, ctrl.Options{
		Scheme: c.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	for _, name := range c.charts {
		generator, chartErr := helm.New(os.DirFS(c.folder), name, helm.Options{})
		if err = errors.Join(err, chartErr); err != nil {
			return nil, err
		}
		err = component.NewReconciler[*widget.Widget](name+".example.com", generator, component.ReconcilerOptions{
			Controller: component.ControllerOptions{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"chart": name}}},
			Operator:   component.OperatorOptions{OperatorNamespace: new(operatorNamespace)},
		}).SetupWithManager(manager)
	}
	if err != nil {
		return nil, err
	}
	since := time.Now().UTC().Format(time.RFC3339Nano)
	for _, name := range c.charts { // a status that was restored may say Ready before anything was done
		w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"%s.example.com/reconcile-at":"%s"}}}`, name, since)
		if err := c.client.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && (unready == nil || len(unready) > 0); time.Sleep(time.Second) {
		unready = map[string]string{}
		for _, name := range c.charts {
			w := &widget.Widget{}
			err := c.client.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, w)
			if state, reason, message := w.Status.GetState(); err != nil || !w.Status.IsReady() || w.Status.LastHandledReconcileAt != since {
				unready[name] = fmt.Sprintf("%s, %s: %s", state, reason, message)
			}
		}
	}
	time.Sleep(5 * time.Second) // for what follows from the last writes
	cancel()
	return unready, <-ended
}

// derived are the resources that other objects bring, or that are no part of a backup. The others are restored in the order of first.
var (
	derived = []string{"events", "endpoints", "endpointslices", "leases", "controllerrevisions"}
	first   = []string{"customresourcedefinitions", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims", "pods", "replicasets"}
)

// objects returns the objects in the namespaces, and those without a namespace that belong to a component, in the order of a restore.
func (c *cluster) objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.env.Config())
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	ranked := make([][]*unstructured.Unstructured, len(first)+1)
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion) // the server's own
		for _, resource := range list.APIResources {
			if slices.Contains(derived, resource.Name) || !slices.Contains(resource.Verbs, "create") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			found := &unstructured.UnstructuredList{}
			found.SetGroupVersionKind(gv.WithKind(resource.Kind + "List"))
			err = errors.Join(err, c.client.List(ctx, found))
			rank := (slices.Index(first, resource.Name) + len(ranked)) % len(ranked) // the last one, if it is not found
			for _, object := range found.Items {
				owned := slices.ContainsFunc(slices.Collect(maps.Keys(object.GetLabels())), func(key string) bool { return strings.Contains(key, ".example.com/") })
				if namespace := object.GetNamespace(); namespace == operatorNamespace || slices.Contains(c.charts, namespace) || namespace == "" && owned {
					ranked[rank] = append(ranked[rank], &object)
				}
			}
		}
	}
	return slices.Concat(ranked...), err
}

// restore creates the objects of a backup, but those that did their work.
func (c *cluster) restore(ctx context.Context, saved []*unstructured.Unstructured, w way) error {
	isComponent := func(u *unstructured.Unstructured) bool { return u.GetKind() == "Widget" }
	isOther := func(u *unstructured.Unstructured) bool { return !isComponent(u) }
	parts := [][]*unstructured.Unstructured{slices.DeleteFunc(slices.Clone(saved), isComponent), slices.DeleteFunc(slices.Clone(saved), isOther)}
	if w.componentsFirst {
		slices.Reverse(parts)
	}
	for _, object := range slices.Concat(parts...) {
		u := object.DeepCopy()
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		_, completed, _ := unstructured.NestedString(u.Object, "status", "completionTime")
		if u.GetNamespace() == operatorNamespace && w.withoutKey || phase == "Succeeded" || completed {
			continue
		}
		u.Object["metadata"] = map[string]any{}
		u.SetNamespace(object.GetNamespace())
		u.SetName(object.GetName())
		u.SetLabels(object.GetLabels())
		u.SetFinalizers(object.GetFinalizers())
		annotations := object.GetAnnotations()
		delete(annotations, "pv.kubernetes.io/bind-completed")
		u.SetAnnotations(annotations)
		spec, _ := u.Object["spec"].(map[string]any)
		maps.DeleteFunc(spec, func(field string, _ any) bool {
			return spec["clusterIP"] != "None" && slices.Contains([]string{"clusterIP", "clusterIPs", "volumeName", "nodeName"}, field)
		})
		err := c.client.Create(ctx, u)
		if err == nil && isComponent(u) && !w.withoutStatus {
			u.Object["status"] = object.Object["status"]
			err = c.client.Status().Update(ctx, u)
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("restore %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// await waits for longer than a test does, because there are many objects.
func await(ctx context.Context, check func() error) error {
	if env.Await(ctx, check) == nil {
		return nil
	}
	return env.Await(ctx, check)
}

// lose deletes the namespaces of the charts and the digest keys. No operator runs.
func (c *cluster) lose(ctx context.Context) error {
	live, err := c.objects(ctx)
	for _, object := range live {
		if strings.Contains(strings.Join(object.GetFinalizers(), " "), ".example.com") {
			err = errors.Join(err, c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		}
	}
	for _, name := range append([]string{operatorNamespace}, c.charts...) {
		err = errors.Join(err, client.IgnoreNotFound(c.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	return errors.Join(err, await(ctx, func() error {
		for _, name := range append([]string{operatorNamespace}, c.charts...) {
			n := &corev1.Namespace{}
			if err := c.client.Get(ctx, client.ObjectKey{Name: name}, n); !apierrors.IsNotFound(err) {
				return errors.Join(err, fmt.Errorf("namespace %s is still there: %v", name, n.Status.Conditions))
			}
		}
		return c.makeNamespaces(ctx)
	}))
}

// play restores a backup in one way, lets the operators take over, and returns what is wrong, by chart.
func (c *cluster) play(ctx context.Context, w way, saved []*unstructured.Unstructured) (results map[string][]string, err error) {
	if w.empty {
		if c, err = open(ctx, c.folder, c.charts); err != nil {
			return nil, err
		}
		defer func() { _ = c.env.Stop() }()
	} else if err := c.lose(ctx); err != nil {
		return nil, err
	}
	if err := c.restore(ctx, saved, w); err != nil {
		return nil, err
	}
	var before []*unstructured.Unstructured
	settled := await(ctx, func() error {
		before, err = c.objects(ctx)
		if want, got := running(saved), running(before); err == nil && !maps.Equal(want, got) {
			return fmt.Errorf("pods run before the operators start: %v; want %v", got, want)
		}
		return err
	})
	position, err := c.env.AuditPosition(ctx)
	if err = errors.Join(settled, err); err != nil {
		return nil, err
	}
	unready, err := c.operate(ctx)
	if err != nil {
		return nil, err
	}
	after, err := c.objects(ctx)
	results = compare(saved, before, after)
	for name, message := range unready {
		results[name] = append(results[name], "not Ready: "+message)
	}
	events, auditErr := c.env.AuditEventsSince(ctx, position, userAgent)
	for _, e := range events {
		deletes := e.Verb == "delete" && !isRecord(e.Name)
		if runs := e.Verb == "create" && e.Resource == "jobs"; (runs || deletes) && e.Code < 300 && !strings.Contains(e.URI, "dryRun") && e.UserAgent == userAgent {
			results[e.Namespace] = append(results[e.Namespace], e.Verb+" "+e.Resource+" "+e.Name)
		}
	}
	return results, errors.Join(err, auditErr)
}

// running counts the pods that run, by namespace.
func running(objects []*unstructured.Unstructured) map[string]int {
	count := map[string]int{}
	for _, object := range objects {
		if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); object.GetKind() == "Pod" && phase == "Running" && object.GetDeletionTimestamp() == nil {
			count[object.GetNamespace()]++
		}
	}
	return count
}

// isRecord reports whether a Secret has the record of an operator.
func isRecord(name string) bool {
	return strings.Contains(name, "-revisions-") || strings.Contains(name, "-inventory-") || strings.HasSuffix(name, "-digest-key")
}

// compare returns the Secrets with other values than in the backup, and the objects that are not there any more since the restore.
func compare(saved, before, after []*unstructured.Unstructured) map[string][]string {
	results, now := map[string][]string{}, map[string]*unstructured.Unstructured{}
	key := func(u *unstructured.Unstructured) string {
		return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	}
	for _, object := range after {
		now[key(object)] = object
	}
	for _, object := range before {
		if live := now[key(object)]; (live == nil || live.GetUID() != object.GetUID()) && !isRecord(object.GetName()) {
			results[object.GetNamespace()] = append(results[object.GetNamespace()], "replaced or deleted: "+key(object))
		}
	}
	for _, object := range saved {
		if live := now[key(object)]; live != nil && object.GetKind() == "Secret" && !isRecord(object.GetName()) && !reflect.DeepEqual(object.Object["data"], live.Object["data"]) {
			results[object.GetNamespace()] = append(results[object.GetNamespace()], "other values: "+key(object))
		}
	}
	return results
}
