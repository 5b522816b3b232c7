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
func (p program) runCommand() *cobra.Command {
	var s settings
	command := &cobra.Command{
		Short: "Run the operator", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.log)))
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			return p.run(c.Context(), config, s)
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
func (p program) namespace() (string, error) {
	for _, kind := range p.kinds {
		if own := kind.reconcilerOptions().Operator.OperatorNamespace; own != nil {
			return *own, nil
		}
	}
	return component.OperatorNamespace()
}

// watched returns the namespaces of the components, of which there is one for an operator with rights in
// its own namespace only.
func (p program) watched(flag []string) ([]string, error) {
	if !slices.ContainsFunc(p.kinds, func(kind Kind) bool { return kind.reconcilerOptions().Operator.Namespaced }) {
		return flag, nil
	}
	own, err := p.namespace()
	if err != nil {
		return nil, err
	}
	if len(flag) > 0 && !slices.Equal(flag, []string{own}) {
		return nil, fmt.Errorf("--watch-namespace=%s: this operator has rights in its own namespace %s only", strings.Join(flag, ","), own)
	}
	return []string{own}, nil
}

// selected returns the selector of the components, which is nil for all, and the name of the lease of an operator for them.
func (p program) selected(selector string) (*metav1.LabelSelector, string, error) {
	if selector == "" {
		return nil, p.name, nil
	}
	if slices.ContainsFunc(p.kinds, func(kind Kind) bool { return kind.reconcilerOptions().Controller.LabelSelector != nil }) {
		return nil, "", fmt.Errorf("--selector=%s: this operator selects its components by itself", selector)
	}
	parsed, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, "", fmt.Errorf("--selector=%s: %w; write key=value, key in (value), key notin (value), key or !key", selector, err)
	}
	sum := sha256.Sum256([]byte(metav1.FormatLabelSelector(parsed)))
	return parsed, fmt.Sprintf("%s-%x", p.name, sum[:4]), nil
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
func (p program) run(ctx context.Context, config *rest.Config, s settings) error {
	selector, lease, err := p.selected(s.selector)
	if err != nil {
		return err
	}
	scheme, err := p.scheme()
	if err != nil {
		return err
	}
	options := managerOptions(scheme)
	options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: s.metrics}, s.probes
	if s.namespaces, err = p.watched(s.namespaces); err != nil {
		return err
	}
	if len(s.namespaces) > 0 {
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range s.namespaces {
			options.Cache.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	var lock *component.LeaderLock
	if s.leaderElect {
		namespace, err := p.namespace()
		if err != nil {
			return err
		}
		if lock, err = component.NewLeaderLock(config, namespace, lease); err != nil {
			return err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
		options.LeaderElectionReleaseOnCancel = true // the process ends when the manager does
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	for _, kind := range p.kinds {
		if err := kind.setUp(manager, selector, lock); err != nil {
			return err
		}
	}
	for _, add := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return fmt.Errorf("add a probe: %w", err)
		}
	}
	return manager.Start(ctx)
}
