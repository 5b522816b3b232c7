// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// DryRun are functions that Objects call for the requests of a dry run. Every function may be nil.
type DryRun struct {
	// Known returns an object that needs not be read from the server; nil if it does.
	Known func(r Resource, namespace, name string) *unstructured.Unstructured
	// Read is called with every object that was read from the server.
	Read func(r Resource, live *unstructured.Unstructured)
	// BeforeWrite is called before every write but Try. If it returns an error, the write fails
	// with it and is not sent.
	BeforeWrite func() error
	// Answered is called with every object as the server would keep it after a write.
	Answered func(live *unstructured.Unstructured)
}

// DryRun returns Objects that store nothing: each of their writes asks the server for validation,
// admission and its answer. They must not be used to watch.
func (o *Objects) DryRun(d DryRun) *Objects {
	dry := *o
	dry.dryRun = &d
	return &dry
}

// known returns an object that needs not be read.
func (d *DryRun) known(r Resource, namespace, name string) *unstructured.Unstructured {
	if d == nil || d.Known == nil {
		return nil
	}
	return d.Known(r, namespace, name)
}

func (d *DryRun) read(r Resource, live *unstructured.Unstructured) {
	if d != nil && d.Read != nil && live != nil {
		d.Read(r, live)
	}
}

func (d *DryRun) beforeWrite() error {
	if d == nil || d.BeforeWrite == nil {
		return nil
	}
	return d.BeforeWrite()
}

// params returns the parameters of a write.
func (d *DryRun) params(params map[string]string) map[string]string {
	if d != nil {
		params["dryRun"] = metav1.DryRunAll
	}
	return params
}

func (d *DryRun) answered(live *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if d != nil && d.Answered != nil && err == nil {
		d.Answered(live)
	}
	return live, err
}
