// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/types"
)

// parameters is a template that makes parameters. It may be used by several
// goroutines at once.
type parameters struct {
	sum
	err   error
	file  string
	texts *Texts
}

var _ manifests.ParameterTransformer = &parameters{}

// NewParameters returns a transformer for manifests.Transform that renders a file: its output,
// which has to be a map in YAML or JSON, replaces the parameters. The template sees the former
// parameters as .Values; of the component it sees nothing, and it cannot look up objects. The file
// is read and parsed once, here.
//
// If there are mistakes, the transformer is usable nevertheless: it returns the
// same error whenever it is called.
func NewParameters(fsys fs.FS, file string, options Options) (manifests.ParameterTransformer, error) {
	p := &parameters{file: file}
	// There is no context that could hold a client.
	options.DisableLookup = true
	read, err := files.Read(fsys, file, files.Selection{Hidden: true, MaxFileSize: maxSource})
	switch {
	case err != nil:
		p.err = err
	case len(read) != 1 || read[0].Path != file:
		p.err = fmt.Errorf("%s: it is a folder, want a file", file)
	default:
		p.sum = digest.OfValues("parameters", file, string(read[0].Data), options)
		p.texts, p.err = newTexts(file, map[string]string{file: string(read[0].Data)}, []string{file}, options)
	}
	return p, p.err
}

// TransformParameters implements manifests.ParameterTransformer. Its errors are like the errors of
// Generator.Generate.
func (p *parameters) TransformParameters(namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error) {
	if p.err != nil {
		return nil, p.err
	}
	texts, err := p.texts.Render(context.Background(), namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	value, err := document.Value([]byte(texts[p.file]))
	if err != nil {
		return nil, fmt.Errorf("%s (rendered): %w", p.file, err)
	}
	if value == nil {
		return types.UnstructurableMap{}, nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s (rendered): %w", p.file, errors.New("want a map"))
	}
	return types.UnstructurableMap(values), nil
}
