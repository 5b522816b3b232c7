// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"go.yaml.in/yaml/v3"
)

// Access is what a kubeconfig says: a cluster, and who we are there.
type Access struct {
	// Server is the https URL of the API server.
	Server string
	// ServerName is the name that the server's certificate is for, if it is not
	// the host of the URL.
	ServerName string
	// Authorities are the certificates, in PEM, that the server is trusted by;
	// empty for those of the system.
	Authorities []byte
	// Certificate and Key, in PEM, and Token are the credentials. There is a
	// certificate with its key, or a token, or both.
	Certificate, Key []byte
	Token            string
	// DisableCompression asks the server for plain answers.
	DisableCompression bool
}

// Parse reads a kubeconfig in YAML or JSON. The error is an *[Error] with all
// problems.
func Parse(raw []byte) (Access, error) {
	root, problem := syntaxTree(raw)
	if problem != nil {
		return Access{}, &Error{Problems: []Problem{*problem}}
	}
	r := &reader{}
	if r.noAliases(root); len(r.problems) == 0 {
		f := r.file(root)
		access := r.resolve(f)
		if len(r.problems) == 0 {
			return access, nil
		}
	}
	return Access{}, &Error{Problems: r.problems}
}

// file is the form of a kubeconfig.
type file struct {
	apiVersion, kind, current string
	clusters                  []named[cluster]
	users                     []named[user]
	contexts                  []named[context]
}

type named[V any] struct {
	path, name string
	value      V
}

type context struct {
	cluster, user string
}

func (r *reader) file(root *yaml.Node) file {
	f := file{apiVersion: "v1", kind: "Config"}
	r.mapping("", root, fields{
		"apiVersion":      r.text(&f.apiVersion),
		"kind":            r.text(&f.kind),
		"current-context": r.text(&f.current),
		"clusters":        namedItems(r, "cluster", &f.clusters, r.cluster),
		"users":           namedItems(r, "user", &f.users, r.user),
		"contexts":        namedItems(r, "context", &f.contexts, r.context),
		"preferences":     ignored,
		"extensions":      ignored,
	})
	if f.apiVersion != "v1" {
		r.invalid("apiVersion", "must be v1")
	}
	if f.kind != "Config" {
		r.invalid("kind", "must be Config")
	}
	return f
}

// namedItems reads a list of {name: ..., <field>: {...}}.
func namedItems[V any](r *reader, field string, into *[]named[V], read func(path string, value *yaml.Node) V) func(string, *yaml.Node) {
	return func(path string, list *yaml.Node) {
		names := map[string]bool{}
		r.list(path, list, func(path string, value *yaml.Node) {
			item := named[V]{path: path + "." + field}
			r.mapping(path, value, fields{
				"name": r.text(&item.name),
				field:  func(path string, value *yaml.Node) { item.value = read(path, value) },
			})
			switch {
			case item.name == "":
				r.invalid(path+".name", "is missing")
			case names[item.name]:
				r.invalid(path+".name", "is defined more than once (duplicate)")
			}
			names[item.name] = true
			*into = append(*into, item)
		})
	}
}

func (r *reader) context(path string, value *yaml.Node) context {
	var c context
	r.mapping(path, value, fields{
		"cluster": r.text(&c.cluster),
		"user":    r.text(&c.user),
		// Where objects go is said by the component.
		"namespace":  ignored,
		"extensions": ignored,
	})
	return c
}

// resolve follows the current context.
func (r *reader) resolve(f file) Access {
	if len(f.clusters) == 0 {
		r.invalid("clusters", "no cluster is defined")
	}
	if f.current == "" {
		r.invalid("current-context", "is missing")
		return Access{}
	}
	current, ok := find(f.contexts, f.current)
	if !ok {
		r.invalid("current-context", "there is no context %s", quote(f.current))
		return Access{}
	}
	var access Access
	if c, ok := find(f.clusters, current.value.cluster); ok {
		r.useCluster(c, &access)
	} else {
		r.invalid(current.path+".cluster", "there is no cluster %s", quote(current.value.cluster))
	}
	if u, ok := find(f.users, current.value.user); ok {
		r.useUser(u, &access)
	} else {
		r.invalid(current.path+".user", "there is no user %s", quote(current.value.user))
	}
	return access
}

func find[V any](items []named[V], name string) (named[V], bool) {
	for _, item := range items {
		if item.name == name && name != "" {
			return item, true
		}
	}
	return named[V]{}, false
}
