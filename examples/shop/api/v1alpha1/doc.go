// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the custom resources of the example operator: a Shop, and an Advert for one.
//
// +kubebuilder:object:generate=true
// +groupName=shop.example.com
package v1alpha1
