// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrecord

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/helmrelease"
)

// Further values of the status of a release.
const (
	// StatusPending is the status of a revision that is in the making: Helm refuses to upgrade the release.
	StatusPending = "pending-upgrade"
	// StatusSuperseded is the status of a revision that has a later one.
	StatusSuperseded = "superseded"
)

const (
	// maxName is how long Helm lets the name of a release be, in characters.
	//
	// Limit: the name of a Helm release that a component becomes; it is the limit of Helm.
	maxName = 53
	// maxSecret is how large a record can be: the API server allows a Secret of 1 MiB.
	//
	// Unit: bytes
	// Limit: the record of a Helm release that a component becomes, as it is stored.
	maxSecret = 1<<20 - 16<<10
)

// Keys of the annotations of hooks.
const (
	// HookKey is that which says when an object runs.
	HookKey    = "helm.sh/hook"
	hookWeight = "helm.sh/hook-weight"
	hookDelete = "helm.sh/hook-delete-policy"
)

// CheckName returns an error if a release cannot have the name.
func CheckName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(name) > maxName {
		problems = append(problems, fmt.Sprintf("it has %d characters, and Helm allows %d", len(name), maxName))
	}
	if len(problems) > 0 {
		return fmt.Errorf("%q is no name of a Helm release: %s", name, strings.Join(problems, ", "))
	}
	return nil
}

// Record returns the Secret of a revision, as Helm stores it: what helmrelease.Decode reads, the description, which Helm prints
// with the status, and the file that each object comes from. Of the chart it has the name, the versions and the values, which
// "helm upgrade --reuse-values" needs, and no files.
func Record(r *helmrelease.Release, chartValues map[string]any, description string, file func(*unstructured.Unstructured) string) (*corev1.Secret, error) {
	var manifest strings.Builder
	for _, object := range r.Objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		manifest.WriteString("---\n")
		if source := file(object); source != "" {
			fmt.Fprintf(&manifest, "# Source: %s\n", source)
		}
		manifest.Write(text)
	}
	hooks := []map[string]any{}
	for _, object := range r.HookObjects {
		hook, err := hookOf(object, file(object))
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, hook)
	}
	at := r.DeployedAt.UTC().Format(time.RFC3339Nano)
	text, err := pack(map[string]any{
		"name": r.Name, "namespace": r.Namespace, "version": r.Revision, "manifest": manifest.String(), "hooks": hooks, "config": r.Values,
		"info":  map[string]any{"status": r.Status, "description": description, "first_deployed": at, "last_deployed": at},
		"chart": map[string]any{"metadata": map[string]any{"apiVersion": "v2", "name": r.Chart, "version": r.ChartVersion, "appVersion": r.AppVersion}, "values": chartValues},
	})
	if err != nil {
		return nil, fmt.Errorf("the record of revision %d of %s: %w", r.Revision, r.Title(), err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.RecordName(),
			Labels: map[string]string{
				"owner": "helm", "name": r.Name, "version": strconv.FormatInt(r.Revision, 10), "status": r.Status, "createdAt": strconv.FormatInt(r.DeployedAt.Unix(), 10),
			},
		},
		Type: helmrelease.SecretType, Data: map[string][]byte{helmrelease.Entry: text},
	}, nil
}

// hookOf is a hook as a record has it. Its annotations say when Helm runs it.
func hookOf(object *unstructured.Unstructured, file string) (map[string]any, error) {
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	annotations := object.GetAnnotations()
	weight, _ := strconv.Atoi(annotations[hookWeight]) // Helm takes what is no number as 0
	return map[string]any{
		"name": object.GetName(), "kind": object.GetKind(), "path": cmp.Or(file, object.GetName()), "manifest": string(text), "weight": weight,
		"events": split(annotations[HookKey]), "delete_policies": split(cmp.Or(annotations[hookDelete], "before-hook-creation")),
		"last_run": map[string]any{"phase": "Unknown"},
	}, nil
}

// split returns the words of an annotation of a hook.
func split(list string) []string {
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Compact(words)
}

// SetStatus changes the status of the revision in a record, and nothing else of it.
func SetStatus(secret *corev1.Secret, status string) error {
	about := fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
	content, err := helmrelease.Unpack(secret.Data[helmrelease.Entry])
	if err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber() // values keep their digits
	var release map[string]any
	err = decoder.Decode(&release)
	info, ok := release["info"].(map[string]any)
	if err != nil || !ok {
		return fmt.Errorf("%s is no record of a release", about)
	}
	info["status"] = status
	text, err := pack(release)
	if err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	secret.Data[helmrelease.Entry] = text
	secret.Labels["status"] = status
	return nil
}

// pack is the inverse of helmrelease.Unpack.
func pack(release map[string]any) ([]byte, error) {
	content, err := json.Marshal(release)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	text := base64.StdEncoding.AppendEncode(nil, packed.Bytes())
	if len(text) > maxSecret {
		return nil, fmt.Errorf("it has %d bytes, and a Secret holds %d", len(text), maxSecret)
	}
	return text, nil
}
