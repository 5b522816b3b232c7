// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The comments around what is generated in the document.
const (
	beginMarker = "<!-- measured: written by `make bench` -->\n"
	end         = "<!-- end of measured -->"
)

// Publish writes the tables between the comments of performance.md, which it makes if
// there is none, and the chart beside it.
func (r *Report) Publish(folder string) error {
	path := filepath.Join(folder, "performance.md")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content = []byte("# Performance\n\n![chart](performance.svg)\n\n" + beginMarker + end + "\n")
	} else if err != nil {
		return err
	}
	text, err := r.replace(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "performance.svg"), []byte(r.Chart()), 0o644)
}

// replace returns the text with the tables between the comments.
func (r *Report) replace(text string) (string, error) {
	before, rest, opened := strings.Cut(text, beginMarker)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("the comments %q and %q are missing", strings.TrimSpace(beginMarker), end)
	}
	return before + beginMarker + "\n" + r.Page() + "\n" + end + after, nil
}
