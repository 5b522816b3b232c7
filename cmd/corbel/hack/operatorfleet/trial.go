// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/test/env"
)

// trial is the takeover of one operator.
type trial struct {
	*fleet
	result
	folder, work string // of the operator; of the project and the logs
	env          *env.Environment
	client       client.Client
	watched      []schema.GroupVersionKind
	crs          []object
	known        map[string]bool // objects that are not of the components
	before       state
	user         string // of the project
	position     int64  // in the audit log, where the project starts
}

const (
	// patience is how long a component may take to become Deployed, Ready, or gone.
	patience = 2 * time.Minute
	// calm is how long a state lasts until it is read.
	calm = 10 * time.Second
)

// run makes the project, lets the Helm operator deploy components, and the project take over and delete them.
func (t *trial) run(ctx context.Context) (err error) {
	if err := os.MkdirAll(t.work, 0o755); err != nil {
		return err
	}
	project := filepath.Dir(t.program())
	if _, err := os.Stat(t.program()); err != nil {
		if err := errors.Join(os.RemoveAll(project), t.command(ctx, "init", "", t.corbel, "init", project, "--from-operator", t.folder)); err != nil {
			return err
		}
		if err := t.command(ctx, "build", project, "go", "build", "-o", t.program(), "."); err != nil {
			return err
		}
	}
	if t.env, err = env.Start(ctx, env.Options{Cluster: true, AuditLog: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.env.Stop()) }()
	if t.client, err = client.New(t.env.Config(), client.Options{}); err != nil {
		return err
	}
	stopOld, err := t.startOld(ctx)
	if err != nil {
		return err
	}
	defer stopOld()
	if err := t.deploy(ctx); err != nil {
		return err
	}
	if !t.both {
		stopOld() // it upgrades releases with random values again and again
	}
	if err := t.remember(ctx); err != nil {
		return err
	}
	if err := t.install(ctx, os.DirFS(filepath.Join(project, "deploy"))); err != nil {
		return err
	}
	stopNew, err := t.start("new", project, t.program(), filepath.Join(t.work, "kubeconfig"), "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if err != nil {
		return err
	}
	defer stopNew()
	if t.both {
		t.each(ctx, t.namesOld)
		t.problem(t.compare(ctx))
		if t.numbers[writes] > 0 {
			t.problem(fmt.Errorf("%d writes while the Helm operator runs", t.numbers[writes]))
		}
		stopOld()
	}
	t.numbers[ready] = t.each(ctx, func(cr object) error { return t.condition(ctx, cr, "Ready") })
	time.Sleep(calm)
	t.problem(t.compare(ctx))
	t.each(ctx, func(cr object) error { return t.deleted(ctx, cr) })
	return t.checkLeft(ctx)
}

// program is the compiled project. Its folder has the name of the operator.
func (t *trial) program() string { return filepath.Join(t.work, t.name, "operator.bin") }

// each waits until a function returns no error for each component, and returns for how many it does.
func (t *trial) each(ctx context.Context, check func(object) error) (done int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, cr := range t.crs {
		if err := await(ctx, func() error { return check(cr) }); err != nil {
			t.problem(err)
			continue
		}
		done++
	}
	return done
}

// await waits until a function returns no error.
func await(ctx context.Context, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return env.Await(ctx, check)
}

// command runs a program, and keeps its output in a file.
func (t *trial) command(ctx context.Context, log, folder, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	output, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, output[max(0, len(output)-300):])
	}
	return errors.Join(err, os.WriteFile(filepath.Join(t.work, log+".log"), output, 0o644))
}

// start runs a program until the function is called.
func (t *trial) start(name, folder, program, kubeconfig string, args ...string) (stop func(), err error) {
	log, err := os.Create(filepath.Join(t.work, name+".log"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Stdout, c.Stderr = folder, log, log
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+t.namespace())
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 30*time.Second
	stop = func() {
		cancel()
		_ = c.Wait()
		log.Close()
	}
	if err := c.Start(); err != nil {
		stop()
		return nil, err
	}
	t.env.Adopt(c)
	return stop, nil
}

// namespace is the namespace of the project.
func (t *trial) namespace() string {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(t.user, accounts), ":")
	return namespace
}

const accounts = "system:serviceaccount:"

// startOld installs the definitions of the operator, and runs it.
func (t *trial) startOld(ctx context.Context) (stop func(), err error) {
	text, err := os.ReadFile(filepath.Join(t.folder, "watches.yaml"))
	if err != nil {
		return nil, err
	}
	watches := filepath.Join(t.work, "watches.yaml")
	definitions, err := readFiles(t.folder, "config/crd/bases/*.yaml")
	err = errors.Join(err, os.WriteFile(watches, bytes.ReplaceAll(text, []byte("/opt/helm/"), nil), 0o644), yaml.Unmarshal(text, &t.watched))
	for _, o := range definitions {
		err = errors.Join(err, t.client.Create(ctx, o))
	}
	if err != nil {
		return nil, err
	}
	t.numbers[kinds] = len(t.watched)
	for _, gvk := range t.watched {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := await(ctx, func() error { return t.client.List(ctx, list) }); err != nil {
			return nil, err
		}
	}
	return t.start("old", t.folder, t.old, t.env.Kubeconfig(), "run", "--watches-file="+watches, "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--leader-elect", "--leader-election-id="+t.name, "--leader-election-namespace=default")
}

