// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const (
	// DefaultMaxFileSize is the size that no file may exceed, in bytes.
	DefaultMaxFileSize = 16 << 20
	// DefaultMaxTotalSize is the size that all files together may not exceed, in bytes.
	DefaultMaxTotalSize = 64 << 20
)

// Selection says which files to read. Files and folders whose name starts with
// a dot are not read, unless Hidden says so.
type Selection struct {
	// Extensions are those to read, with the dot; letters in lower case. Without
	// any, all files are read.
	Extensions []string
	// Hidden reads files and folders whose name starts with a dot as well, but
	// for ".git" and those that start with two dots, in which mounted ConfigMaps
	// keep their earlier and current content.
	Hidden bool
	// Include and Exclude are patterns as in path.Match, for the base name or,
	// if they contain a slash, for the path below the root. Without Include,
	// everything is included. Exclude wins.
	Include, Exclude []string
	// TopLevelOnly leaves out the folders below the root.
	TopLevelOnly bool
	// FollowSymlinks reads what symbolic links to files lead to; otherwise
	// such a link is an error.
	FollowSymlinks bool
	// Irregular, if it is not nil, gets what is no regular file, such as a link that is not
	// followed, with why it was not read. Otherwise that is an error.
	Irregular map[string]error
	// MaxFileSize and MaxTotalSize are limits in bytes; the defaults apply if
	// they are not greater than 0.
	MaxFileSize, MaxTotalSize int64
}

func (s Selection) validate() error {
	var errs []error
	for _, pattern := range append(append([]string(nil), s.Include...), s.Exclude...) {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("pattern %q: %w", pattern, err))
		}
	}
	return errors.Join(errs...)
}

// wanted names the extensions, for errors.
func (s Selection) wanted() string {
	if len(s.Extensions) == 0 {
		return ""
	}
	return " (" + strings.Join(s.Extensions, ", ") + ")"
}

// hides reports whether a file or folder with this base name is left out.
func (s Selection) hides(base string) bool {
	if s.Hidden {
		return base == ".git" || strings.HasPrefix(base, "..")
	}
	return strings.HasPrefix(base, ".")
}

// picks reports whether the file with this path below the root is to be read.
func (s Selection) picks(below string) bool {
	extension := strings.ToLower(path.Ext(below))
	wanted := len(s.Extensions) == 0
	for _, e := range s.Extensions {
		wanted = wanted || e == extension
	}
	return wanted && (len(s.Include) == 0 || matchesAny(s.Include, below)) && !matchesAny(s.Exclude, below)
}

func matchesAny(patterns []string, below string) bool {
	for _, pattern := range patterns {
		subject := below
		if !strings.Contains(pattern, "/") {
			subject = path.Base(below)
		}
		if ok, _ := path.Match(pattern, subject); ok {
			return true
		}
	}
	return false
}
