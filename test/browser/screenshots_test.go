// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/cmd/corbel/ui"
	"github.com/corbel-run/corbel/test/check"
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
		check.NoError(t, b.client.Get(t.Context(), client.ObjectKeyFromObject(branch), branch))
		state := v1alpha1.StateError
		if name == "branch-0214" {
			state = v1alpha1.StateProcessing
		}
		check.NoError(t, b.setStatus(t.Context(), branch, branchStatus(state, message)))
	}
	b.annotate(t, deployment("corner-cache"), "kubectl-edit", "restarted by hand")
	p := b.visit(t, b.serve(t, ui.Options{Write: true}), "")
	breakShop := func() {
		b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:broken"}}`)))
	}
	shots := []struct {
		name, scheme, hash, ready string
		before                    func()
	}{
		{"ui-tree", "light", corner("tree"), `document.querySelectorAll('.dependent').length > 10`, nil},
		{"ui-tree-dark", "dark", corner("tree"), `document.querySelectorAll('.dependent').length > 10`, nil},
		{"ui-cause", "light", corner("cause"), `document.querySelector('.chain .last').textContent.includes('broken')`, breakShop},
		{"ui-phone", "light", "", `document.querySelectorAll('.cards li').length === 3 && document.querySelector('.cards').textContent.includes('ImagePullBackOff')`, nil},
		{"ui-phone-cause", "light", corner("cause"), `document.querySelector('.chain .last').textContent.includes('broken')`, nil},
		{"ui-fleet", "light", "", `document.querySelectorAll('.cards li').length === 3 && document.querySelector('.cards').textContent.includes('ImagePullBackOff')`, nil},
	}
	for _, shot := range shots {
		if shot.before != nil {
			shot.before()
		}
		p.scheme(shot.scheme)
		p.location(shot.hash)
		p.until(shot.ready + ` && document.querySelector('#live').textContent === 'Live'`)
		// The port is another one each time.
		p.script(`document.querySelector('#cluster').textContent = 'demo'; document.activeElement.blur()`)
		var picture []byte
		size := p.size(1200, 750)
		if strings.HasPrefix(shot.name, "ui-phone") {
			size = p.size(390, 844)
		}
		p.run(size, chromedp.CaptureScreenshot(&picture))
		picture = small(t, picture)
		if len(picture) > largest {
			t.Errorf("%s has %d bytes, want at most %d", shot.name, len(picture), largest)
		}
		check.NoError(t, os.WriteFile(filepath.Join(*screenshots, shot.name+".png"), picture, 0o644))
	}
	b.patch(t, deployment("corner-cache"), "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
}

// small writes a picture with the 256 colours that it has most, which is half the size and looks the same.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	decoded := check.Must(png.Decode(bytes.NewReader(picture)))(t)
	bounds, counts := decoded.Bounds(), map[color.RGBA]int{}
	each := func(visit func(x, y int, c color.RGBA)) {
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				visit(x, y, color.RGBAModel.Convert(decoded.At(x, y)).(color.RGBA))
			}
		}
	}
	each(func(_, _ int, c color.RGBA) { counts[c]++ })
	byCount := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range byCount[:min(256, len(byCount))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	paletted := image.NewPaletted(bounds, palette)
	each(func(x, y int, c color.RGBA) { paletted.SetColorIndex(x, y, nearest[c]) })
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	check.NoError(t, encoder.Encode(&out, paletted))
	return out.Bytes()
}
