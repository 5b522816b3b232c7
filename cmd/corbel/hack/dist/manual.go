// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/corbel-run/corbel/cmd/corbel/internal/command"
)

// manual returns the completions of the shells and the manual pages of the command.
func manual(r release) ([]file, error) {
	root := command.New()
	root.InitDefaultCompletionCmd()
	var bash, zsh, fish, powershell bytes.Buffer
	for _, write := range []func() error{
		func() error { return root.GenBashCompletionV2(&bash, true) },
		func() error { return root.GenZshCompletion(&zsh) },
		func() error { return root.GenFishCompletion(&fish, true) },
		func() error { return root.GenPowerShellCompletionWithDesc(&powershell) },
	} {
		if err := write(); err != nil {
			return nil, err
		}
	}
	files := []file{
		{"completions/corbel.bash", 0o644, bash.Bytes()}, {"completions/_corbel", 0o644, zsh.Bytes()},
		{"completions/corbel.fish", 0o644, fish.Bytes()}, {"completions/corbel.ps1", 0o644, powershell.Bytes()},
	}
	folder, err := os.MkdirTemp("", "corbel-man-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &r.date, Source: "corbel " + r.version, Manual: "Corbel"}, folder); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/man1/" + page.Name(), 0o644, content})
	}
	return files, nil
}
