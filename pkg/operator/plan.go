// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/pkg/component"
)

// planFlags are the flags of plan.
type planFlags struct {
	kubeconfig, context  string
	namespace, operators string
	file, output         string
	all, delete          bool
	exitCode             bool
}

// exitError ends the process with a code and no message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// planCommand returns the command that prints plans.
func (o Options[T]) planCommand() *cobra.Command {
	var f planFlags
	command := &cobra.Command{
		Use: "plan NAME | -f FILE | --all", Short: "Print what this version of the operator would do for components, with the rights of the user; nothing is written",
		Long: `Print what this version of the operator would do for components until they are ready, with the rights of the user.
Nothing is written: the server is asked by dry runs.

With --exit-code the exit code is 0 if nothing changes, 1 after an error, 2 if objects are created or changed,
3 if objects are deleted or recreated or pods restart, and 4 if a change is refused or blocked.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			config, namespace, err := f.config()
			if err != nil {
				return err
			}
			rows, err := o.plan(c.Context(), config, namespace, f, args, c.InOrStdin())
			if err != nil {
				return err
			}
			return f.print(rows, c.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.file, "filename", "f", "", "a file with the component as YAML or JSON; - is the standard input")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "the namespace of the component; by default that of the context, and with --all all namespaces")
	flags.BoolVar(&f.all, "all", false, "plan all components, as an upgrade to this version of the operator would change them")
	flags.BoolVar(&f.delete, "delete", false, "plan the deletion of the component")
	flags.BoolVar(&f.exitCode, "exit-code", false, "let the exit code say what the plan has")
	flags.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig; by default that of kubectl")
	flags.StringVar(&f.context, "context", "", "the context of the kubeconfig")
	flags.StringVar(&f.operators, "operator-namespace", "", "the namespace of the operator; by default what the status of a component says")
	return command
}

// config returns how the cluster is reached, and the namespace of the components.
func (f planFlags) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}

// print prints the plans, and returns the exit code as an error if it was asked for.
func (f planFlags) print(rows []planview.Row, out io.Writer) error {
	var text, kind string
	var err error
	if len(rows) > 0 {
		kind = rows[0].View.Plan.Kind
	}
	if f.all {
		text, err = planview.FormatAll(f.output, kind, rows)
	} else {
		text, err = rows[0].View.Format(f.output)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	code, failed := planview.ExitNothing, false
	for _, row := range rows {
		code, failed = max(code, row.Code()), failed || row.Err != nil
	}
	switch {
	case failed:
		return exitError(planview.ExitError)
	case f.exitCode && code != planview.ExitNothing:
		return exitError(code)
	}
	return nil
}

// plan makes the plans that are asked for. Of one component, an error is returned.
func (o Options[T]) plan(ctx context.Context, config *rest.Config, namespace string, f planFlags, args []string, in io.Reader) ([]planview.Row, error) {
	asked := 0
	for _, one := range []bool{len(args) > 0, f.file != "", f.all} {
		if one {
			asked++
		}
	}
	if asked != 1 {
		return nil, errors.New("name a component, or a file with --filename, or all components with --all")
	}
	if f.all && f.delete {
		return nil, errors.New("--delete plans the deletion of one component, not of all")
	}
	if !slices.Contains([]string{"text", "json", "yaml"}, f.output) {
		return nil, fmt.Errorf("--output %q is none of text, json and yaml", f.output)
	}
	scheme, err := o.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	request := component.PlanRequest[T]{Delete: f.delete}
	if f.file != "" {
		objects, err := readComponents([]string{f.file}, in)
		if err != nil {
			return nil, err
		}
		if len(objects) != 1 {
			return nil, fmt.Errorf("%s has %d objects; one component is planned at a time", f.file, len(objects))
		}
		request.Manifest = objects[0]
		namespaced, err := c.IsObjectNamespaced(request.Manifest)
		if err != nil {
			return nil, err
		}
		if request.Key = client.ObjectKeyFromObject(request.Manifest); request.Key.Namespace == "" && namespaced {
			request.Key.Namespace = namespace
		}
	} else if !f.all {
		request.Key = client.ObjectKey{Namespace: namespace, Name: args[0]}
		namespaced, err := c.IsObjectNamespaced(o.newComponent())
		if err != nil {
			return nil, err
		}
		if !namespaced {
			request.Key.Namespace = ""
		}
	}
	if f.all {
		request.Key.Namespace = f.namespace
	}
	stored, err := o.stored(ctx, c, request.Key, f.all)
	if err != nil {
		return nil, err
	}
	reconciler, err := o.planner(config, f, stored)
	if err != nil {
		return nil, err
	}
	view := func(key client.ObjectKey, p component.Plan) planview.View {
		v := planview.View{Plan: p, Operator: strings.TrimSpace(o.Name + " " + version()), Delete: f.delete}
		if status, ok := stored[key]; ok {
			v.Current = status.Revision
			if status.State == v1alpha1.StateSuspended {
				_, _, v.Note = status.GetState()
			}
		}
		return v
	}
	if f.all {
		var rows []planview.Row
		err := reconciler.PlanAll(ctx, nil, 0, func(key client.ObjectKey, p component.Plan, err error) {
			rows = append(rows, planview.Row{Component: strings.TrimPrefix(key.String(), "/"), View: view(key, p), Err: err})
		}, f.namespace)
		slices.SortFunc(rows, func(a, b planview.Row) int { return strings.Compare(a.Component, b.Component) })
		return rows, err
	}
	p, err := reconciler.Plan(ctx, request)
	if err != nil {
		return nil, err
	}
	return []planview.Row{{Component: request.Key.String(), View: view(request.Key, p)}}, nil
}

// stored returns the status of the component, or of all in its namespace.
func (o Options[T]) stored(ctx context.Context, c client.Client, key client.ObjectKey, all bool) (map[client.ObjectKey]*component.Status, error) {
	found := map[client.ObjectKey]*component.Status{}
	kind, err := o.kind(c.Scheme())
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	if all {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
			return nil, fmt.Errorf("list the components of kind %s: %w", kind.Kind, err)
		}
		objects = list.Items
	} else {
		object := unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := c.Get(ctx, key, &object); apierrors.IsNotFound(err) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind.Kind, key, err)
		}
		objects = append(objects, object)
	}
	for i := range objects {
		status, err := statusOf(&objects[i])
		if err == nil { // otherwise the plan names the mistake
			found[client.ObjectKeyFromObject(&objects[i])] = status
		}
	}
	return found, nil
}

// planner returns a reconciler that writes nothing, with the namespace of the operator that components name.
func (o Options[T]) planner(config *rest.Config, f planFlags, stored map[client.ObjectKey]*component.Status) (*component.Reconciler[T], error) {
	if f.operators != "" {
		o.Reconciler.Operator.OperatorNamespace = &f.operators
	}
	for _, status := range stored {
		if operator := status.Inventory.Operator; operator != nil && o.Reconciler.Operator.OperatorNamespace == nil {
			o.Reconciler.Operator.OperatorNamespace = &operator.Namespace
		}
	}
	newClient := o.Reconciler.Controller.NewClient
	if newClient == nil {
		newClient = client.New
	}
	o.Reconciler.Controller.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := newClient(config, options)
		if err != nil {
			return nil, err
		}
		return &dryClient{Client: client.NewDryRunClient(c), secrets: map[client.ObjectKey]*corev1.Secret{}}, nil
	}
	scheme, err := o.Scheme()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	return o.SetUp(manager) // a manager that is not started sends nothing
}

// dryClient writes nothing. It remembers the Secrets that it would create, so that an operator that was never
// installed has a key for its digests.
type dryClient struct {
	client.Client
	mu      sync.Mutex
	secrets map[client.ObjectKey]*corev1.Secret
}

// Create sends a dry run.
func (c *dryClient) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return c.Client.Create(ctx, obj, options...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets[client.ObjectKeyFromObject(obj)] = secret.DeepCopy()
	return nil
}

// Get reads from the server.
func (c *dryClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, options...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if secret, ok := obj.(*corev1.Secret); ok && apierrors.IsNotFound(err) && c.secrets[key] != nil {
		c.secrets[key].DeepCopyInto(secret)
		return nil
	}
	return err
}

// statusOf reads the status of a component.
func statusOf(object *unstructured.Unstructured) (*component.Status, error) {
	content, _, _ := unstructured.NestedMap(object.Object, "status")
	status := &component.Status{}
	return status, runtime.DefaultUnstructuredConverter.FromUnstructured(content, status)
}