// deploy creates components, and waits until the Helm operator has deployed them. A chart that cannot be installed again has fewer components.
func (t *trial) deploy(ctx context.Context) error {
	samples, err := readFiles(t.folder, "config/samples/*.yaml")
	prerequisites, prerequisiteErr := readFiles(t.folder, "prerequisites/*.yaml")
	if err = errors.Join(err, prerequisiteErr); err != nil {
		return err
	}
	for n := range t.count {
		namespace := "fleet-" + string(rune('a'+n))
		err = errors.Join(err, t.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		for _, o := range prerequisites {
			o = o.DeepCopy()
			o.SetNamespace(namespace)
			err = errors.Join(err, client.IgnoreAlreadyExists(t.client.Create(ctx, o)))
		}
	}
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // until each namespace has its service account
	if t.known, err = t.everything(ctx); err != nil {
		return err
	}
	for n := range t.count {
		for k, gvk := range t.watched {
			cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			if sample := slices.IndexFunc(samples, func(o object) bool { return o.GroupVersionKind() == gvk }); sample >= 0 {
				cr = samples[sample].DeepCopy()
			}
			name := string(rune('a' + n))
			cr.SetGroupVersionKind(gvk)
			cr.SetNamespace("fleet-" + name)
			cr.SetName(name + strings.Repeat("x", k)) // releases of a namespace have different names
			if err := await(ctx, func() error { return client.IgnoreAlreadyExists(t.client.Create(ctx, cr.DeepCopy())) }); err != nil {
				return err
			}
			if err := await(ctx, func() error { return t.condition(ctx, cr, "Deployed") }); err == nil {
				t.crs = append(t.crs, cr)
			} else if t.problem(err); n == 0 {
				return err
			} else if err := await(ctx, func() error { return t.deleted(ctx, cr) }); err != nil {
				return err
			}
		}
	}
	t.numbers[components] = len(t.crs)
	return nil
}

// condition returns an error unless a condition of a component is True.
func (t *trial) condition(ctx context.Context, cr object, name string) error {
	if err := t.client.Get(ctx, client.ObjectKeyFromObject(cr), cr); err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == name && c["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s %s is not %s: %v", cr.GetKind(), cr.GetName(), name, conditions)
}

// namesOld returns an error unless an event of a component names the Helm operator that runs.
func (t *trial) namesOld(cr object) error {
	events := &corev1.EventList{}
	err := t.client.List(context.Background(), events, client.InNamespace(cr.GetNamespace()))
	for _, e := range events.Items {
		if e.InvolvedObject.UID == cr.GetUID() && strings.Contains(e.Message, "Helm operator") {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("no event of %s %s names the Helm operator that runs", cr.GetKind(), cr.GetName()))
}

// deleted deletes a component, and returns an error until it is gone.
func (t *trial) deleted(ctx context.Context, cr object) error {
	err := t.client.Delete(ctx, cr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, t.condition(ctx, cr, "gone"))
}

// install applies the chart of the project, lets the project plan, and writes a kubeconfig with the rights of its service account.
func (t *trial) install(ctx context.Context, chart fs.FS) error {
	version, err := deploy.VersionOf(t.env.Config())
	if err != nil {
		return err
	}
	operator, err := deploy.Render(ctx, chart, version)
	if err != nil {
		return err
	}
	if err := operator.Apply(ctx, t.client); err != nil {
		return err
	}
	for _, o := range operator.Objects {
		t.known[" "+o.GetKind()+" "+o.GetName()] = true
	}
	for _, gvk := range t.watched {
		plan := []string{"plan", "--all", "--kubeconfig", t.env.Kubeconfig()}
		if len(t.watched) > 1 {
			plan = append([]string{strings.ToLower(gvk.Kind)}, plan...)
		}
		t.problem(t.command(ctx, "plan-"+gvk.Kind, "", t.program(), plan...))
	}
	config, err := clientcmd.LoadFromFile(t.env.Kubeconfig())
	if err != nil {
		return err
	}
	t.user = accounts + operator.Namespace + ":" + operator.Account
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = t.user, []string{"system:serviceaccounts", "system:serviceaccounts:" + operator.Namespace, "system:authenticated"}
	}
	t.position, err = t.env.AuditPosition(ctx)
	return errors.Join(err, clientcmd.WriteToFile(*config, filepath.Join(t.work, "kubeconfig")))
}
