// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/internal/gzipped"
	"github.com/corbel-run/corbel/test/check"
)

// canary stands for what must be in no message.
const canary = "hunter22"

// packed returns a record as Helm stores it.
func packed(content []byte) []byte {
	return []byte(base64.StdEncoding.EncodeToString(gzipped.Pack(content)))
}

// recordWith returns a record with changes; nil removes a field.
func recordWith(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	content := map[string]any{
		"name": "corner", "namespace": "market", "version": 7,
		"info":     map[string]any{"status": "deployed", "last_deployed": "2026-05-04T10:22:31.5+02:00"},
		"chart":    map[string]any{"metadata": map[string]any{"name": "shop", "version": "1.2.3"}},
		"config":   map[string]any{"replicas": 3, "password": canary},
		"manifest": "---\n# Source: a\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n",
		"hooks":    []any{map[string]any{"path": "templates/job.yaml", "manifest": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migration}\n"}},
	}
	maps.Copy(content, changes)
	text := check.Must(json.Marshal(content))(t)
	return packed(text)
}

func TestARecordIsRead(t *testing.T) {
	release := check.Must(Decode(recordWith(t, nil)))(t)
	var names []string
	for _, object := range append(release.Objects, release.HookObjects...) {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	check.Equal(t, []string{"ConfigMap a", "Secret b", "Job migration"}, names)
	release.Objects, release.HookObjects = nil, nil
	want := &Release{
		Reference: Reference{"market", "corner", 7}, Status: "deployed", Chart: "shop", ChartVersion: "1.2.3",
		DeployedAt: time.Date(2026, 5, 4, 8, 22, 31, 5e8, time.UTC), Values: map[string]any{"replicas": int64(3), "password": canary},
	}
	check.Equal(t, want, release)
	// Versions before compressed nothing.
	plain, err := Decode([]byte(base64.StdEncoding.EncodeToString([]byte(`{"name":"a","namespace":"b","version":1,"info":{"status":"failed","last_deployed":""}}`))))
	if err != nil || plain.Status != "failed" || !plain.DeployedAt.IsZero() {
		t.Errorf("%+v, %v", plain, err)
	}
}

func TestTheReleaseOfFluxIsRead(t *testing.T) {
	const ofFlux = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: flux-system}}\n"
	for name, test := range map[string]struct {
		changes map[string]any
		want    string
	}{
		"none":           {nil, "/"},
		"of an object":   {map[string]any{"manifest": ofFlux}, "flux-system/shop"},
		"of a hook only": {map[string]any{"manifest": "", "hooks": []any{map[string]any{"path": "a", "manifest": ofFlux}}}, "flux-system/shop"},
	} {
		release := check.Must(Decode(recordWith(t, test.changes)))(t)
		check.SameNamed(t, name, test.want, release.Flux().String())
	}
}

