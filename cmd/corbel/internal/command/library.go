// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/mod/modfile"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

// libraryModule is the module of Corbel.
const libraryModule = "github.com/corbel-run/corbel"

// findLibrary returns what a project requires: the release that this program is part of, or a checkout. A
// program that was built from a checkout knows where that is.
func findLibrary(folder string) (scaffold.Corbel, error) {
	if folder == "" {
		if version := release(); version != "" {
			return scaffold.Corbel{Version: version}, nil
		}
		_, source, _, _ := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(source), "..", "..", "..", "..")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return scaffold.Corbel{}, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil || modfile.ModulePath(text) != libraryModule {
		return scaffold.Corbel{}, fmt.Errorf("this program is no release of Corbel, and %s is no checkout of it: name one with --corbel", folder)
	}
	return scaffold.Corbel{Version: "v0.0.0", Folder: folder}, nil
}

// version returns the version of the program, as the go command has stamped it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// release returns the version of the module that this program was built from, which may be that of a commit;
// empty if it was built from a checkout, which has no checksum.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != libraryModule || info.Main.Replace != nil || info.Main.Sum == "" {
		return ""
	}
	return info.Main.Version
}
