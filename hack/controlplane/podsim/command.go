// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// options are the flags of the program.
type options struct {
	kubeconfig string
	nodes      int
	timing     timing
}

// NewCommand returns the program as a command that runs until it is interrupted.
func NewCommand() *cobra.Command {
	o := options{}
	command := &cobra.Command{
		Use:   "podsim",
		Short: "Simulates nodes, pods, volumes and load balancers of a cluster",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return o.run()
		},
		SilenceUsage: true,
	}
	flags := command.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of an administrator")
	flags.IntVar(&o.nodes, "nodes", 2, "number of nodes")
	flags.DurationVar(&o.timing.start, "start-after", 300*time.Millisecond, "time from the binding of a pod to the start of its containers")
	flags.DurationVar(&o.timing.run, "run-for", 300*time.Millisecond, "how long containers run that are meant to end")
	flags.DurationVar(&o.timing.terminate, "terminate-after", 100*time.Millisecond, "time from the deletion of a pod to the end of its containers")
	return command
}

func (o options) run() error {
	if o.kubeconfig == "" || o.nodes < 1 {
		return errors.New("podsim needs --kubeconfig, and --nodes of at least 1")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = "podsim"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return simulate(ctx, client, o)
}
