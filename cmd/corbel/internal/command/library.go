// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/mod/modfile"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

// libraryModule is the module of Corbel, and commandModule that of this program.
const (
	libraryModule = "github.com/corbel-run/corbel"
	commandModule = libraryModule + "/cmd/corbel"
)

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

// version returns the release that this program is part of.
func version() string { return cmp.Or(release(), "(devel)") }

// release returns the version of the library in this program, which may be that of a commit; empty if the program was built
// from a checkout.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return releaseIn(info)
}

// releaseIn asks for the dependency, because the main module is that of the command, also for "go tool corbel" in a project.
// A library in a workspace or in a folder has no checksum.
func releaseIn(info *debug.BuildInfo) string {
	at := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == libraryModule })
	if at < 0 || info.Deps[at].Replace != nil || info.Deps[at].Sum == "" {
		return ""
	}
	return info.Deps[at].Version
}
