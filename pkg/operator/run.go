// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
)

// settings are the flags of run.
type settings struct {
	metrics, probes string
	leaderElect     bool
	namespaces      []string
	selector        string
	log             zap.Options
}

const watchUsage = "the namespaces of the components; by default all, or the own one of an operator that has rights in no other"

// runCommand returns the command that runs the operator.
func (o Options[T]) runCommand() *cobra.Command {
	var s settings
	command := &cobra.Command{
		Short: "Run the operator", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.log)))
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			return o.run(c.Context(), config, s)
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.metrics, "metrics-bind-address", ":8080", "the address of the metrics; 0 serves none")
	flags.StringVar(&s.probes, "health-probe-bind-address", ":8081", "the address of /healthz and /readyz; 0 serves none")
	flags.BoolVar(&s.leaderElect, "leader-elect", false, "elect one of several replicas")
	flags.StringSliceVar(&s.namespaces, "watch-namespace", nil, watchUsage)
	flags.StringVar(&s.selector, "selector", "", "the labels of the components, such as 'shard in (a,b)'; by default all. Operators that share a fleet elect a leader for each selector")
	native := flag.NewFlagSet("", flag.ContinueOnError)
	s.log.BindFlags(native)
	flags.AddGoFlagSet(native)
	flags.AddGoFlag(flag.Lookup("kubeconfig"))
	return command
}

// namespace returns the namespace of the operator.
func (o Options[T]) namespace() (string, error) {
	if own := o.Reconciler.Operator.OperatorNamespace; own != nil {
		return *own, nil
	}
	return component.OperatorNamespace()
}

// watched returns the namespaces of the components, of which there is one for an operator with rights in
// its own namespace only.
func (o Options[T]) watched(flag []string) ([]string, error) {
	if !o.Reconciler.Operator.Namespaced {
		return flag, nil
	}
	own, err := o.namespace()
	if err != nil {
		return nil, err
	}
	if len(flag) > 0 && !slices.Equal(flag, []string{own}) {
		return nil, fmt.Errorf("--watch-namespace=%s: this operator has rights in its own namespace %s only", strings.Join(flag, ","), own)
	}
	return []string{own}, nil
}

// selected returns the options of an operator for the components that a selector selects, and the name of its lease.
func (o Options[T]) selected(selector string) (selected Options[T], lease string, err error) {
	if selector == "" {
		return o, o.Name, nil
	}
	if o.Reconciler.Controller.LabelSelector != nil {
		return o, "", fmt.Errorf("--selector=%s: this operator selects its components by itself", selector)
	}
	if o.Reconciler.Controller.LabelSelector, err = metav1.ParseToLabelSelector(selector); err != nil {
		return o, "", fmt.Errorf("--selector=%s: %w; write key=value, key in (value), key notin (value), key or !key", selector, err)
	}
	sum := sha256.Sum256([]byte(metav1.FormatLabelSelector(o.Reconciler.Controller.LabelSelector)))
	return o, fmt.Sprintf("%s-%x", o.Name, sum[:4]), nil
}

// managerOptions are the options of a manager whose client reads Secrets and ConfigMaps without a
// cache. With a cache, a hook that reads one Secret would make the operator watch all Secrets of
// the cluster, keep them in memory, and need the rights for that.
func managerOptions(scheme *runtime.Scheme) ctrl.Options {
	return ctrl.Options{Scheme: scheme, Client: client.Options{
		Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}},
	}}
}

// run runs the operator until the context ends.
func (o Options[T]) run(ctx context.Context, config *rest.Config, s settings) error {
	o, lease, err := o.selected(s.selector)
	if err != nil {
		return err
	}
	scheme, err := o.Scheme()
	if err != nil {
		return err
	}
	options := managerOptions(scheme)
	options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: s.metrics}, s.probes
	if s.namespaces, err = o.watched(s.namespaces); err != nil {
		return err
	}
	if len(s.namespaces) > 0 {
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range s.namespaces {
			options.Cache.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	if s.leaderElect {
		namespace, err := o.namespace()
		if err != nil {
			return err
		}
		if o.Reconciler.Controller.LeaderLock, err = component.NewLeaderLock(config, namespace, lease); err != nil {
			return err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, o.Reconciler.Controller.LeaderLock
		options.LeaderElectionReleaseOnCancel = true // the process ends when the manager does
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if _, err := o.SetUp(manager); err != nil {
		return err
	}
	for _, add := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return fmt.Errorf("add a probe: %w", err)
		}
	}
	return manager.Start(ctx)
}