func TestABadRecordIsOneMistake(t *testing.T) {
	for _, test := range []struct {
		name string
		text []byte
		want string
	}{
		{"nothing", nil, "the record is no JSON of a release"},
		{"no base64", []byte("?" + canary), "the record is not base64"},
		{"cut off", recordWith(t, nil)[:200], "the record cannot be decompressed"},
		{"no JSON", packed([]byte(canary)), "the record is no JSON of a release"},
		{"another type", packed([]byte(`{"name":["` + canary + `"]}`)), "the record is no JSON of a release"},
		{"too large", bytes.Repeat([]byte("A"), maxRecord+1), "the record has 2097153 bytes, and at most 2097152 are read"},
		{"too large when it is decompressed", packed(make([]byte, maxUnpacked+1)), "the record has more than 33554432 bytes when it is decompressed"},
		{"no name", recordWith(t, map[string]any{"name": ""}), "the record has no name, namespace or version of a release"},
		{"no namespace", recordWith(t, map[string]any{"namespace": ""}), "the record has no name, namespace or version of a release"},
		{"no version", recordWith(t, map[string]any{"version": 0}), "the record has no name, namespace or version of a release"},
		{"no status", recordWith(t, map[string]any{"info": nil}), "the record has no status of the release"},
		{"values", recordWith(t, map[string]any{"config": []string{canary}}), "the values in the record are no JSON object"},
		{"manifest", recordWith(t, map[string]any{"manifest": canary}), "the manifest in the record has documents that are no objects"},
		{"too many manifests", recordWith(t, map[string]any{"manifest": strings.Repeat("#", maxManifests+1), "hooks": nil}), "the manifests in the record have 8388609 bytes, and at most 8388608 are read"},
		{"hook", recordWith(t, map[string]any{"hooks": []any{map[string]any{"path": "templates/job.yaml", "manifest": canary}}}), "the hook templates/job.yaml in the record has documents that are no objects"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Decode(test.text); err == nil || err.Error() != test.want || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestReferencesSurviveTheirText(t *testing.T) {
	want := Reference{"market", "corner", 7}
	if got, err := ParseReference(want.String()); got != want || err != nil || got.RecordName() != "sh.helm.release.v1.corner.v7" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "corner", "market/corner", "market/corner/7/8", "/corner/7", "market//7", "market/corner/", "market/corner/0", "market/corner/-1", "market/corner/07", "market/corner/x", "Market/corner/7", "market/Corner/7", "market/corner/99999999999"} {
		if got, err := ParseReference(text); err == nil || got != (Reference{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestOnlyTheLastRevisionThatIsDeployedIsRead(t *testing.T) {
	of := Reference{"market", "corner", 7}
	meta := func(r Reference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: r.Namespace, Name: r.RecordName(), Labels: map[string]string{"owner": "helm"}}
	}
	secret := func(changes map[string]any) client.Object {
		return &corev1.Secret{ObjectMeta: meta(of), Type: SecretType, Data: map[string][]byte{Entry: recordWith(t, changes)}}
	}
	status := func(text string) client.Object { return secret(map[string]any{"info": map[string]any{"status": text}}) }
	later := of
	later.Revision++
	settings := func(r Reference) client.Object {
		return &corev1.ConfigMap{ObjectMeta: meta(r), Data: map[string]string{Entry: string(recordWith(t, nil))}}
	}
	foreign := settings(of)
	foreign.SetLabels(nil)
	const prefix = "revision 7 of Helm release market/corner cannot be adopted: "
	for _, test := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"a Secret", []client.Object{secret(nil)}, ""},
		{"a ConfigMap", []client.Object{settings(of)}, ""},
		{"missing", nil, "Helm release market/corner has no revision 7: there is neither a Secret nor a ConfigMap sh.helm.release.v1.corner.v7 in namespace market"},
		{"pending", []client.Object{status("pending-rollback")}, prefix + "it is pending-rollback: Helm is at work, or was interrupted; it must be deployed, and \"helm rollback\" makes it so"},
		{"failed", []client.Object{status("failed")}, prefix + "it is failed; it must be deployed"},
		{"superseded", []client.Object{status("superseded")}, prefix + "it is superseded by a later one"},
		{"a later one", []client.Object{secret(nil), &corev1.Secret{ObjectMeta: meta(later)}}, prefix + "the release has revision 8"},
		{"a later one in a ConfigMap", []client.Object{settings(of), settings(later)}, prefix + "the release has revision 8"},
		{"of another name", []client.Object{secret(map[string]any{"name": "other"})}, prefix + "its record is about revision 7 of Helm release market/other"},
		{"of another revision", []client.Object{secret(map[string]any{"version": 6})}, prefix + "its record is about revision 6 of Helm release market/corner"},
		{"of another namespace", []client.Object{secret(map[string]any{"namespace": "other"})}, prefix + "its record is about revision 7 of Helm release other/corner"},
		{"no Secret of Helm", []client.Object{&corev1.Secret{ObjectMeta: meta(of)}}, prefix + "Secret market/sh.helm.release.v1.corner.v7 is not of the type helm.sh/release.v1"},
		{"no ConfigMap of Helm", []client.Object{foreign}, prefix + "ConfigMap market/sh.helm.release.v1.corner.v7 is not one of Helm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			release, err := Read(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), of)
			if test.want == "" {
				if err != nil || release.Reference != of {
					t.Errorf("%v, %v", release, err)
				}
				return
			}
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestAReadThatFailsSaysNothingAboutTheRelease(t *testing.T) {
	for failing := range 2 {
		count := 0
		c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "sh.helm.release.v1.corner.v7"}, Type: SecretType, Data: map[string][]byte{Entry: recordWith(t, nil)},
		}).Build(), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if count++; count-1 == failing {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no"))
			}
			return c.Get(ctx, key, object, options...)
		}})
		_, err := Read(t.Context(), c, Reference{"market", "corner", 7})
		_, missing := errors.AsType[*NotFoundError](err)
		_, unusable := errors.AsType[*UnusableError](err)
		if !apierrors.IsForbidden(err) || missing || unusable {
			t.Errorf("request %d: %v", failing+1, err)
		}
	}
}
