// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"

	names "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// possible leaves out items that name nothing that can exist on any server. They
// come from a forged record; nobody could ever find out that the object is gone.
func possible(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	if !slices.ContainsFunc(items, impossible) {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), impossible)
}

func impossible(item v1alpha1.InventoryItem) bool {
	return item.Name == "" || len(names.IsPathSegmentName(item.Name)) > 0 ||
		item.Namespace != "" && len(validation.IsDNS1123Label(item.Namespace)) > 0 ||
		item.Group != "" && len(validation.IsDNS1123Subdomain(item.Group)) > 0 ||
		len(validation.IsDNS1035Label(strings.ToLower(item.Version))) > 0 ||
		len(validation.IsDNS1035Label(strings.ToLower(item.Kind))) > 0
}
