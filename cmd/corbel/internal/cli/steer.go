// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// steer is a command that sets annotations of one component.
type steer struct {
	*frame
	output *output
	decide steering.Decision
}

// steerCommand returns a command that sets annotations by one request.
func (f *frame) steerCommand(use, short, example string, decide steering.Decision) *cobra.Command {
	s := &steer{frame: f, decide: decide}
	command := &cobra.Command{
		Use: use, Short: short, Example: example, Args: componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			_, err := s.run(c.Context(), arguments)
			return err
		},
	}
	s.output = addOutputFlag(command, "name")
	return command
}

// run sets the annotations of the component that the arguments name, and returns it as it is then.
func (s *steer) run(ctx context.Context, arguments []string) (inspect.Component, error) {
	if err := s.output.check(); err != nil {
		return inspect.Component{}, err
	}
	c, err := s.component(ctx, arguments)
	if err != nil {
		return c, err
	}
	c, report, err := s.annotate(ctx, c)
	if err != nil {
		return c, err
	}
	return c, s.report(c, s.output, report)
}

// annotate decides and writes.
func (s *steer) annotate(ctx context.Context, c inspect.Component) (inspect.Component, string, error) {
	connection, err := s.connect()
	if err != nil {
		return c, "", err
	}
	return steering.Annotate(ctx, connection.client, connection.reader, c, s.decide)
}

// report says what was done. As JSON and YAML the component is printed.
func (f *frame) report(c inspect.Component, o *output, text string) (err error) {
	switch o.format {
	case "json", "yaml":
		return f.encode(o.format, summaryOf(c))
	case "name":
		_, err = fmt.Fprintln(f.Out, c.ResourceName())
	default:
		_, err = fmt.Fprintf(f.Out, "%s %s\n", c.ResourceName(), text)
	}
	return err
}

func (f *frame) reconcileCommand() *cobra.Command {
	var requested string
	s := &steer{frame: f, decide: func(c inspect.Component) (steering.Annotations, string, error) {
		return steering.Reconcile(requested)(c)
	}}
	var wait waitFlags
	command := &cobra.Command{
		Use: "reconcile " + componentUse, Short: "Reconcile a component now",
		Long: "Reconcile a component now: render it and compare all its dependents, whether something has changed or not. " +
			"With --wait the command ends when that is done and the component is ready.",
		Example: "  corbel reconcile shop/corner -n market --wait",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			requested = steering.Now(f.now())
			component, err := s.run(c.Context(), arguments)
			if err != nil || !wait.wait {
				return err
			}
			return f.waitAndReport(c.Context(), component, wait.timeout, goal{
				text: "reconciled and ready", reached: isReady,
				begun: func(c inspect.Component) bool { return isHandled(c.Status.LastHandledReconcileAt, requested) },
			}, s.output)
		},
	}
	s.output = addOutputFlag(command, "name")
	wait.add(command, false)
	return command
}

func (f *frame) suspendCommand() *cobra.Command {
	var until, reason string
	command := f.steerCommand("suspend "+componentUse, "Leave the dependents of a component as they are",
		"  corbel suspend shop/corner --until 2h --reason 'incident 7'\n  corbel suspend shop/corner --until 2026-12-01T08:00:00Z",
		func(c inspect.Component) (steering.Annotations, string, error) {
			var end time.Time
			if until != "" {
				var err error
				if end, err = parseTime(until, f.now()); err != nil {
					return nil, "", err
				}
			}
			return steering.Suspend(end, reason)(c)
		})
	command.Long = "Leave the dependents of a component as they are, until \"corbel resume\" or a time. Changes of the component are applied then. " +
		"Its deletion goes on regardless."
	command.Flags().StringVar(&until, "until", "", "when the suspension ends by itself: a time such as 2026-12-01T08:00:00Z, or a duration such as 90m")
	command.Flags().StringVar(&reason, "reason", "", "why, for other users: it is shown with the status")
	return command
}

// parseTime returns a time in the future, which may be given as a duration.
func parseTime(text string, now time.Time) (time.Time, error) {
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		after, durationErr := time.ParseDuration(text)
		if durationErr != nil {
			return end, usage("--until %q is neither a time, such as 2026-12-01T08:00:00Z, nor a duration, such as 90m", text)
		}
		end = now.Add(after)
	}
	if !end.After(now) {
		return end, usage("--until %q is not in the future", text)
	}
	return end, nil
}

