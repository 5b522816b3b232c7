// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Pack packs the tracked files of modules of the repository as a version, into a folder that serves as a module proxy.
// The files are those of the working tree. It runs at the root of the repository.
//
// Usage: pack VERSION PROXY FOLDER...
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: pack VERSION PROXY FOLDER...")
		os.Exit(2)
	}
	for _, folder := range os.Args[3:] {
		if err := pack(os.Args[1], os.Args[2], folder); err != nil {
			fmt.Fprintf(os.Stderr, "pack %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// pack writes the four files of a version of a module.
func pack(version, proxy, folder string) error {
	goMod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	m := module.Version{Path: modfile.ModulePath(goMod), Version: version}
	files, err := tracked(folder)
	if err != nil {
		return err
	}
	versions := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(
		zip.Create(archive, m, files), // without the modules in folders below
		archive.Close(),
		os.WriteFile(filepath.Join(versions, version+".mod"), goMod, 0o644),
		os.WriteFile(filepath.Join(versions, version+".info"), fmt.Appendf(nil, "{\"Version\":%q,\"Time\":%q}\n", version, time.Now().UTC().Format(time.RFC3339)), 0o644),
		os.WriteFile(filepath.Join(versions, "list"), []byte(version+"\n"), 0o644),
	)
}

// tracked returns the files below a folder that git tracks and that exist.
func tracked(folder string) ([]zip.File, error) {
	command := exec.Command("git", "ls-files", "-z")
	command.Dir = folder
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			files = append(files, file{folder, name})
		}
	}
	// The go command adds the licence of the repository to a module in a folder, too.
	isLicence := func(f zip.File) bool { return f.Path() == "LICENSE" }
	if !slices.ContainsFunc(files, isLicence) {
		files = append(files, file{".", "LICENSE"})
	}
	return files, nil
}

// file is a file by its name below the folder of a module.
type file struct{ folder, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(filepath.Join(f.folder, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.folder, f.name)) }
