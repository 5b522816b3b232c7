// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// ownerOutput is what owner prints as JSON and YAML.
type ownerOutput struct {
	typeMeta `json:",inline"`
	// Chain are the objects from the one that was asked for up to the dependent.
	Chain      []objectReference `json:"chain"`
	Reconciler string            `json:"reconciler,omitempty"`
	// Named is the component as the dependent names it. It is not set if all components of the reconciler share the object.
	Named string `json:"named,omitempty"`
	// Component is not set if it does not exist any more.
	Component *componentSummary `json:"component,omitempty"`
}

// objectReference names an object in JSON and YAML.
type objectReference struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
}

func (f *frame) ownerCommand() *cobra.Command {
	var o *output
	command := &cobra.Command{
		Use: "owner " + componentUse, Short: "Show which component an object belongs to",
		Long: "Show which component an object belongs to, by its labels and annotations. For a Pod or a ReplicaSet, the command follows the owner references. " +
			"The exit code is 1 if the object belongs to none.",
		Example: "  corbel owner deployment/corner-web\n  corbel owner pod corner-web-5d4f8-x2x",
		Args:    componentArguments,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.owner(c.Context(), arguments, o)
		},
	}
	o = addOutputFlag(command)
	return command
}

func (f *frame) owner(ctx context.Context, arguments []string, o *output) error {
	kind, name, err := split(arguments)
	if err != nil {
		return err
	}
	if kind == "" {
		return usage("name the kind, too: KIND/NAME")
	}
	reader, err := f.reader()
	if err != nil {
		return err
	}
	t, err := resolve(reader, kind)
	if err != nil {
		return err
	}
	namespace, err := f.namespace()
	if err != nil {
		return err
	}
	origin, err := reader.Owner(ctx, t, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	if o.isText() {
		err = f.printOwner(origin)
	} else {
		err = f.encode(o.format, ownerOutputOf(origin))
	}
	if err == nil && origin.Reconciler == "" {
		return errNotSo
	}
	return err
}

func (f *frame) printOwner(origin inspect.Origin) error {
	var lines [][]cell
	before := ""
	for i, object := range origin.Chain {
		text := object.Kind + " " + strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
		if i > 0 {
			text = branch(before, true) + text
			before = trunk(before, true)
		}
		lines = append(lines, []cell{plain(text)})
	}
	switch {
	case origin.Reconciler == "":
		lines = append(lines, []cell{{text: branch(before, true) + "belongs to no component", whole: true}})
	case origin.Named == "":
		lines = append(lines, []cell{{text: branch(before, true) + "shared by all components of the operator " + origin.Reconciler, whole: true}})
	case origin.Owner == nil:
		lines = append(lines, []cell{{text: branch(before, true) + origin.Named + ", which does not exist any more", whole: true}})
	default:
		c := *origin.Owner
		lines = append(lines, []cell{plain(branch(before, true) + c.String()), colored(string(c.Status.State), stateColor(c)), plain(c.Ready().Message)})
	}
	return f.rows(lines)
}

// referenceTo names a component in JSON and YAML.
func referenceTo(c inspect.Component) objectReference {
	apiVersion, kind := c.Type.ToAPIVersionAndKind()
	return objectReference{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}
}

func ownerOutputOf(origin inspect.Origin) ownerOutput {
	out := ownerOutput{typeMeta: outputOf("Owner"), Reconciler: origin.Reconciler, Named: origin.Named}
	for _, object := range origin.Chain {
		out.Chain = append(out.Chain, objectReference{TypeMeta: object.TypeMeta, Namespace: object.Namespace, Name: object.Name})
	}
	if origin.Owner != nil {
		summary := summaryOf(*origin.Owner)
		out.Component = &summary
	}
	return out
}
