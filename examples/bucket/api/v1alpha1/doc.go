// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the custom resource of the example operator: a Bucket.
//
// +kubebuilder:object:generate=true
// +groupName=bucket.example.com
package v1alpha1