func (f *frame) resumeCommand() *cobra.Command {
	s := &steer{frame: f, decide: steering.Resume}
	command := &cobra.Command{
		Use: "resume " + componentUse, Short: "End the suspension of a component", Example: "  corbel resume shop/corner",
		Args: componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			component, err := s.run(c.Context(), arguments)
			if err != nil {
				return err
			}
			if other := steering.SuspendedBy(component); other != "" {
				return fmt.Errorf("%s is still suspended by its %s: change that", component, other)
			}
			return nil
		},
	}
	s.output = addOutputFlag(command, "name")
	return command
}

func (f *frame) approveCommand() *cobra.Command {
	var hash string
	command := f.steerCommand("approve "+componentUse+" --plan HASH", "Approve the plan that a component waits for",
		"  corbel approve shop/corner --plan 1f2e3d4c5b6a79880a1b",
		func(c inspect.Component) (steering.Annotations, string, error) {
			if err := steering.NotDeleting(c); err != nil {
				return nil, "", err
			}
			pending := c.Status.Approval
			switch {
			case pending == nil:
				return nil, "", fmt.Errorf("no plan of %s waits for an approval", c)
			case hash == "":
				return nil, "", usage("name the plan with --plan: revision %d of %s waits with the plan %s (%s)", pending.Revision, c, pending.Hash, pending.Summary)
			case hash != pending.Hash:
				return nil, "", fmt.Errorf("the plan of %s that waits is %s (%s), and not %s: look at it, and approve that", c, pending.Hash, pending.Summary, hash)
			}
			return steering.Annotations{vocabulary.AnnotationApprove: &hash}, fmt.Sprintf("approved: revision %d (%s)", pending.Revision, pending.Summary), nil
		})
	command.Long = "Approve the plan that a component waits for. \"corbel plan\" shows it, with its hash."
	command.Flags().StringVar(&hash, "plan", "", "the hash of the plan")
	return command
}

// rolloutValues are the values of the annotation rollout, with what they mean.
var rolloutValues = []struct{ value, short, report string }{
	{"pin", "Keep the version of a component until its spec changes", "pinned: it keeps its version until its spec changes, or until \"%s\""},
	{"promote", "Update a component now, whatever the limit of the roll-out", "promoted: its operator updates it now; \"%s\" when that is done"},
	{"ignore", "Let the roll-out go on although a component has failed", "ignored: the roll-out goes on if it has failed, until \"%s\""},
}

func (f *frame) rolloutCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "rollout", Short: "Say how a component takes part in the roll-out of another version of its operator",
		Long: "Say how a component takes part in the roll-out of another version of its operator. What is said counts until \"corbel rollout clear\", also " +
			"for the next roll-out.",
		Example: "  corbel rollout pin shop/corner\n  corbel rollout clear shop/corner",
		RunE: func(*cobra.Command, []string) error {
			return usage("say what: pin, promote, ignore or clear, such as \"corbel rollout pin %s\"", componentUse)
		},
	}
	for _, v := range rolloutValues {
		command.AddCommand(f.steerCommand(v.value+" "+componentUse, v.short, "  corbel rollout "+v.value+" shop/corner", func(c inspect.Component) (steering.Annotations, string, error) {
			if err := steering.NotDeleting(c); err != nil {
				return nil, "", err
			}
			return steering.Annotations{vocabulary.AnnotationRollout: &v.value}, fmt.Sprintf(v.report, strings.Replace(c.Command("rollout"), "rollout", "rollout clear", 1)), nil
		}))
	}
	command.AddCommand(f.steerCommand("clear "+componentUse, "Let a component take part as others do", "  corbel rollout clear shop/corner", func(c inspect.Component) (steering.Annotations, string, error) {
		text := "takes part in roll-outs as others do"
		if c.Annotation(vocabulary.AnnotationRollout) == "" {
			text = "has no annotation about roll-outs"
		}
		return steering.Annotations{vocabulary.AnnotationRollout: nil}, text, nil
	}))
	for _, c := range command.Commands() {
		c.Flags().SortFlags = false
		f.addClusterFlags(c)
		completeNoFiles(c)
	}
	return command
}

