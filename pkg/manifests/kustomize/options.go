// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
)

// Options are the options of New. The zero value builds what is there, without
// templates.
type Options struct {
	// Templates makes files Go templates. By default there are none.
	Templates *Templates
	// Decryptor decrypts the files when they are read, before anything else
	// looks at them.
	Decryptor manifests.Decryptor
	// IgnoreFile is the name of the ignore file in the root, by default
	// ".corbelignore". It need not exist.
	IgnoreFile string
	// FollowSymlinks reads what symbolic links to files lead to. See
	// manifests.FollowSymlinks for when this is safe. A link that is not followed, that is
	// broken or that leads to a folder is an error only if a kustomization refers to it.
	FollowSymlinks bool
	// Timeout limits one rendering, by default 30 s; the deadline of the context
	// counts as well.
	Timeout time.Duration
	// Limits are the limits of one rendering.
	Limits Limits
}

// Templates says which files are templates, and how they are rendered. The
// options of package gotemplate hold delimiters, functions and limits.
type Templates struct {
	gotemplate.Options
	// Suffix restricts the templates to files whose name ends like this, such
	// as ".tmpl". By default all text files are templates.
	Suffix string
	// TrimSuffix gives the rendered file the name without the suffix, so that
	// kustomizations refer to "a.yaml" if there is "a.yaml.tmpl".
	TrimSuffix bool
}

// Limits keep a kustomization from taking all memory. A limit that is not
// greater than 0 has its default.
type Limits struct {
	// FileBytes limits the size of each file, by default 16 MiB.
	FileBytes int64
	// TotalBytes limits the size of all files together, and that of each file once its
	// aliases are expanded, by default 64 MiB. A build may load four times as much if it
	// refers to files more than once.
	TotalBytes int64
	// Kustomizations limits how many kustomizations a build may go through,
	// counting one every time that it is referred to, by default 1,000.
	Kustomizations int
	// Values limits to how many values the aliases of a YAML file may expand,
	// by default 1,000,000.
	Values int
	// OutputBytes limits the result, by default 32 MiB.
	OutputBytes int64
}

const (
	defaultTimeout    = 30 * time.Second
	defaultIgnoreFile = ".corbelignore"
	// maxNesting limits how deep kustomizations refer to each other.
	maxNesting = 64
)

func (o Options) complete() Options {
	if o.IgnoreFile == "" {
		o.IgnoreFile = defaultIgnoreFile
	}
	o.Timeout = positiveOr(o.Timeout, defaultTimeout)
	o.Limits.TotalBytes = positiveOr(o.Limits.TotalBytes, files.DefaultMaxTotalSize)
	o.Limits.Kustomizations = positiveOr(o.Limits.Kustomizations, 1000)
	o.Limits.Values = positiveOr(o.Limits.Values, 1_000_000)
	o.Limits.OutputBytes = positiveOr(o.Limits.OutputBytes, 32<<20)
	return o
}

func positiveOr[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}
