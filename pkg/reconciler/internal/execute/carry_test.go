// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// What controllers, the scheduler and admission do to an object must survive a
// PUT of its manifest just as what a test does in their place.
func TestAPutOfTheSameManifestChangesNothingAmongControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole cluster")
	}
	e := env.New(t, env.Options{Cluster: true})
	b := benchOn(t, e.Config())
	namespace := b.namespace()
	eventually(t, "the namespace has its service account", func() bool {
		return b.observe(b.desired(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: `+namespace+`}}`, "")).Existence == plan.Present
	})
	files := check.Must(filepath.Glob("testdata/same/*.yaml"))(t)
	desired := map[string]*plan.Desired{}
	for _, file := range files {
		text := check.Must(os.ReadFile(file))(t)
		manifest, _, _ := strings.Cut(strings.ReplaceAll(string(text), "NAMESPACE", namespace), "\n---\n")
		manifest = strings.ReplaceAll(manifest, "nodeName: node-0, ", "") // there is a scheduler
		d := b.desired(manifest, v1alpha1.UpdatePolicyReplace)
		b.must(step(plan.VerbCreate, d, plan.Observation{}))
		desired[strings.TrimSuffix(filepath.Base(file), ".yaml")] = d
	}
	isReady := func(name string) func() bool {
		return func() bool { return b.observe(desired[name]).Status.Readiness == plan.Ready }
	}
	for _, name := range []string{"pod", "persistentvolumeclaim", "job", "customresourcedefinition", "service-loadbalancer"} {
		eventually(t, name+" is ready", isReady(name))
	}
	for name, d := range desired {
		t.Run(name, func(t *testing.T) {
			var before, after plan.Observation
			eventually(t, "a replace changes nothing", func() bool {
				before = b.observe(d)
				result := b.run(step(plan.VerbReplace, d, before))
				if result.Err != nil && !execute.IsConflict(result.Err) {
					t.Fatal(result.Err)
				}
				after = result.Observation
				return result.Err == nil && after.ObservedHash == before.ObservedHash && after.AppliedHash == before.AppliedHash
			})
		})
	}
}

// separator is between the parts of a file of testdata: a manifest; what controllers, the scheduler and admission do to the object; and a
// change, by another client, of fields that the manifest sets. Of some kinds nothing but the metadata can be changed.
var separator = regexp.MustCompile(`(?m)^---\n`)

// elements are drifts that add an element to a list of elements with keys.
// Under server-side apply it belongs to the client that added it, and stays.
var elements = []string{"service", "service-nodeport", "validatingadmissionpolicybinding"}

// kindsOfNobody are created by the control plane and by nodes, never by manifests.
var kindsOfNobody = []string{"Event", "PodCertificateRequest"}

// signingRequest is what a CertificateSigningRequest asks for.
func signingRequest(t *testing.T) string {
	t.Helper()
	key := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := check.Must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "more"}}, key))(t)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// Each object is installed; others do to it what they do; it is written again
// although nothing changed; another client changes a label and, where the kind lets
// it, another field that the manifest sets; and it is written once more.
func TestADriftedObjectOfEveryBuiltInKindIsRepairedWithoutARefusal(t *testing.T) {
	b := newBench(t)
	request := signingRequest(t)
	kinds := map[string]bool{}
	for _, update := range []v1alpha1.UpdatePolicy{v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride} {
		namespace := b.namespace()
		files, err := filepath.Glob("testdata/*/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("got %d files, %v", len(files), err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			text := check.Must(os.ReadFile(file))(t)
			parts := separator.Split(strings.NewReplacer("NAMESPACE", namespace, "CSR", request).Replace(string(text)), -1)
			d := b.desired(parts[0], update)
			if kinds[d.Key.Kind] = true; slices.Contains([]string{"Namespace", "PersistentVolume", "VolumeAttributesClass"}, d.Key.Kind) {
				d.Key.Name += "-" + namespace // the one before may still be going
				d.Manifest.SetName(d.Key.Name)
			}
			labels := d.Manifest.GetLabels()
			labels["drift"] = "ours"
			d.Manifest.SetLabels(labels)
			drift := ""
			if len(parts) > 2 {
				drift = parts[2]
			}
			if update != v1alpha1.UpdatePolicyReplace && slices.Contains(elements, name) {
				drift = ""
			}
			t.Run(string(update)+" "+name, func(t *testing.T) {
				b.t = t
				b.driftAndRepair(d, parts, drift, strings.Contains(file, "/same/"))
			})
			b.t = t
		}
	}
	checkKinds(t, b, kinds)
}

// driftAndRepair is the life of one object. A PUT of the very same manifest has to be accepted, has to change nothing, and is
// one request, unless the file starts with "# reads first".
func (b *bench) driftAndRepair(d *plan.Desired, parts []string, drift string, same bool) {
	b.t.Helper()
	created := b.must(step(plan.VerbCreate, d, plan.Observation{}))
	b.t.Cleanup(func() { deleteClusterScoped(b, d) })
	if len(parts) > 1 && strings.TrimSpace(parts[1]) != "" {
		b.otherClient(d, parts[1])
	}
	before := b.live(d)
	again, requests := writeAgain(b, d)
	check.SameNamed(b.t, "a write of the same manifest changed what it sets", created.AppliedHash, again.AppliedHash)
	if same && d.Policies.Update == v1alpha1.UpdatePolicyReplace {
		want := "PUT"
		if strings.HasPrefix(parts[0], "# reads first") {
			want = "GET, PUT"
		}
		if diff := cmp.Diff(withoutBookkeeping(b.t, before.Object), withoutBookkeeping(b.t, b.live(d).Object)); diff != "" || requests != want {
			b.t.Errorf("the requests were %s, not %s; the object (-before +after):\n%s", requests, want, diff)
		}
	}
	b.otherClient(d, `metadata: {labels: {drift: theirs}}`)
	if drift != "" {
		b.otherClient(d, drift)
	}
	if drifted := b.observe(d); drifted.AppliedHash == created.AppliedHash {
		b.t.Fatal("the drift does not show")
	}
	if repaired, _ := writeAgain(b, d); repaired.AppliedHash != created.AppliedHash || b.live(d).GetLabels()["drift"] != "ours" {
		b.t.Errorf("the drift is still there: %v", b.live(d).Object)
	}
}

// checkKinds fails for a kind that the server serves and that was not tried.
func checkKinds(t *testing.T, b *bench, kinds map[string]bool) {
	t.Helper()
	everything, _, err := b.target.Types().Matching(t.Context(), v1alpha1.TypeInfo{Group: "*", Kind: "*"})
	check.NoError(t, err)
	for _, resource := range everything {
		builtIn := !strings.HasSuffix(resource.GVR.Group, ".example.com") && !strings.HasSuffix(resource.GVR.Group, "corbel.run")
		if builtIn && resource.Can("create") && resource.Can("update") && !kinds[resource.Kind] && !slices.Contains(kindsOfNobody, resource.Kind) {
			t.Errorf("no manifest in testdata for %s", resource.GVK())
		}
	}
}

// writeAgain writes the object as its policy says, again if another client wrote in between.
func writeAgain(b *bench, d *plan.Desired) (after plan.Observation, requests string) {
	b.t.Helper()
	verb := map[v1alpha1.UpdatePolicy]plan.Verb{
		v1alpha1.UpdatePolicyReplace: plan.VerbReplace, v1alpha1.UpdatePolicySsaMerge: plan.VerbMerge, v1alpha1.UpdatePolicySsaOverride: plan.VerbOverride,
	}[d.Policies.Update]
	eventually(b.t, "the object is written", func() bool {
		s := step(verb, d, b.observe(d))
		if verb == plan.VerbReplace {
			s = b.seen(verb, d, b.observe(d))
		}
		b.requests()
		result := b.run(s)
		requests = methods(b.requests())
		if execute.IsConflict(result.Err) {
			return false
		}
		if result.Err != nil {
			b.t.Fatal(result.Err)
		}
		after = result.Observation
		return true
	})
	return after, requests
}
