// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/moby/term"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// plugin is how kubectl calls its plugins.
const plugin = "kubectl-corbel"

// NewCommand returns the command with all that work with components in a cluster. If the program is called
// kubectl-corbel, its usage says "kubectl corbel".
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(newFrame(streams), os.Args[0])
}

const help = `Make, run and look at operators and their components.

The exit code of each command is 0 if it has done its work, or if the answer is yes; 1 if the answer is no: a component is not ready,
there are differences, or a check has found a problem; 2 after an error; and 130 after Ctrl-C. Only "corbel plan --exit-code" has
codes of its own.`

func newCommand(f *frame, program string) *cobra.Command {
	root := &cobra.Command{
		Use: "corbel", Short: "Make, run and look at operators and their components", Long: help,
		SilenceUsage: true, SilenceErrors: true,
	}
	if name := strings.TrimSuffix(filepath.Base(program), ".exe"); name == plugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl corbel"}
	}
	root.SetIn(f.In)
	root.SetOut(f.Out)
	root.SetErr(f.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	explain := f.explainCommand()
	for _, command := range append(f.commands(), explain) {
		command.Flags().SortFlags = false // its own before those that all have
		if command != explain {
			f.addClusterFlags(command)
		}
		if root.Annotations != nil {
			command.Example = strings.ReplaceAll(command.Example, "  corbel ", "  kubectl corbel ")
		}
		completeNoFiles(command)
		root.AddCommand(command)
	}
	return root
}

// commands are those that work with a cluster.
func (f *frame) commands() []*cobra.Command {
	return []*cobra.Command{
		f.getCommand(), f.whyCommand(), f.planCommand(), f.treeCommand(), f.outputsCommand(), f.ownerCommand(), f.eventsCommand(), f.historyCommand(),
		f.diffCommand(), f.imagesCommand(), f.checkCommand(), f.collectCommand(), f.rbacCommand(), f.uiCommand(), f.waitCommand(), f.reconcileCommand(), f.suspendCommand(), f.resumeCommand(), f.approveCommand(), f.rolloutCommand(),
		f.rollbackCommand(), f.deleteCommand(), f.adoptCommand(), f.releaseCommand(),
	}
}

// frame is what all commands share.
type frame struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	now   func() time.Time
	// width is the width of the terminal; 0 if the standard output is none.
	width func() int
	// colors reports whether the standard output shows colours.
	colors func() bool

	connection *connection
}

// connection is the way to a cluster.
type connection struct {
	config *rest.Config
	client client.WithWatch
	reader *inspect.Reader
}

func newFrame(streams genericiooptions.IOStreams) *frame {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir = nil // nothing is kept on the disk
	return &frame{
		IOStreams: streams, flags: flags, now: time.Now,
		width:  func() int { return terminalWidth(streams.Out) },
		colors: func() bool { return printers.AllowsColorOutput(streams.Out) },
	}
}

// terminalWidth returns 0 if the stream is no terminal.
func terminalWidth(stream any) int {
	fd, isTerminal := term.GetFdInfo(stream)
	if !isTerminal {
		return 0
	}
	size, err := term.GetWinsize(fd)
	if err != nil || size.Width == 0 {
		return 80
	}
	return int(size.Width)
}

// addClusterFlags adds kubectl's flags that choose a cluster, a user and a namespace. Commands without a cluster, such
// as init, do not get them.
func (f *frame) addClusterFlags(command *cobra.Command) {
	f.flags.AddFlags(command.Flags())
	_ = command.RegisterFlagCompletionFunc("namespace", f.completeNamespaces)
	_ = command.RegisterFlagCompletionFunc("context", f.completeContexts)
}

// connect returns the way to the cluster that the flags choose. Nothing is asked until it is used.
func (f *frame) connect() (*connection, error) {
	if f.connection != nil {
		return f.connection, nil
	}
	// Libraries that log say nothing that the errors do not say.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	c, err := inspect.Connect(config)
	if err != nil {
		return nil, err
	}
	f.connection = &connection{config: c.Config, client: c.Client, reader: c.Reader()}
	return f.connection, nil
}

// config returns the configuration of the cluster that the flags choose. If no file of KUBECONFIG exists, kubectl's library
// chooses localhost:8080.
func (f *frame) config() (*rest.Config, error) {
	files := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	missing := func(file string) bool { _, err := os.Stat(file); return errors.Is(err, fs.ErrNotExist) }
	if *f.flags.KubeConfig == "" && *f.flags.APIServer == "" && len(files) > 0 && !slices.ContainsFunc(files, func(file string) bool { return !missing(file) }) {
		return nil, fmt.Errorf("KUBECONFIG names %s, which does not exist: correct it, or name a file with --kubeconfig", strings.Join(files, " and "))
	}
	config, err := f.flags.ToRESTConfig()
	if raw, rawErr := f.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && rawErr == nil && len(raw.Clusters) == 0 && *f.flags.APIServer == "" && config.Host == nowhere {
		return nil, errors.New("no kubeconfig names a cluster: name a file with --kubeconfig or KUBECONFIG, or a server with --server")
	}
	return config, err
}

// nowhere is the server that kubectl's library chooses without a kubeconfig.
const nowhere = "http://localhost:8080"

// reader returns what reads components.
func (f *frame) reader() (*inspect.Reader, error) {
	c, err := f.connect()
	if err != nil {
		return nil, err
	}
	return c.reader, nil
}

// namespace returns the namespace of the flags or of the kubeconfig, or "default".
func (f *frame) namespace() (string, error) {
	namespace, _, err := f.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}
