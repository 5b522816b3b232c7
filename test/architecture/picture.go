// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"html"
	"strings"
)

// pictureFile is the picture of the floors that ARCHITECTURE.md shows.
const pictureFile = "docs/floors.svg"

// The measures of the picture, in pixels.
const (
	pictureWidth = 1000
	pictureLeft  = 90 // where the boxes start, right of the number of the floor
	boxHeight    = 24
	boxGap       = 8
	charWidth    = 7.3 // of the font, which is monospaced
)

// kindColors are the fill and the border of the boxes of a kind.
var kindColors = map[Kind][2]string{
	Open:   {"#eef3fb", "#5b7fb5"},
	Data:   {"#eef8ee", "#5a9a5a"},
	Closed: {"#fdf0e3", "#c98132"},
}

// renderPicture draws the floors without the packages for tests, the highest floor first.
// A box is a package; dashed boxes are internal packages.
func renderPicture(rooms []Room) string {
	var b strings.Builder
	y := 44
	for floor := supportFloor - 1; floor >= 0; floor-- {
		top, x := y, pictureLeft
		y += boxGap
		for _, room := range rooms {
			if room.Floor != floor {
				continue
			}
			label := strings.TrimPrefix(room.Path, "pkg/")
			width := int(float64(len(label))*charWidth) + 16
			if x+width > pictureWidth-boxGap {
				x, y = pictureLeft, y+boxHeight+boxGap
			}
			b.WriteString(box(x, y, width, label, room))
			x += width + boxGap
		}
		y += boxHeight + boxGap
		fmt.Fprintf(&b, `<text x="14" y="%d">floor %d</text>`+"\n", (top+y)/2+4, floor)
		fmt.Fprintf(&b, `<line x1="0" y1="%d" x2="%d" y2="%d" stroke="#d0d0d0"/>`+"\n", y, pictureWidth, y)
	}
	header := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">
<title>The floors of the packages: imports point down</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, pictureWidth, y+boxGap)
	return header + legend() + b.String() + "</svg>\n"
}

func box(x, y, width int, label string, room Room) string {
	colors := kindColors[room.Kind]
	dashed := ""
	if !isPublic(room) {
		dashed = ` stroke-dasharray="4 3"`
	}
	return fmt.Sprintf(`<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s" stroke="%s"%s/><text x="%d" y="%d">%s</text>`+"\n",
		x, y, width, boxHeight, colors[0], colors[1], dashed, x+8, y+16, html.EscapeString(label))
}

func legend() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<text x="14" y="26" font-weight="bold">imports point down</text>`+"\n")
	x := 250
	for _, entry := range []struct {
		label string
		room  Room
	}{
		{"open", Room{Path: "pkg/open", Kind: Open}},
		{"data: values, no clock", Room{Path: "pkg/data", Kind: Data}},
		{"closed: decides, reaches no client", Room{Path: "pkg/closed", Kind: Closed}},
		{"internal", Room{Path: "internal/any", Kind: Open}},
	} {
		width := int(float64(len(entry.label))*charWidth) + 16
		b.WriteString(box(x, 10, width, entry.label, entry.room))
		x += width + boxGap
	}
	return b.String()
}
