// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/test/env"
)

// interval is how often the demo looks at the Shop.
const interval = 250 * time.Millisecond

// demo is the cluster and what is printed about it.
type demo struct {
	env      *env.Environment
	screen   *screen
	client   client.Client
	deadline time.Duration // of each step
	root     string        // of the repository
	operator *operator     // nil until it is started
	runs     *runs         // of Jobs; nil until there is a Shop
	kubeEnv  []string      // the environment of kubectl
}

func newDemo(ctx context.Context, environment *env.Environment, screen *screen, deadline time.Duration) (*demo, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := shopv1alpha1.SchemeBuilder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(environment.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &demo{
		env: environment, screen: screen, client: c, deadline: deadline,
		root: filepath.Dir(filepath.Dir(program)), // it is bin/demo
		// kubectl shall neither read nor write the user's own files.
		kubeEnv: append(os.Environ(), "KUBECONFIG="+environment.Kubeconfig(), "KUBERC=off",
			"KUBECACHEDIR="+filepath.Join(environment.Dir(), "run", "kubectl")),
	}, nil
}

// play runs the steps of a story.
func (d *demo) play(ctx context.Context, story []step) error {
	for _, step := range story {
		d.screen.title(step.title)
		if err := d.within(ctx, step.run); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return nil
}

// within runs a step within its deadline.
func (d *demo) within(ctx context.Context, run func(*demo, context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.deadline, fmt.Errorf("not done after %v", d.deadline))
	defer cancel()
	return run(d, ctx)
}

// poll calls the check until it is content, as long as the operator runs.
func (d *demo) poll(ctx context.Context, check func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if ended := d.operator.check(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// kubectl shows a command and runs it.
func (d *demo) kubectl(ctx context.Context, stdin string, args ...string) error {
	_, err := d.ask(ctx, stdin, args...)
	return err
}

// ask shows a command, runs it and returns what it prints.
func (d *demo) ask(ctx context.Context, stdin string, args ...string) (output string, err error) {
	d.screen.text("$ kubectl %s", sentence.Command(args...))
	if stdin != "" {
		d.screen.text("%s", stdin)
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, d.env.Program("kubectl"), args...)
	command.Env, command.Dir = d.kubeEnv, d.root
	command.Stdin, command.Stderr = strings.NewReader(stdin), &stderr
	d.env.Adopt(command)
	printed, err := command.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx) // rather than that it was killed
	}
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", sentence.Command(args...), err, strings.TrimSpace(stderr.String()))
	}
	output = strings.TrimSpace(string(printed))
	d.screen.text("%s", output)
	return output, nil
}

// corbel shows a command of corbel about the Shop and runs it. It returns what the command prints and its exit code; a
// code above most is an error.
func (d *demo) corbel(ctx context.Context, stdin string, most int, args ...string) (output string, code int, err error) {
	args = append(args, "-n", shopKey.Namespace)
	d.screen.text("$ corbel %s", sentence.Command(args...))
	shown := &lines{screen: d.screen}
	command := exec.CommandContext(ctx, filepath.Join(d.root, "bin", "corbel"), args...)
	command.Env, command.Dir, command.Stdin = d.kubeEnv, d.root, strings.NewReader(stdin)
	command.Stdout, command.Stderr = shown, shown
	d.env.Adopt(command)
	err = command.Run()
	output, code = shown.kept.String(), command.ProcessState.ExitCode()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case code >= 0 && code <= most:
		return output, code, nil
	case err == nil:
		err = fmt.Errorf("it ended with %d", code)
	}
	return output, code, fmt.Errorf("corbel %s: %w", sentence.Command(args...), err)
}

// why shows why the Shop is not Ready, and expects the cause to be named.
func (d *demo) why(ctx context.Context, cause string) error {
	output, code, err := d.corbel(ctx, "", 1, "why", shopName)
	if err == nil && (code != 1 || !strings.Contains(output, cause)) {
		err = fmt.Errorf("corbel why does not name %q", cause)
	}
	return err
}

// shop reads the Shop.
func (d *demo) shop(ctx context.Context) (*shopv1alpha1.Shop, error) {
	shop := &shopv1alpha1.Shop{}
	return shop, d.client.Get(ctx, shopKey, shop)
}

// awaitReason waits until condition Ready of the Shop, in its current generation, has a reason, or a message, with a text.
func (d *demo) awaitReason(ctx context.Context, text string) error {
	return d.poll(ctx, func() error {
		shop, err := d.shop(ctx)
		if err != nil {
			return err
		}
		_, reason, message := shop.Status.GetState()
		if shop.Status.ObservedGeneration != shop.Generation || reason != text && !strings.Contains(message, text) {
			return fmt.Errorf("condition Ready does not say %s, but %s: %s", text, reason, message)
		}
		return nil
	})
}

// object reads an object beside the Shop.
func (d *demo) object(ctx context.Context, apiVersion, kind, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return object, d.client.Get(ctx, client.ObjectKey{Namespace: shopKey.Namespace, Name: name}, object)
}
