// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/ui"
)

// largest is how large a screenshot may be, in bytes.
const largest = 150 << 10

// TestScreenshots draws the pictures of the documents; make ui-screenshots runs it.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("it draws pictures for the documents: make ui-screenshots")
	}
	b := open(t)
	b.createFleet(t)
	for name, message := range map[string]string{
		"branch-0214": "Deployment team-4/branch-0214-web: 1 of 2 replicas ready", "branch-0555": "spec.patches[0]: matches no object of the component",
	} {
		branch := branchOf(teamOf(int(name[len(name)-1]-'0')), name)
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(branch), branch); err != nil {
			t.Fatal(err)
		}
		state := v1alpha1.StateError
		if name == "branch-0214" {
			state = v1alpha1.StateProcessing
		}
		if err := b.setStatus(t.Context(), branch, branchStatus(state, message)); err != nil {
			t.Fatal(err)
		}
	}
	b.annotate(t, deployment("corner-cache"), "kubectl-edit", "restarted by hand")
	p := b.visit(t, b.serve(t, ui.Options{Write: true}), "")
	breakShop := func() {
		b.patch(t, shop("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:broken"}}`)))
	}
	shots := []struct {
		name, scheme, hash, ready string
		before                    func()
	}{
		{"ui-tree", "light", corner("tree"), `document.querySelectorAll('.dependent').length > 10`, nil},
		{"ui-tree-dark", "dark", corner("tree"), `document.querySelectorAll('.dependent').length > 10`, nil},
		{"ui-cause", "light", corner("cause"), `document.querySelector('.chain .last').textContent.includes('broken')`, breakShop},
		{"ui-fleet", "light", "", `document.querySelectorAll('.cards li').length === 3 && document.querySelector('.cards').textContent.includes('ImagePullBackOff')`, nil},
	}
	for _, shot := range shots {
		if shot.before != nil {
			shot.before()
		}
		p.scheme(shot.scheme)
		p.location(shot.hash)
		p.until(shot.ready)
		// The port is another one each time.
		p.script(`document.querySelector('#cluster').textContent = 'demo'; document.activeElement.blur()`)
		var picture []byte
		p.run(p.size(1200, 750), chromedp.CaptureScreenshot(&picture))
		if len(picture) > largest {
			t.Errorf("%s has %d bytes, want at most %d", shot.name, len(picture), largest)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, shot.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.patch(t, deployment("corner-cache"), "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
}
