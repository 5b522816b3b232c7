// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/pkg/component"
)

// The names of two installations are the same, although each has a namespace of its own.
func TestTheNamespaceOfACaseIsNotInTheNamesOfItsObjects(t *testing.T) {
	i := &Installed[component.Component]{Namespace: "case-1"}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	for want, o := range map[string]object{
		"ConfigMap main":                        {kind, "case-1", "main"},
		"ConfigMap main-$NAMESPACE":             {kind, "", "main-case-1"},
		"ConfigMap kube-system/main-$NAMESPACE": {kind, "kube-system", "main-case-1"},
		"ConfigMap $NAMESPACE-jobs/main":        {kind, "case-1-jobs", "main"},
	} {
		if got := i.nameOf(o); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestChecksumsInAnnotationsAreNotCompared(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	withDigest := func(digest string) map[string]any {
		return map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"checksum/secret": digest, "port": "8080"}},
			"data":     map[string]any{"digest": "0a0b"},
		}}}
	}
	got := withDigest(digest)
	hideChecksums(got)
	if diff := cmp.Diff(withDigest("a checksum that is not compared"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCertificatesAreNotCompared(t *testing.T) {
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("something")}))
	content := func(bundle, data string) any {
		return map[string]any{
			"webhooks": []any{map[string]any{"clientConfig": map[string]any{"caBundle": bundle}, "name": "BEGIN", "replicas": int64(1)}},
			"data":     map[string]any{"ca.crt": data, "text": "aGVsbG8="},
		}
	}
	const hidden = "a certificate or key that is not compared"
	got := hideCertificates(content(base64.StdEncoding.EncodeToString([]byte(certificate)), "# a comment\n"+certificate))
	if diff := cmp.Diff(content(hidden, hidden), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
