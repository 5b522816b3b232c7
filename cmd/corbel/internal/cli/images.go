// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// imageList is what images prints as JSON and YAML.
type imageList struct {
	typeMeta `json:",inline"`
	Items    []imageSummary `json:"items"`
}

// imageSummary is an image in JSON and YAML.
type imageSummary struct {
	Image  string      `json:"image"`
	UsedBy []imageUser `json:"usedBy"`
}

// imageUser is a container that uses an image, in JSON and YAML.
type imageUser struct {
	Component objectReference `json:"component"`
	Object    string          `json:"object"`
	Container string          `json:"container"`
}

func (f *frame) imagesCommand() *cobra.Command {
	var o *output
	var s *scope
	command := &cobra.Command{
		Use: "images [" + componentUse + "]", Short: "List the images that the dependents of components use",
		Long: "List the images of the pods and pod templates among the dependents of a component, as they are in the cluster. " +
			"Without a name, list those of all components of the namespace.",
		Example:           "  corbel images shop/corner\n  corbel images shop/corner -o name",
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.images(c.Context(), s, o)
		},
	}
	o = addOutputFlag(command, "name")
	s = addScope(command, "list the images of")
	return command
}

func (f *frame) images(ctx context.Context, s *scope, o *output) error {
	type use struct {
		inspect.Image
		by inspect.Component
	}
	var uses []use
	failure := f.eachSet(ctx, s, func(c inspect.Component, dependents []inspect.Dependent, _ error) {
		f.warnUnread(dependents)
		for _, image := range inspect.Images(dependents) {
			uses = append(uses, use{image, c})
		}
	})
	if failure != nil && len(uses) == 0 {
		return failure
	}
	slices.SortStableFunc(uses, func(a, b use) int { return strings.Compare(a.Image.Image, b.Image.Image) })
	list := imageList{typeMeta: outputOf("ImageList"), Items: []imageSummary{}}
	var rows [][]cell
	for _, u := range uses {
		user := imageUser{referenceTo(u.by), u.Dependent.String(), u.Container}
		rows = append(rows, []cell{plain(u.Image.Image), plain(u.by.String()), plain(user.Container), plain(user.Object)})
		if n := len(list.Items); n > 0 && list.Items[n-1].Image == u.Image.Image {
			list.Items[n-1].UsedBy = append(list.Items[n-1].UsedBy, user)
			continue
		}
		list.Items = append(list.Items, imageSummary{u.Image.Image, []imageUser{user}})
	}
	table := f.table("IMAGE", "COMPONENT", "CONTAINER", "OBJECT")
	table.optional, table.distinct = []string{"CONTAINER", "OBJECT"}, true
	if s.isOne() {
		table.optional, table.left[1] = table.optional[:1], true
	}
	var err error
	switch o.format {
	case "json", "yaml":
		err = f.encode(o.format, list)
	case "name":
		for _, image := range list.Items {
			fmt.Fprintln(f.Out, image.Image)
		}
	default:
		err = table.print(rows)
	}
	return errors.Join(failure, err)
}
