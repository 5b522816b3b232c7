// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// folder is where the pages are, below the root of the repository.
const folder = "docs/reference"

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write writes all pages.
func write(root string) error {
	pages, err := build(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(root, folder, name), []byte(pages[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reference are the sources, and what the comments in them lack for the pages.
type reference struct {
	*source
	lacking []string
}

// lack notes that the comment about something has to be completed.
func (r *reference) lack(format string, args ...any) {
	r.lacking = append(r.lacking, fmt.Sprintf(format, args...))
}

// require notes what the comment about something lacks: sentences, or lines with the keywords.
func (r *reference) require(what string, c comment, keys ...string) {
	if len(c.paragraphs) == 0 {
		r.lack("the comment of %s lacks a sentence", what)
	}
	for _, key := range keys {
		if c.values[key] == "" {
			r.lack("the comment of %s lacks a line \"%s: ...\"", what, key)
		}
	}
}

// build returns all pages by the names of their files, or all that the comments in the sources lack.
func build(root string) (map[string]string, error) {
	s, err := load(root, "api", "pkg", "internal", "cmd/corbel/internal", "cmd/corbel/ui")
	if err != nil {
		return nil, err
	}
	r := &reference{source: s}
	pages, errs := map[string]string{}, []error{}
	for name, write := range map[string]func() (*page, error){
		"annotations.md": r.annotations,
		"options.md":     r.options,
		"spec.md":        r.spec,
		"reasons.md":     r.reasonsPage,
		explained:        r.explanations,
		"status.md":      r.status,
		"metrics.md":     r.metrics,
		"limits.md":      r.limits,
		"plan.md":        r.plan,
		"cli.md":         r.cli,
	} {
		p, err := write()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		pages[name] = p.String()
	}
	slices.Sort(r.lacking)
	for _, text := range slices.Compact(r.lacking) {
		errs = append(errs, errors.New(text))
	}
	return pages, errors.Join(errs...)
}
