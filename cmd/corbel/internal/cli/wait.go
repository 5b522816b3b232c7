// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// waitFlags are the flags of a command that may wait.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) add(command *cobra.Command, byDefault bool) {
	command.Flags().BoolVar(&w.wait, "wait", byDefault, "wait for the result")
	w.addTimeout(command)
}

func (w *waitFlags) addTimeout(command *cobra.Command) {
	command.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "how long to wait; 0 waits without end")
}

func (f *frame) waitCommand() *cobra.Command {
	var wait waitFlags
	var what string
	command := &cobra.Command{
		Use: "wait " + componentUse, Short: "Wait until a component is ready, or gone",
		Long: "Wait until a component is ready in its current generation, or gone. Progress goes to the standard error. " +
			"The exit code is 1 after the timeout, or if the component cannot get there without a change.",
		Example: "  corbel wait shop/corner --timeout 10m\n  corbel wait shop/corner --for gone",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			goal := goal{text: what}
			switch what {
			case "ready":
				goal.reached = isReady
			case "gone":
			default:
				return usage("--for %q is unknown; choose ready or gone", what)
			}
			component, err := f.component(c.Context(), arguments)
			if goal.reached == nil && apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := f.waitFor(c.Context(), component, wait.timeout, goal); err != nil {
				return err
			}
			_, err = fmt.Fprintf(f.Out, "%s is %s\n", component.ResourceName(), what)
			return err
		},
	}
	command.Flags().StringVar(&what, "for", "ready", "what to wait for: ready or gone")
	_ = command.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "gone"}, cobra.ShellCompDirectiveNoFileComp))
	wait.addTimeout(command)
	return command
}

// isReady reports whether a component is ready in its current generation.
func isReady(c inspect.Component) bool {
	return c.Ready().Status == metav1.ConditionTrue && c.Status.ObservedGeneration == c.Object.GetGeneration() && c.Object.GetDeletionTimestamp() == nil
}

// isStalled reports whether nothing happens before something is changed.
func isStalled(c inspect.Component) bool {
	return apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled) && c.Status.ObservedGeneration == c.Object.GetGeneration()
}

// errReached ends a watch.
var errReached = errors.New("reached")

// goal is what is waited for.
type goal struct {
	// text completes the sentence "the component is not …".
	text string
	// reached reports whether the component is as it should be; nil waits until it is gone.
	reached func(inspect.Component) bool
	// begun reports whether the status is about what was asked for. Before, it does not count; nil means that it does.
	begun func(inspect.Component) bool
}

// waiting is a wait for a component.
type waiting struct {
	*frame
	goal
	uid   string
	last  inspect.Component
	shown string
}

// waitFor waits for a component, and shows each change of its condition. A component that is not as it should be in time, or
// cannot become so before something is changed, is an ExitError with CodeNo. The API server may go away meanwhile.
func (f *frame) waitFor(ctx context.Context, c inspect.Component, timeout time.Duration, goal goal) error {
	reader, err := f.reader()
	if err != nil {
		return err
	}
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	w := &waiting{frame: f, goal: goal, uid: string(c.Object.GetUID()), last: c}
	selection := inspect.Selection{Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}
	for {
		err := w.once(bounded, reader, c.Type, selection)
		switch {
		case errors.Is(err, errReached):
			return nil
		case exitOf(err) != nil: // without what a list or a watch adds
			return exitOf(err)
		case ctx.Err() != nil: // Ctrl-C
			return ctx.Err()
		case bounded.Err() != nil:
			return w.failed(fmt.Sprintf("is not %s after %s", goal.text, timeout))
		case inspect.IsExpired(err):
			continue // what happened meanwhile is in the next list
		case !isTransient(err):
			return err
		}
		w.show(fmt.Sprintf("%v; it is tried again", err))
		select {
		case <-bounded.Done():
		case <-time.After(time.Second):
		}
	}
}

// waitAndReport waits for a component, and says that it is as it should be.
func (f *frame) waitAndReport(ctx context.Context, c inspect.Component, timeout time.Duration, goal goal, o *output) error {
	err := f.waitFor(ctx, c, timeout, goal)
	if err == nil && o.isText() {
		_, err = fmt.Fprintf(f.Out, "%s is %s\n", c.ResourceName(), goal.text)
	}
	return err
}

// isTransient reports whether a request may succeed later: one that the server could not answer, or refused as too old.
func isTransient(err error) bool {
	return !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err)
}

// exitOf returns the ExitError in an error, or nil.
func exitOf(err error) error {
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit
	}
	return nil
}

// once reads the component and watches it. It returns errReached, or why it cannot go on.
func (w *waiting) once(ctx context.Context, reader *inspect.Reader, t inspect.Type, s inspect.Selection) error {
	found := false
	version, err := reader.List(ctx, t, s, func(c inspect.Component) error {
		found = true
		return w.look(inspect.Event{Component: c})
	})
	if w.reached == nil && (apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err)) {
		return errReached // its type is gone
	}
	if err != nil {
		return err
	}
	if !found {
		return w.gone()
	}
	return reader.Watch(ctx, t, s, version, w.look)
}

// look judges a change.
func (w *waiting) look(event inspect.Event) error {
	c := event.Component
	if event.Deleted || string(c.Object.GetUID()) != w.uid {
		return w.gone()
	}
	w.last = c
	switch {
	case w.reached == nil:
	case c.Object.GetDeletionTimestamp() != nil:
		return w.failed("is being deleted")
	case w.begun != nil && !w.begun(c): // the condition may be about what was before, and decides nothing
		if c.Ready().Status == metav1.ConditionTrue {
			w.show("not begun yet")
			return nil
		}
	case w.reached(c):
		return errReached
	case isStalled(c):
		return w.failed("cannot become " + w.text + " before something is changed")
	}
	ready := c.Ready()
	if c.Status.State == "" {
		w.show("not reconciled yet")
		return nil
	}
	w.show(fmt.Sprintf("%s: %s", c.Status.State, ready.Message))
	return nil
}

func (w *waiting) gone() error {
	if w.reached == nil {
		return errReached
	}
	return w.failed("was deleted")
}

// failed returns the error with what is known of the cause.
func (w *waiting) failed(what string) error {
	text := fmt.Sprintf("%s %s", w.last, what)
	if ready := w.last.Ready(); ready.Message != "" {
		text += ": " + ready.Message
	}
	return &ExitError{Code: CodeNo, Err: fmt.Errorf("%s; \"%s\" says more", text, w.last.Command("why"))}
}

// show prints progress, if it is new.
func (w *waiting) show(text string) {
	if text = oneLine(text); text != w.shown {
		w.shown = text
		fmt.Fprintf(w.ErrOut, "%s %s\n", w.now().Format(time.TimeOnly), text)
	}
}
