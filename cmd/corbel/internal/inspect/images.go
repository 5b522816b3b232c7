// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"slices"
	"strings"
)

// Image is an image that a container of a dependent uses.
type Image struct {
	// Image is the reference, as the object has it.
	Image string
	// Container is the name of the container.
	Container string
	// Dependent is the object.
	Dependent Dependent
}

// Images returns the images of the containers of the dependents: of pods and of all that has a pod template, also of types
// that are not built in.
func Images(dependents []Dependent) []Image {
	var images []Image
	for _, d := range dependents {
		if d.Object != nil {
			found := imagesIn(d.Object.Object)
			for i := range found {
				found[i].Dependent = d
			}
			images = append(images, found...)
		}
	}
	slices.SortStableFunc(images, func(a, b Image) int { return strings.Compare(a.Image, b.Image) })
	return images
}

// imagesIn looks for lists of containers at any place.
func imagesIn(value any) []Image {
	var images []Image
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "containers", "initContainers", "ephemeralContainers":
				images = append(images, imagesOf(inner)...)
			case "status", "metadata":
			default:
				images = append(images, imagesIn(inner)...)
			}
		}
	case []any:
		for _, inner := range v {
			images = append(images, imagesIn(inner)...)
		}
	}
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.Container, b.Container) })
	return images
}

func imagesOf(containers any) []Image {
	list, _ := containers.([]any)
	var images []Image
	for _, element := range list {
		container, _ := element.(map[string]any)
		image, _ := container["image"].(string)
		name, _ := container["name"].(string)
		if image != "" {
			images = append(images, Image{Image: image, Container: name})
		}
	}
	return images
}