func (f *frame) rollbackCommand() *cobra.Command {
	var to int64
	var end bool
	var was string // the annotation before
	s := &steer{frame: f, decide: func(c inspect.Component) (steering.Annotations, string, error) {
		was = c.Annotation(vocabulary.AnnotationRollbackTo)
		if end {
			return steering.EndRollback(c)
		}
		return steering.Rollback(to)(c)
	}}
	var wait waitFlags
	command := &cobra.Command{
		Use: "rollback " + componentUse, Short: "Apply an earlier revision of a component",
		Long: "Apply an earlier revision of a component in place of what its spec says: by default the last that was ready before the current one. " +
			"It stays there, whatever changes, until --end.",
		Example: "  corbel rollback shop/corner --to 3 --wait\n  corbel rollback shop/corner --end",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if end && c.Flags().Changed("to") {
				return usage("--to and --end exclude each other")
			}
			component, err := s.run(c.Context(), arguments)
			if err != nil || !wait.wait {
				return err
			}
			before, pinned := component.Status.Revision, component.Annotation(vocabulary.AnnotationRollbackTo)
			return f.waitAndReport(c.Context(), component, wait.timeout, goal{
				text: "ready", reached: isReady,
				begun: func(c inspect.Component) bool {
					current := currentRevision(c)
					return (current.Revision != before || was == pinned) && pinOf(current) == pinned && current.Result != v1alpha1.RevisionProcessing
				},
			}, s.output)
		},
	}
	command.Flags().Int64Var(&to, "to", 0, "the number of the revision; \"corbel history\" lists them")
	_ = command.RegisterFlagCompletionFunc("to", f.completeRevisions)
	command.Flags().BoolVar(&end, "end", false, "end the rollback: apply what the spec says")
	s.output = addOutputFlag(command, "name")
	wait.add(command, false)
	return command
}

// currentRevision returns the entry of the current revision in the history. Its result is that of this revision, also
// while the conditions are those of the one before.
func currentRevision(c inspect.Component) v1alpha1.RevisionStatus {
	for _, entry := range c.Status.History {
		if entry.Revision == c.Status.Revision {
			return entry
		}
	}
	return v1alpha1.RevisionStatus{Revision: c.Status.Revision, Result: v1alpha1.RevisionProcessing}
}

// pinOf returns the revision that an entry goes back to, as the annotation has it.
func pinOf(entry v1alpha1.RevisionStatus) string {
	if entry.RollbackTo == 0 {
		return ""
	}
	return strconv.FormatInt(entry.RollbackTo, 10)
}

func (f *frame) deleteCommand() *cobra.Command {
	wait := waitFlags{}
	var o *output
	command := &cobra.Command{
		Use: "delete " + componentUse, Short: "Delete a component and its dependents",
		Long: "Delete a component and its dependents, and wait until they are gone. What keeps the deletion waiting is shown meanwhile. " +
			"Ctrl-C ends the command, and not the deletion.",
		Example: "  corbel delete shop/corner -n market",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			component, err := f.component(c.Context(), arguments)
			if err != nil {
				return err
			}
			if err := f.deleteComponent(c.Context(), component); err != nil {
				return err
			}
			if !wait.wait {
				return f.report(component, o, "is being deleted")
			}
			if err := f.waitFor(c.Context(), component, wait.timeout, goal{text: "gone"}); err != nil {
				return err
			}
			return f.report(component, o, "deleted")
		},
	}
	o = addOutputFlag(command, "name")
	wait.add(command, true)
	return command
}

// deleteComponent deletes the component that was read, and no other one of its name.
func (f *frame) deleteComponent(ctx context.Context, c inspect.Component) error {
	connection, err := f.connect()
	if err != nil {
		return err
	}
	if c.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := c.Object.GetUID()
	err = connection.client.Delete(ctx, c.Object, client.Preconditions{UID: &uid})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s was deleted and created again meanwhile; nothing was deleted", c)
	}
	return fmt.Errorf("delete %s: %w", c, err)
}

// isHandled reports whether a reconcile was asked for and done at a time, or later by another user.
func isHandled(handled, requested string) bool {
	at, err := time.Parse(time.RFC3339Nano, handled)
	asked, askedErr := time.Parse(time.RFC3339Nano, requested)
	return handled == requested || err == nil && askedErr == nil && at.After(asked)
}
