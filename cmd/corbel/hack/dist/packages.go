// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// archive is a packed binary, as the package managers find it.
type archive struct {
	OS, Arch, URL, SHA256, Program string
}

// manifests returns the manifest of krew and the formula of Homebrew.
func manifests(r release, archives []archive) ([]file, error) {
	var files []file
	for _, name := range []string{"corbel.yaml", "corbel.rb"} {
		parsed, err := template.New(name+".tmpl").Option("missingkey=error").ParseFS(templates, "templates/"+name+".tmpl")
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, struct {
			Tag, Version, Source string
			Archives             []archive
		}{r.version, strings.TrimPrefix(r.version, "v"), sourceURL, archives}); err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, out.Bytes()})
	}
	return files, nil
}
