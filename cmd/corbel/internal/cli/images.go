// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

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
	Object    string `json:"object"`
	Container string `json:"container"`
}

func (f *frame) imagesCommand() *cobra.Command {
	var o *output
	command := &cobra.Command{
		Use: "images " + componentUse, Short: "List the images that the dependents of a component use",
		Long:    "List the images that the dependents of a component use: those of pods and of all objects with a pod template, as they are in the cluster.",
		Example: "  corbel images shop/corner\n  corbel images shop/corner -o name",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.images(c.Context(), arguments, o)
		},
	}
	o = addOutputFlag(command, "name")
	return command
}

func (f *frame) images(ctx context.Context, arguments []string, o *output) error {
	_, dependents, _, err := f.dependents(ctx, arguments)
	if err != nil {
		return err
	}
	f.warnUnread(dependents)
	list := imageList{typeMeta: outputOf("ImageList"), Items: []imageSummary{}}
	var rows [][]cell
	for _, image := range inspect.Images(dependents) {
		user := imageUser{image.Dependent.String(), image.Container}
		rows = append(rows, []cell{plain(image.Image), plain(user.Container), plain(user.Object)})
		if n := len(list.Items); n > 0 && list.Items[n-1].Image == image.Image {
			list.Items[n-1].UsedBy = append(list.Items[n-1].UsedBy, user)
			continue
		}
		list.Items = append(list.Items, imageSummary{image.Image, []imageUser{user}})
	}
	switch o.format {
	case "json", "yaml":
		return f.encode(o.format, list)
	case "name":
		for _, image := range list.Items {
			if _, err := fmt.Fprintln(f.Out, image.Image); err != nil {
				return err
			}
		}
		return nil
	}
	return f.table("IMAGE", "CONTAINER", "OBJECT").print(rows)
}
