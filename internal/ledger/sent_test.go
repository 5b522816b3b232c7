// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/wire"
)

// A part of a record that another writer has changed meanwhile must not be overwritten.
func TestAWriteOfAPartSendsWhatItIsBasedOn(t *testing.T) {
	held := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": "part"}}}
	recorder := wire.NewRecorder(held)
	c, err := client.New(recorder.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := New(Options{Client: c, Name: ledgerName, FieldOwner: ledgerName, Namespace: "default"})
	s := secret{namespace: "shop", name: "part", uid: "u", resourceVersion: "7"}
	if _, err := l.patch(t.Context(), s, map[string]any{"data": map[string]any{"entry": "eA=="}}); err != nil {
		t.Fatal(err)
	}
	sent := recorder.Sent(http.MethodPatch)
	if len(sent) != 1 || sent[0].Field("metadata", "uid") != "u" || sent[0].Field("metadata", "resourceVersion") != "7" {
		t.Errorf("sent %v", sent)
	}
}
