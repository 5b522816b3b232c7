// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

// maxIndex limits the size of the index of a repository, in bytes.
const maxIndex = 64 << 20

// Repositories fetches charts of repositories, which are registries or web servers with an index. It reads each index once.
type Repositories struct {
	Client  Client
	indexes map[string]index
}

// index is the index of a repository, or why there is none.
type index struct {
	Entries map[string][]entry
	err     error
}

// entry is a version of a chart.
type entry struct {
	Version string
	URLs    []string
	Digest  string
}

// FetchVersion fetches the newest version of a chart that fits a range.
func (r *Repositories) FetchVersion(ctx context.Context, repository, name, version string) ([]byte, error) {
	if strings.HasPrefix(repository, "oci://") {
		source := strings.TrimSuffix(repository, "/") + "/" + name
		if _, err := semver.NewVersion(version); err == nil { // as Helm does: a tag may be v1.0.0, which no range finds
			source += ":" + version
		}
		chart, err := r.Client.fetch(ctx, source, version)
		return chart.Data, err
	}
	base, err := url.Parse(repository)
	if err != nil || base.User != nil {
		return nil, errors.New("the address of its repository cannot be read, or holds a user or a password: use https://HOST/PATH or oci://REGISTRY/PATH")
	}
	from := public(repository)
	entries, err := r.entries(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("the index of the repository %s cannot be fetched: %w", from, err)
	}
	if len(entries[name]) == 0 {
		return nil, fmt.Errorf("the repository %s has no such chart: check its name, and the address", from)
	}
	found, err := find(entries[name], version)
	if err != nil {
		return nil, fmt.Errorf("the repository %s cannot be used: %w", from, err)
	}
	address, err := resolve(base, found.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("the repository %s has no valid address for the version %s", from, found.Version)
	}
	chart, err := r.Client.Fetch(ctx, address)
	if err != nil {
		return nil, err
	}
	if want := "sha256:" + strings.TrimPrefix(found.Digest, "sha256:"); found.Digest != "" && digestOf(chart.Data) != want {
		return nil, fmt.Errorf("the chart %s has the digest %s, and the index of the repository %s has %s: repeat the command, or tell the owner of the repository",
			chart.Origin, digestOf(chart.Data), from, want)
	}
	return chart.Data, nil
}

// entries returns the versions of the charts that a repository has, by their names.
func (r *Repositories) entries(ctx context.Context, base *url.URL) (map[string][]entry, error) {
	key := base.String()
	if known, ok := r.indexes[key]; ok {
		return known.Entries, known.err
	}
	if r.indexes == nil {
		r.indexes = map[string]index{}
	}
	var read index
	if base.Scheme != "https" && !(base.Scheme == "http" && r.Client.PlainHTTP) {
		read.err = errors.New("use https, or --plain-http if the server has no TLS")
	} else {
		ctx, cancel := withLimit(ctx)
		defer cancel()
		address := base.JoinPath("index.yaml")
		text, err := r.Client.download(ctx, address, maxIndex)
		if err != nil {
			read.err = explained(ctx, address, err)
		} else if err := yaml.Unmarshal(text, &read); err != nil || read.Entries == nil {
			read.err = errors.New("its index.yaml is not valid: check the address")
		}
	}
	r.indexes[key] = read
	return read.Entries, read.err
}

// find returns the entry with exactly this version, or else the newest one that fits the range.
func find(entries []entry, version string) (entry, error) {
	var all []*semver.Version
	by := map[string]entry{}
	for _, e := range entries {
		if len(e.URLs) == 0 {
			continue
		}
		if e.Version == version {
			return e, nil
		}
		if parsed, err := semver.NewVersion(e.Version); err == nil {
			all, by[e.Version] = append(all, parsed), e
		}
	}
	newestFirst(all)
	fits, err := newest(all, version)
	return by[fits], err
}

// resolve returns the address that an index has for a chart. One without a server is relative to the repository, and has its
// query.
func resolve(base *url.URL, reference string) (string, error) {
	parsed, err := url.Parse(reference)
	if err != nil || parsed.IsAbs() {
		return reference, err
	}
	address := base.JoinPath("/").ResolveReference(parsed)
	if address.Host == base.Host { // another server gets no token
		address.RawQuery = base.RawQuery
	}
	return address.String(), nil
}
