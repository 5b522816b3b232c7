// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

const adoptRestoredHelp = `Take over the objects of a component that was restored from a backup into another namespace, while its original lives.

Restored objects still name the original as their owner, so the component has the reason OwnerConflict. The command asks the running
operator for its plan, and changes one annotation of each object with a conflict, if the object is in the namespace of the component and
its owner is a component of the same kind and name in another namespace. The operator then adopts these objects by their adoption policy.
The command names the objects outside of the namespace; they belong to the original.

If the command ends early, run it again.`

func (f *frame) adoptRestoredCommand() *cobra.Command {
	var dryRun bool
	command := &cobra.Command{
		Use: "restored " + componentUse, Short: "Take over the objects of a component that was restored into another namespace", Long: adoptRestoredHelp,
		Example: "  corbel adopt restored shop/corner -n branch",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			found, err := f.component(c.Context(), arguments)
			if err != nil {
				return err
			}
			return f.adoptRestored(c.Context(), found, dryRun)
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "print the objects whose conflict is known, and write nothing; objects of later waves follow them")
	f.addClusterFlags(command)
	return command
}

// adoptRestored asks for a plan and writes, until no plan has another object to take over: objects of a later wave have a conflict
// when those of the wave before have none.
func (f *frame) adoptRestored(ctx context.Context, c inspect.Component, dryRun bool) error {
	if err := steering.NotDeleting(c); err != nil {
		return err
	}
	done := map[report.Key]bool{}
	for {
		found, refused, err := f.restoredObjects(ctx, c, done)
		if err != nil {
			return err
		}
		for _, line := range refused {
			fmt.Fprintf(f.ErrOut, "not taken over: %s\n", line)
		}
		if len(found) > 0 && len(done) == 0 {
			fmt.Fprintf(f.Out, "%s takes over the objects that it was restored with, by one annotation each:\n", c)
		}
		for _, change := range found {
			fmt.Fprintf(f.Out, "  %s\n", change.Key)
		}
		switch {
		case len(refused) > 0 && len(found) == 0:
			return fmt.Errorf("%d objects of %s have another owner and are not taken over, and %d are", len(refused), c, len(done))
		case len(found) == 0:
			_, err = fmt.Fprintf(f.Out, "%s has taken over %d objects\n", c.ResourceName(), len(done))
			return err
		case dryRun:
			return nil
		}
		for _, change := range found {
			switch why, err := f.ownRestored(ctx, c, change, true); {
			case err != nil:
				return err
			case why != "":
				return fmt.Errorf("%s was changed meanwhile, and %s; run the command again", change.Key, why)
			}
			done[change.Key] = true
		}
		now := &steer{frame: f, decide: steering.Reconcile(steering.Now(f.now()))}
		if c, _, err = now.annotate(ctx, c); err != nil {
			return err
		}
	}
}

// restoredObjects returns the objects with a conflict of ownership that are to be taken over, without those that were, and says why the
// others are not.
func (f *frame) restoredObjects(ctx context.Context, c inspect.Component, done map[report.Key]bool) (found []report.PlannedChange, refused []string, err error) {
	answer, err := f.ask(ctx, c, preview.Question{})
	if err != nil {
		return nil, nil, err
	}
	var plan report.Plan
	if err := json.Unmarshal(answer.Plan, &plan); err != nil {
		return nil, nil, fmt.Errorf("the answer of the operator of %s cannot be read: %w", c, err)
	}
	for _, change := range plan.Changes {
		if change.Class != report.ChangeBlocked || change.Reason != string(report.WaitOwner) || done[change.Key] {
			continue
		}
		why, err := f.ownRestored(ctx, c, change, false)
		switch {
		case err != nil:
			return nil, nil, err
		case why != "":
			refused = append(refused, change.Key.String()+" "+why)
		default:
			found = append(found, change)
		}
	}
	return found, refused, nil
}

// ownRestored lets an object name the component as its owner, unless it returns why not. The request demands the object as it was read.
func (f *frame) ownRestored(ctx context.Context, c inspect.Component, change report.PlannedChange, write bool) (why string, err error) {
	connection, err := f.connect()
	if err != nil {
		return "", err
	}
	annotation := c.Reconciler + "/" + vocabulary.AnnotationOwner
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(change.APIVersion, change.Key.Kind))
		if err := connection.client.Get(ctx, client.ObjectKey{Namespace: change.Key.Namespace, Name: change.Key.Name}, object); err != nil {
			return fmt.Errorf("read %s: %w", change.Key, err)
		}
		var value string
		if value, why = restoredOwner(c, object.Namespace, object.Annotations[annotation]); why != "" || !write {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.UID, "resourceVersion": object.ResourceVersion, "annotations": map[string]string{annotation: value},
		}})
		if err != nil {
			return err
		}
		if err := connection.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(steering.FieldManager)); err != nil {
			return fmt.Errorf("annotate %s: %w", change.Key, err)
		}
		return nil
	})
	return why, err
}

// restoredOwner returns the annotation of an object of the original that names the component as the owner. It keeps the uid of the
// original, so that the object counts as one of an earlier component of the name. If the object is not to be taken over, it says why.
func restoredOwner(c inspect.Component, namespace, owner string) (value, why string) {
	own, of := c.Object.GetNamespace(), strings.Split(owner, "/") // group, kind, namespace, name and uid
	switch {
	case len(of) != 5:
		return "", "names no component as its owner"
	case namespace != own:
		return "", fmt.Sprintf("is outside of namespace %s, and stays an object of %s %s/%s", own, of[1], of[2], of[3])
	case of[0] != c.Type.Group || of[1] != c.Type.Kind || of[3] != c.Object.GetName():
		return "", fmt.Sprintf("belongs to %s %s/%s, which is no %s of the name %s in another namespace", of[1], of[2], of[3], c.Type.Kind, c.Object.GetName())
	case of[2] == own:
		return "", fmt.Sprintf("names %s already; its conflict has another cause: \"%s\"", c, c.Command("why"))
	}
	of[2] = own
	return strings.Join(of, "/"), ""
}
