// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/cli"
	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/internal/sentence"
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
		Long: "Run the operator as its service account on a control plane of its own, which \"corbel controlplane\" builds, unless KUBEBUILDER_ASSETS names a folder with all its programs. " +
			"Objects in samples/prerequisites are created before the samples; one that exists stays as it is.\n\n" +
			"Ctrl-C ends the operator and the control plane, with all that is in it; bin/operator and bin/operator.log stay. With --kubeconfig the cluster keeps the chart of the operator, " +
			"the samples and their objects: delete the samples before, while the operator runs; --once does so.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr()) },
	}
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "use the current context of this file, in place of a control plane of its own")
	command.Flags().BoolVar(&f.once, "once", false, "end when the samples are ready, and delete them; after "+maxOnce.String()+" it is an error that they are not")
	return command
}

// dev is an operator under development.
type dev struct {
	folder string // of the project
	config *rest.Config
	client client.Client
	// adopt lets a process end with this one; nil on a cluster that is not ours.
	adopt   func(*exec.Cmd)
	private string // folder of the kubeconfig of the operator
	// kubeconfig is the file that config was read from.
	kubeconfig string
	out        io.Writer

	installed deploy.Operator
	program   *program
	samples   samples
	told      map[string]string // what was printed last, by what it is about
}

func (f devFlags) run(ctx context.Context, out, progress io.Writer) (err error) {
	d := &dev{kubeconfig: f.kubeconfig, out: out, told: map[string]string{}}
	d.samples.applied = map[string]*unstructured.Unstructured{}
	if d.folder, err = os.Getwd(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(d.folder, "deploy", "Chart.yaml")); err != nil {
		return fmt.Errorf("%s is not the project of an operator: it has no chart in deploy", d.folder)
	}
	if d.private, err = os.MkdirTemp("", "corbel-dev-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.private)) }()
	if f.kubeconfig != "" {
		d.config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	} else {
		var environment *env.Environment
		if environment, err = startEnvironment(ctx, progress); err == nil {
			defer func() { err = errors.Join(err, environment.Stop()) }()
			d.config, d.adopt, d.kubeconfig = environment.Config(), environment.Adopt, environment.Kubeconfig()
			fmt.Fprintf(out, "the control plane runs; export KUBECONFIG=%s\n", d.kubeconfig)
		}
	}
	if err != nil {
		return err
	}
	if d.client, err = client.New(d.config, client.Options{}); err != nil {
		return err
	}
	defer d.stop()
	if err := d.loop(ctx, f.once); err != nil && (f.once || ctx.Err() == nil) {
		return err
	}
	return nil
}

func startEnvironment(ctx context.Context, progress io.Writer) (*env.Environment, error) {
	assets, err := controlPlane(ctx, progress)
	if err != nil {
		return nil, err
	}
	return env.Start(ctx, env.Options{Cluster: true, Nodes: 3, Assets: assets})
}

// interval is how often files and samples are looked at.
const interval = 300 * time.Millisecond

// maxOnce is how long --once waits until the samples are ready.
const maxOnce = 10 * time.Minute

// loop starts the operator, and again whenever a file of the project has changed. A mistake is printed, and
// the next change is waited for; with once, the mistake and the readiness of the samples are its end.
func (d *dev) loop(ctx context.Context, once bool) error {
	files, started := "", time.Now()
	for {
		var err error
		if now := fingerprint(d.folder); now != files {
			files = now
			err = d.restart(ctx)
		}
		if err == nil {
			err = d.program.failure()
		}
		ready := false
		if err == nil && d.program != nil {
			ready, err = d.samples.look(ctx, d.client, d.tell, d.show)
		}
		switch {
		case err != nil && once:
			return err
		case err != nil && ctx.Err() == nil:
			d.tell("error", err.Error())
		case ready && once:
			return d.remove(ctx)
		case once && time.Since(started) > maxOnce:
			return d.overdue()
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// overdue returns the error of samples that are not ready in time.
func (d *dev) overdue() error {
	errs := []error{fmt.Errorf("the samples are not ready after %s", maxOnce)}
	for _, sample := range d.samples.all {
		errs = append(errs, fmt.Errorf("%s: %s", titleOf(sample), cmp.Or(d.told[titleOf(sample)], "it does not exist")))
	}
	return errors.Join(errs...)
}

// pause waits until the next look.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(interval):
		return nil
	}
}

// tell prints what is new about something, and reports whether it is.
func (d *dev) tell(about, text string) (isNew bool) {
	if isNew = d.told[about] != text; isNew {
		d.told[about] = text
		fmt.Fprintf(d.out, "%s: %s\n", about, sentence.Printable(text))
	}
	return isNew
}

// show prints the tree of a component, as corbel tree does.
func (d *dev) show(ctx context.Context, component *unstructured.Unstructured) {
	tree := cli.NewCommand(genericiooptions.IOStreams{Out: d.out, ErrOut: d.out})
	kind := component.GroupVersionKind()
	tree.SetArgs([]string{"tree", kind.Kind + "." + kind.Group, component.GetName(), "--namespace", component.GetNamespace(), "--kubeconfig", d.kubeconfig})
	if err := tree.ExecuteContext(ctx); err != nil && ctx.Err() == nil {
		d.tell("error", err.Error())
	}
}

// restart builds the operator, installs its chart without workloads, and starts the operator as its service account.
// The samples are read again.
func (d *dev) restart(ctx context.Context) (err error) {
	binary := filepath.Join(d.folder, "bin", "operator")
	if runtime.GOOS == "windows" {
		binary += ".exe" // it starts no other files
	}
	if err := goBuild(ctx, d.folder, binary); err != nil {
		return err
	}
	d.stop()
	delete(d.told, "error")
	version, err := deploy.VersionOf(d.config)
	if err != nil {
		return err
	}
	if d.installed, err = deploy.Render(ctx, os.DirFS(filepath.Join(d.folder, "deploy")), version); err != nil {
		return err
	}
	if err := d.installed.Apply(ctx, d.client); err != nil {
		return err
	}
	next, err := readSamples(d.folder, d.installed, d.samples.applied)
	if err != nil {
		return err
	}
	d.samples = next
	kubeconfig := filepath.Join(d.private, "kubeconfig")
	if err := writeKubeconfig(ctx, kubeconfig, d.config, d.client, d.installed); err != nil {
		return err
	}
	// Another operator may lead on a cluster that is not ours.
	if d.program, err = startProgram(binary, kubeconfig, d.installed, d.adopt == nil, d.adopt); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "the operator runs; its log is bin/operator.log")
	return nil
}

// stop ends the operator.
func (d *dev) stop() {
	d.program.stop()
	d.program = nil
}

// remove deletes the samples, and waits until they are gone.
func (d *dev) remove(ctx context.Context) error {
	for {
		gone, err := d.samples.remove(ctx, d.client, d.tell)
		if err = errors.Join(err, d.program.failure()); err != nil || gone {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}
