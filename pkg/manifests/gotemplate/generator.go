// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// maxSource limits the text of one template.
	//
	// Limit: the text of one template of package gotemplate.
	maxSource = 1 << 20
	// maxTexts and maxTextBytes limit the texts that a generator keeps the objects of.
	maxTexts     = 1000
	maxTextBytes = 16 << 20
)

// generator renders Go templates. It may be used by several goroutines at once.
type generator struct {
	sum
	err   error
	texts *Texts
	// read are the objects of texts that were rendered recently.
	read *cache.Cache[[]*unstructured.Unstructured]
}

var _ manifests.Generator = &generator{}

type sum = digest.Sum

// New returns a generator that renders the *.yaml, *.yml, *.json and *.tpl files below the root,
// which is a folder of the file system ("." for all of it) or a single file. Files with a name that
// starts with an underscore are not rendered, they only define templates for other files. Files and
// folders with a name that starts with a dot are left out. The files are read and parsed once,
// here.
//
// If options are invalid or templates do not parse, the error lists all mistakes, with file and
// line. The generator is usable even then: it returns the same error whenever it is called. So the
// caller has the choice to stop the operator, or to go on and let the mistake show up at the
// components.
func New(fsys fs.FS, root string, options Options) (manifests.Generator, error) {
	g := &generator{read: cache.New[[]*unstructured.Unstructured](maxTexts, maxTextBytes)}
	complete, err := options.complete()
	if g.err = err; err != nil {
		return g, g.err
	}
	type content struct {
		sources map[string]string
		err     error // of the files that could not be read
	}
	// The file system may hang.
	read, err := timeout.Run(context.Background(), timeout.New("templates in "+path.Clean(root)), complete.Timeout, func(context.Context) (content, error) {
		found, err := files.Read(fsys, root, files.Selection{
			Extensions: []string{".yaml", ".yml", ".json", ".tpl"}, MaxFileSize: maxSource,
		})
		c := content{sources: make(map[string]string, len(found)), err: err}
		for _, file := range found {
			c.sources[file.Path] = string(file.Data)
		}
		return c, nil
	})
	if g.err = err; err != nil {
		return g, g.err
	}
	g.sum = digest.OfValues("gotemplate", read.sources, options)
	g.texts, err = NewTexts(path.Clean(root), read.sources, options)
	g.err = errors.Join(read.err, err)
	return g, g.err
}

func missingKey(strict bool) string {
	if strict {
		return "missingkey=error"
	}
	return "missingkey=zero"
}

// Source names the kind of the generator.
func (g *generator) Source() v1alpha1.Source { return v1alpha1.Source{Generator: "gotemplate"} }

// Generate implements manifests.Generator. The lines of mistakes count in the rendered text.
func (g *generator) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if g.err != nil {
		return nil, g.err
	}
	data, err := dataFor(ctx, namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	return timeout.Run(ctx, g.texts.runner, g.texts.options.Timeout, func(ctx context.Context) ([]client.Object, error) {
		objects := []client.Object{}
		err := g.texts.render(ctx, data, func(name, text string) error {
			decoded, err := g.decode(name, text)
			for _, object := range decoded {
				copied := object.DeepCopy()
				renders.NoteOrigin(ctx, copied, name)
				objects = append(objects, copied)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return objects, nil
	})
}

// decode returns the objects of a text, which must not be changed. They are read once
// as long as the template gives the same.
func (g *generator) decode(name, text string) ([]*unstructured.Unstructured, error) {
	key := cache.KeyOf(map[string]string{name: text})
	if objects, ok := g.read.Get(key); ok {
		return objects, nil
	}
	objects, err := document.Decode(name+" (rendered)", []byte(text))
	if err == nil {
		g.read.Put(key, objects, int64(len(text)))
	}
	return objects, err
}

// Options are the options of New.
type Options struct {
	// LeftDelimiter begins an action.
	//
	// Default: "{{"
	LeftDelimiter string
	// RightDelimiter ends an action.
	//
	// Default: "}}"
	RightDelimiter string
	// Strict makes it an error to use a key that does not exist.
	//
	// Default: false: an empty text, as in Helm
	Strict bool
	// DisableLookup makes the function lookup fail.
	//
	// Default: false
	DisableLookup bool
	// Functions are added to the functions of templates, or replace them. Several goroutines may call them at
	// once.
	//
	// Default: none
	Functions template.FuncMap
	// Timeout limits one rendering; the deadline of the context counts as well.
	//
	// Default: 10 minutes
	Timeout time.Duration
	// Limits are the limits of one rendering.
	//
	// Default: those of manifests.TemplateLimits
	Limits manifests.TemplateLimits
}

const defaultTimeout = 10 * time.Minute

// complete fills in the defaults, and checks the rest.
func (o Options) complete() (Options, error) {
	o.LeftDelimiter = cmp.Or(o.LeftDelimiter, "{{")
	o.RightDelimiter = cmp.Or(o.RightDelimiter, "}}")
	o.Timeout = files.PositiveOr(o.Timeout, defaultTimeout)
	var errs []error
	for _, delimiter := range []string{o.LeftDelimiter, o.RightDelimiter} {
		if strings.ContainsAny(delimiter, " \t\r\n\"`") || strings.HasPrefix(delimiter, "-") {
			errs = append(errs, fmt.Errorf("delimiter %q: it must not contain blanks or quotes, nor start with a dash", delimiter))
		}
	}
	if o.LeftDelimiter == o.RightDelimiter {
		errs = append(errs, fmt.Errorf("delimiter %q: left and right must differ", o.LeftDelimiter))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Functions)) {
		if err := checkFunction(name, o.Functions[name]); err != nil {
			errs = append(errs, fmt.Errorf("function %q: %w", name, err))
		}
	}
	o.Functions = maps.Clone(o.Functions)
	return o, errors.Join(errs...)
}

// checkFunction refuses functions that text/template would answer with a panic.
func checkFunction(name string, f any) (err error) {
	if slices.Contains([]string{"include", "tpl", "lookup"}, name) || strings.HasPrefix(name, "_") {
		return errors.New("this name is in use")
	}
	if value := reflect.ValueOf(f); value.Kind() != reflect.Func || value.IsNil() {
		return fmt.Errorf("it is %T, want a function", f)
	}
	defer guard.Into(&err)
	template.New("").Funcs(template.FuncMap{name: f})
	return nil
}
