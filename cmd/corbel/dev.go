// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/test/env"
)

// devFlags are the flags of dev.
type devFlags struct {
	kubeconfig string
	once       bool
}

// devCommand returns the command that runs the operator of a project.
func devCommand() *cobra.Command {
	var f devFlags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run the operator of the project in this folder, apply its samples, and start again after each change of a file",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr()) },
	}
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "use the current context of this file, in place of a control plane of its own")
	command.Flags().BoolVar(&f.once, "once", false, "end when the samples are ready, and delete them")
	return command
}

// dev is an operator under development.
type dev struct {
	folder  string // of the project
	config  *rest.Config
	client  client.Client
	program *program
	out     io.Writer
	shown   map[string]string // the last state of each sample
	// namespace is that of samples that name none.
	namespace string
}

func (f devFlags) run(ctx context.Context, out, progress io.Writer) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "deploy", "Chart.yaml")); err != nil {
		return fmt.Errorf("%s is not the project of an operator: it has no chart in deploy", folder)
	}
	d := &dev{folder: folder, out: out, shown: map[string]string{}}
	if f.kubeconfig != "" {
		d.config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	} else {
		var environment *env.Environment
		if environment, err = startEnvironment(ctx, progress); err == nil {
			defer func() { err = errors.Join(err, environment.Stop()) }()
			d.config = environment.Config()
			fmt.Fprintf(out, "the control plane runs; export KUBECONFIG=%s\n", environment.Kubeconfig())
		}
	}
	if err != nil {
		return err
	}
	if d.client, err = client.New(d.config, client.Options{}); err != nil {
		return err
	}
	defer d.stop()
	return d.loop(ctx, f.once)
}

func startEnvironment(ctx context.Context, progress io.Writer) (*env.Environment, error) {
	assets, err := controlPlane(ctx, progress)
	if err != nil {
		return nil, err
	}
	return env.Start(ctx, env.Options{Cluster: true, Assets: assets})
}

// lookInterval is how often files and samples are looked at.
const lookInterval = 300 * time.Millisecond

// loop starts the operator, and again whenever a file of the project has changed. A mistake in the
// project is printed, and the next change is waited for.
func (d *dev) loop(ctx context.Context, once bool) error {
	seen := time.Time{}
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		if changed, err := lastChange(d.folder); err != nil {
			return err
		} else if changed.After(seen) {
			seen = changed
			if err := d.restart(ctx); err != nil {
				if once || ctx.Err() != nil {
					return ignoreEnd(ctx, err)
				}
				fmt.Fprintln(d.out, "error:", err)
			}
		}
		if err := d.program.failure(); err != nil {
			if once {
				return err
			}
			fmt.Fprintln(d.out, "error:", err)
			d.program = nil
		}
		ready, err := d.show(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if once && ready {
			return d.remove(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// ignoreEnd returns no error if the command was ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// restart builds the operator, installs its chart without workloads, starts the operator as its service account, and
// applies the samples.
func (d *dev) restart(ctx context.Context) error {
	binary := filepath.Join(d.folder, "bin", "operator")
	if err := goBuild(ctx, d.folder, binary); err != nil {
		return err
	}
	d.stop()
	installed, err := deploy.Render(ctx, os.DirFS(filepath.Join(d.folder, "deploy")), filepath.Base(d.folder)+"-system")
	if err != nil {
		return err
	}
	if err := installed.Apply(ctx, d.client); err != nil {
		return err
	}
	kubeconfig, err := kubeconfigOf(ctx, d.config, d.client, installed)
	if err != nil {
		return err
	}
	if d.program, err = startProgram(binary, filepath.Join(d.folder, "bin", "operator.log"), kubeconfig, installed); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "the operator runs; its log is bin/operator.log")
	d.namespace = "default"
	if slices.ContainsFunc(installed.Args, func(arg string) bool { return strings.HasPrefix(arg, "--watch-namespace") }) {
		d.namespace = installed.Namespace // the only one that it has rights in
	}
	samples, err := d.samples()
	if err != nil {
		return err
	}
	for _, sample := range samples {
		if err := d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sample), client.FieldOwner("corbel"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", sample.GetKind(), sample.GetName(), err)
		}
	}
	return nil
}

// stop ends the operator.
func (d *dev) stop() {
	d.program.stop()
	d.program = nil
}

// samples reads the samples of the project.
func (d *dev) samples() ([]*unstructured.Unstructured, error) {
	names, err := filepath.Glob(filepath.Join(d.folder, "samples", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var samples []*unstructured.Unstructured
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sample := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &sample.Object); err != nil || sample.GetKind() == "" {
			return nil, fmt.Errorf("%s is no manifest of a component: %w", filepath.Base(name), err)
		}
		if sample.GetNamespace() == "" {
			sample.SetNamespace(d.namespace)
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// show prints what has changed of the samples, and reports whether all of them are ready.
func (d *dev) show(ctx context.Context) (ready bool, err error) {
	samples, err := d.samples()
	if err != nil || d.program == nil {
		return false, nil // restart has printed the error
	}
	ready = len(samples) > 0
	for _, sample := range samples {
		if err := d.client.Get(ctx, client.ObjectKeyFromObject(sample), sample); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
			ready = false
			continue
		}
		state := stateOf(sample)
		ready = ready && state.ready
		name := sample.GetKind() + " " + sample.GetNamespace() + "/" + sample.GetName()
		if text := state.String(); text != d.shown[name] {
			fmt.Fprintf(d.out, "%s %s\n", name, text)
			d.shown[name] = text
		}
	}
	return ready, nil
}

// remove deletes the samples, and waits until they are gone.
func (d *dev) remove(ctx context.Context) error {
	samples, err := d.samples()
	if err != nil {
		return err
	}
	for _, sample := range samples {
		if err := d.client.Delete(ctx, sample); client.IgnoreNotFound(err) != nil {
			return err
		}
		for {
			if err := d.client.Get(ctx, client.ObjectKeyFromObject(sample), sample); client.IgnoreNotFound(err) != nil {
				return err
			} else if err != nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s %s is not gone: %s", sample.GetKind(), sample.GetName(), stateOf(sample))
			case <-time.After(lookInterval):
			}
		}
		fmt.Fprintf(d.out, "%s %s/%s is gone\n", sample.GetKind(), sample.GetNamespace(), sample.GetName())
	}
	return nil
}
