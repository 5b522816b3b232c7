// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import "github.com/corbel-run/corbel/pkg/manifests/internal/files"

// FSOption says which files FromFS reads.
type FSOption func(*files.Selection)

// Include restricts FromFS to files that match one of the patterns. A pattern
// is one of path.Match; it is compared with the base name or, if it contains a
// slash, with the path below the root.
func Include(patterns ...string) FSOption {
	return func(s *files.Selection) { s.Include = append(s.Include, patterns...) }
}

// Exclude leaves out files that match one of the patterns, which are like those
// of Include and win over them.
func Exclude(patterns ...string) FSOption {
	return func(s *files.Selection) { s.Exclude = append(s.Exclude, patterns...) }
}

// TopLevelOnly leaves out the folders below the root.
func TopLevelOnly() FSOption {
	return func(s *files.Selection) { s.TopLevelOnly = true }
}

// FollowSymlinks reads the files that symbolic links lead to, as they occur in
// mounted ConfigMaps; without it, a symbolic link is an error. Use it only if
// the file system itself keeps links from leading out of it, as that of os.Root
// does and os.DirFS does not, or if you trust whoever made the links.
func FollowSymlinks() FSOption {
	return func(s *files.Selection) { s.FollowSymlinks = true }
}

// MaxFileSize sets the size in bytes that no file may exceed, by default 16 MiB.
func MaxFileSize(bytes int64) FSOption {
	return func(s *files.Selection) { s.MaxFileSize = bytes }
}

// MaxTotalSize sets the size in bytes that all files together may not exceed,
// by default 64 MiB.
func MaxTotalSize(bytes int64) FSOption {
	return func(s *files.Selection) { s.MaxTotalSize = bytes }
}
