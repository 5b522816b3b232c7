// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// Operator holds the objects of the chart of an operator, without workloads and hooks.
type Operator struct {
	// Namespace is the namespace of the release.
	Namespace string
	// Account is the name of the service account.
	Account string
	// Objects are in the order of their installation.
	Objects []*unstructured.Unstructured
	// Args are the arguments of the first container of the first Deployment, which is the operator.
	Args []string
}

// name is the name of the reconciler for which the chart is rendered: it is the prefix of the
// annotations that mark hooks.
const name = "deploy.corbel.run"

// workloads are kinds with pods.
var workloads = []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"}

// Render renders the chart at the root of the files for a release in the namespace <chart>-system.
// The operator is its first Deployment; without a Deployment that has a service account, there is
// an error. The version of Kubernetes decides about rules of roles, too.
func Render(ctx context.Context, chart fs.FS, kubeVersion string) (Operator, error) {
	generator, err := helm.New(chart, ".", helm.Options{DisableLookup: true, KubeVersion: kubeVersion})
	if err != nil {
		return Operator{}, fmt.Errorf("the chart of the operator: %w", err)
	}
	namespace := renders.Source(generator).Chart + "-system"
	ctx = manifests.Context{ReconcilerName: name, Revision: 1}.In(ctx)
	rendered, err := manifests.Generate(ctx, generator, namespace, "operator", types.UnstructurableMap{})
	if err != nil {
		return Operator{}, fmt.Errorf("the chart of the operator: %w", err)
	}
	o := Operator{Namespace: namespace}
	for _, object := range rendered {
		plain, ok := object.(*unstructured.Unstructured)
		_, isHook := object.GetAnnotations()[name+"/run-on"]
		if ok && plain.GetKind() == "Deployment" && o.Account == "" {
			o.Account, o.Args = runsAs(plain)
		}
		if !ok || isHook || slices.Contains(workloads, plain.GetKind()) {
			continue
		}
		o.Objects = append(o.Objects, plain.DeepCopy())
	}
	if o.Account == "" {
		return Operator{}, errors.New("the chart of the operator has no Deployment with a service account")
	}
	return o, nil
}

// runsAs returns the service account of a Deployment, and the arguments of its first container.
func runsAs(deployment *unstructured.Unstructured) (account string, args []string) {
	account, _, _ = unstructured.NestedString(deployment.Object, "spec", "template", "spec", "serviceAccountName")
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(containers) > 0 {
		container, _ := containers[0].(map[string]any)
		args, _, _ = unstructured.NestedStringSlice(container, "args")
	}
	return account, args
}

// fieldOwner is the owner of the fields that Apply sets.
const fieldOwner = "corbel"

// Apply creates the namespace and applies the objects, and waits until the types are served that they define.
func (o Operator) Apply(ctx context.Context, c client.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	if err := c.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	for _, object := range o.Objects {
		object = object.DeepCopy()
		mapping, err := c.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace && object.GetNamespace() == "" {
			object.SetNamespace(o.Namespace)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range o.Objects {
		if object.GetKind() == "CustomResourceDefinition" {
			if err := awaitServed(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// servedWithin is how long a new type may take until it is served.
const servedWithin = 30 * time.Second

// awaitServed waits until the server lists the kind of a definition. It does so a moment after the definition is
// established.
func awaitServed(ctx context.Context, c client.Client, definition *unstructured.Unstructured) error {
	group, _, err := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, kindErr := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	if err := errors.Join(err, kindErr); err != nil {
		return fmt.Errorf("%s: %w", definition.GetName(), err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, servedWithin, true, func(context.Context) (bool, error) {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		if apimeta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for the type of %s to be served: %w", definition.GetName(), err)
	}
	return nil
}

// VersionOf returns the version of Kubernetes that a server has.
func VersionOf(config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the server for its version: %w", err)
	}
	return version.GitVersion, nil
}

// Rules returns the rules of the roles.
func (o Operator) Rules() ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, object := range o.Objects {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}
