// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func ExampleTypeInfo_Matches() {
	providers := v1alpha1.TypeInfo{Group: "*.crossplane.io", Kind: "*"}
	fmt.Println(providers.Matches("aws.crossplane.io", "Bucket"))
	fmt.Println(providers.Matches("s3.aws.crossplane.io", "Bucket"))
	fmt.Println(providers.Matches("crossplane.io", "Bucket"))
	// Output:
	// true
	// true
	// false
}
