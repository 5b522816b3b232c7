// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/gzipped"
)

const (
	// maxRecord bounds a record as it is stored, in bytes. The API server allows objects of about 1 MiB.
	//
	// Unit: bytes
	// Limit: the record of a Helm release that is adopted, as it is stored.
	maxRecord = 2 << 20
	// maxUnpacked bounds an unpacked record, in bytes. It has the chart with all its files.
	//
	// Unit: bytes
	// Limit: the record of a Helm release that is adopted, when it is decompressed.
	maxUnpacked = 32 << 20
	// maxManifests bounds the manifests in a record, hooks included, in bytes: decoded they take many times as much.
	//
	// Unit: bytes
	// Limit: the manifests in the record of a Helm release that is adopted.
	maxManifests = 8 << 20
)

// StatusDeployed is the status of a revision that Helm has installed, and not replaced.
const StatusDeployed = "deployed"

// Release is a revision of a release.
type Release struct {
	Reference
	// Status is the status of the revision in Helm, such as "deployed" or "pending-upgrade".
	Status string
	// Chart is the name of the chart, ChartVersion its version, and AppVersion the version of the
	// installed program.
	Chart, ChartVersion, AppVersion string
	// DeployedAt is when the revision was rendered; zero if the record does not have it.
	DeployedAt time.Time
	// Values are the values that a user has set.
	Values map[string]any
	// Objects are the objects of the chart, and HookObjects the objects of its hooks, as they were
	// rendered. Objects without a namespace are in the namespace of the release, if their type has
	// namespaces.
	Objects, HookObjects []*unstructured.Unstructured
}

// Flux returns the HelmRelease of Flux that the objects name in their labels; the zero value if they name none. Flux sets these
// labels on all objects before it gives them to Helm, so they are in the record.
func (r *Release) Flux() types.NamespacedName {
	for _, object := range slices.Concat(r.Objects, r.HookObjects) {
		labels := object.GetLabels()
		if name := labels["helm.toolkit.fluxcd.io/name"]; name != "" {
			return types.NamespacedName{Namespace: labels["helm.toolkit.fluxcd.io/namespace"], Name: name}
		}
	}
	return types.NamespacedName{}
}

// record is the part of the JSON that is read.
type record struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Version   int64           `json:"version"`
	Manifest  string          `json:"manifest"`
	Config    json.RawMessage `json:"config"`
	Info      struct {
		Status       string `json:"status"`
		LastDeployed string `json:"last_deployed"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Name       string `json:"name"`
			Version    string `json:"version"`
			AppVersion string `json:"appVersion"`
		} `json:"metadata"`
	} `json:"chart"`
	Hooks []struct {
		Path     string `json:"path"`
		Manifest string `json:"manifest"`
	} `json:"hooks"`
}

// Decode reads the entry "release" of a record. The error is one sentence, and names no value of the record.
func Decode(text []byte) (*Release, error) {
	if len(text) > maxRecord {
		return nil, fmt.Errorf("the record has %d bytes, and at most %d are read", len(text), maxRecord)
	}
	content, err := Unpack(text)
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, errors.New("the record is no JSON of a release")
	}
	release := &Release{
		Reference: Reference{Namespace: r.Namespace, Name: r.Name, Revision: r.Version},
		Status:    r.Info.Status, Chart: r.Chart.Metadata.Name, ChartVersion: r.Chart.Metadata.Version, AppVersion: r.Chart.Metadata.AppVersion,
	}
	switch {
	case r.Name == "" || r.Namespace == "" || r.Version < 1:
		return nil, errors.New("the record has no name, namespace or version of a release")
	case r.Info.Status == "":
		return nil, errors.New("the record has no status of the release")
	}
	// A time that cannot be read is worth no error: it only makes dates in manifests the same.
	release.DeployedAt, _ = time.Parse(time.RFC3339Nano, r.Info.LastDeployed)
	if len(r.Config) > 0 {
		if err := utiljson.Unmarshal(r.Config, &release.Values); err != nil {
			return nil, errors.New("the values in the record are no JSON object")
		}
	}
	size := len(r.Manifest)
	for _, hook := range r.Hooks {
		size += len(hook.Manifest)
	}
	if size > maxManifests {
		return nil, fmt.Errorf("the manifests in the record have %d bytes, and at most %d are read", size, maxManifests)
	}
	if release.Objects, err = objectsIn("the manifest", r.Manifest); err != nil {
		return nil, err
	}
	for _, hook := range r.Hooks {
		objects, err := objectsIn("the hook "+hook.Path, hook.Manifest)
		if err != nil {
			return nil, err
		}
		release.HookObjects = append(release.HookObjects, objects...)
	}
	return release, nil
}

// Unpack decodes base64 and, unless an old version of Helm has stored it as it is, decompresses.
func Unpack(text []byte) ([]byte, error) {
	packed := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(packed, text)
	if err != nil {
		return nil, errors.New("the record is not base64")
	}
	packed = packed[:n]
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		return packed, nil
	}
	content, err := gzipped.Unpack(packed, maxUnpacked)
	switch {
	case errors.Is(err, gzipped.ErrTooLarge):
		return nil, fmt.Errorf("the record has more than %d bytes when it is decompressed", maxUnpacked)
	case err != nil:
		return nil, errors.New("the record cannot be decompressed")
	}
	return content, nil
}

// objectsIn reads the objects of a manifest as Helm does. The text of a mistake is not reported,
// because it may have values of Secrets.
func objectsIn(what, text string) ([]*unstructured.Unstructured, error) {
	objects, err := document.Options{LastKeyWins: true}.Decode("release", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s in the record has documents that are no objects", what)
	}
	return document.WithoutLists(objects), nil
}
