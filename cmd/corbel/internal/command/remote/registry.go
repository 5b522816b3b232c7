// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/helmpath"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// The types of the parts of a chart in a registry.
const (
	configType       = "application/vnd.cncf.helm.config.v1+json"
	chartType        = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	formerChartType  = "application/tar+gzip"
	maxManifest      = 4 << 20
	maxIndexed       = 64 // manifests of an index that are looked at
	maxNamedVersions = 5  // versions that an error names
)

// fromRegistry fetches a chart of a registry. Without a version in the address, it is the newest one that fits the range.
func (c Client) fromRegistry(ctx context.Context, source, versions string, plainHTTP bool) (Chart, error) {
	reference, version, err := parse(source)
	if err != nil {
		return Chart{}, err
	}
	repository, err := c.repository(reference, plainHTTP)
	if err != nil {
		return Chart{}, err
	}
	if reference.Reference == "" {
		all, err := versionsOf(ctx, repository)
		if err != nil {
			return Chart{}, err
		}
		if version, err = newest(all, versions); err != nil {
			return Chart{}, err
		}
		reference.Reference = tagOf(version)
	}
	manifest, err := repository.Resolve(ctx, reference.Reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return Chart{}, missing(ctx, repository, versionOf(reference.Reference))
	} else if err != nil {
		return Chart{}, err
	}
	layer, err := chartLayer(ctx, repository, manifest)
	if err != nil {
		return Chart{}, err
	}
	data, err := content.FetchAll(ctx, repository, layer)
	if err != nil {
		return Chart{}, err
	}
	if !isPacked(data) {
		return Chart{}, errNoChart
	}
	chart := Chart{Origin: "oci://" + reference.Registry + "/" + reference.Repository, Digest: manifest.Digest.String(), Data: data}
	if version != "" {
		chart.Origin += ":" + version
	}
	return chart, nil
}

// parse splits an address into a reference of a registry, and the version that it names. As Helm does, it writes
// the plus of a version as an underscore, because a tag has no plus. A digest takes precedence over a version.
func parse(source string) (reference registry.Reference, version string, err error) {
	name, digest, _ := strings.Cut(source, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name, version = name[:colon], name[colon+1:]
	}
	full := name
	switch {
	case digest != "":
		full += "@" + digest
	case version != "":
		full += ":" + tagOf(version)
	}
	if reference, err = registry.ParseReference(full); err != nil {
		err = fmt.Errorf("the address is not oci://REGISTRY/PATH, :VERSION and @sha256:DIGEST: %w", err)
	}
	return reference, version, err
}

func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

func versionOf(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// repository returns a client of a repository, with the credentials that Helm would use.
func (c Client) repository(reference registry.Reference, plainHTTP bool) (*remote.Repository, error) {
	repository := &remote.Repository{Reference: reference, PlainHTTP: plainHTTP, MaxMetadataBytes: maxManifest}
	options := credentials.StoreOptions{DetectDefaultNativeStore: true}
	store, err := credentials.NewStore(cmp.Or(os.Getenv("HELM_REGISTRY_CONFIG"), helmpath.ConfigPath("registry/config.json")), options)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of Helm: %w", err)
	}
	docker, err := credentials.NewStoreFromDocker(options)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of docker: %w", err)
	}
	client := &auth.Client{
		Client: c.http(), Cache: auth.NewCache(),
		Credential: credentials.Credential(credentials.NewStoreWithFallbacks(store, docker)),
	}
	client.SetUserAgent("corbel")
	repository.Client = client
	return repository, nil
}

var errNoRepository = errors.New("the registry has no such chart: check the address, and whether you are logged in")

// versionsOf returns the versions that a repository has, the newest one first.
func versionsOf(ctx context.Context, repository *remote.Repository) (found []*semver.Version, err error) {
	err = repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			if version, err := semver.StrictNewVersion(versionOf(tag)); err == nil {
				found = append(found, version)
			}
		}
		return nil
	})
	newestFirst(found)
	answer := &errcode.ErrorResponse{}
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		err = errNoRepository
	}
	return found, err
}

func newestFirst(versions []*semver.Version) {
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
}

// anyRelease is the range of all versions but pre-releases.
const anyRelease = "*"

// newest returns the first version that fits a range.
func newest(all []*semver.Version, versions string) (string, error) {
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return "", fmt.Errorf("%q is no range of versions: %w", versions, err)
	}
	for _, version := range all {
		if constraint.Check(version) {
			return version.Original(), nil
		}
	}
	if versions == anyRelease {
		return "", fmt.Errorf("there is no release of it%s: name a version", named(all))
	}
	return "", fmt.Errorf("there is no version of it that fits %s%s: name another range", versions, named(all))
}

// missing says which versions there are in place of one.
func missing(ctx context.Context, repository *remote.Repository, version string) error {
	all, err := versionsOf(ctx, repository)
	if errors.Is(err, errNoRepository) {
		return err
	}
	return fmt.Errorf("the registry has no %s of it%s: name another version", version, named(all))
}

// named names the newest versions.
func named(all []*semver.Version) string {
	var names []string
	for _, version := range all[:min(maxNamedVersions, len(all))] {
		names = append(names, version.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ", but " + strings.Join(names, ", ")
}

// chartLayer returns the packed chart that a manifest, or the first manifest of a chart in an index, names.
func chartLayer(ctx context.Context, repository *remote.Repository, at ocispec.Descriptor) (ocispec.Descriptor, error) {
	candidates := []ocispec.Descriptor{at}
	if at.MediaType == ocispec.MediaTypeImageIndex {
		var index ocispec.Index
		if err := fetchJSON(ctx, repository, at, &index); err != nil {
			return at, err
		}
		candidates = index.Manifests[:min(maxIndexed, len(index.Manifests))]
	}
	config := at.MediaType
	for _, candidate := range candidates {
		if candidate.MediaType != ocispec.MediaTypeImageManifest {
			continue
		}
		var manifest ocispec.Manifest
		if err := fetchJSON(ctx, repository, candidate, &manifest); err != nil {
			return at, err
		}
		if config = manifest.Config.MediaType; config != configType {
			continue
		}
		for _, layer := range manifest.Layers {
			switch {
			case layer.MediaType != chartType && layer.MediaType != formerChartType:
			case layer.Size < 0 || layer.Size > maxChart:
				return at, errTooLarge
			default:
				return layer, nil
			}
		}
		return at, errors.New("it is not a Helm chart: its manifest has no chart")
	}
	return at, fmt.Errorf("it is not a Helm chart, but an artifact of the type %s", config)
}

// fetchJSON fetches a manifest.
func fetchJSON(ctx context.Context, repository *remote.Repository, at ocispec.Descriptor, into any) error {
	if at.Size < 0 || at.Size > maxManifest {
		return fmt.Errorf("its manifest is larger than %d MiB", maxManifest>>20)
	}
	text, err := content.FetchAll(ctx, repository, at)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("its manifest is not valid: %w", err)
	}
	return nil
}
