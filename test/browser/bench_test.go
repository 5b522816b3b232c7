// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/corbel-run/corbel/pkg/ui"
)

func awaited(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams {
	return p.WithAwaitPromise(true)
}

// median reports the median of durations.
func median(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // it says nothing
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms(median)")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms(most)")
}

// BenchmarkAChangeUntilThePageShowsIt measures from before another client changes a dependent until the frame that shows
// it, 20 times.
func BenchmarkAChangeUntilThePageShowsIt(b *testing.B) {
	bed := open(b)
	p := bed.visit(b, bed.serve(b, ui.Options{}), corner("tree"))
	p.until(row("Deployment", "corner-web") + `.innerText.includes('Ready')`)
	var took []time.Duration
	for b.Loop() {
		for i := range 20 {
			value := fmt.Sprintf("change %d at %d", i, time.Now().UnixNano())
			p.script(fmt.Sprintf(`window.shown = new Promise((done) => {
				const look = () => { if (%[1]s.textContent.includes(%[2]s)) { seen.disconnect(); requestAnimationFrame(() => done(performance.timeOrigin + performance.now())); } };
				const seen = new MutationObserver(look);
				seen.observe(document.querySelector('#panel-tree'), { childList: true, subtree: true, characterData: true });
			}); undefined`, row("Deployment", "corner-web"), quote(value)))
			start := time.Now()
			bed.annotate(b, deployment("corner-web"), "kubectl-edit", value)
			var shown float64
			p.run(chromedp.Evaluate(`window.shown`, &shown, awaited))
			took = append(took, time.UnixMicro(int64(shown*1000)).Sub(start))
		}
	}
	median(b, took)
}

// watchForRows notes when the frame with the first rows is drawn, in milliseconds since the navigation.
const watchForRows = `new MutationObserver(() => {
	if (document.querySelectorAll('.row').length > 9) requestAnimationFrame(() => { window.rowsAt ??= performance.now(); });
}).observe(document, { childList: true, subtree: true })`

// BenchmarkAFleetIsOpened measures from the address until the frame with the rows of 1,000 components, with a server that
// has listed nothing yet, five times.
func BenchmarkAFleetIsOpened(b *testing.B) {
	bed := open(b)
	bed.createFleet(b)
	var took []time.Duration
	for b.Loop() {
		for range 5 {
			p := bed.tab(b, bed.serve(b, ui.Options{}))
			p.run(chromedp.ActionFunc(func(ctx context.Context) error {
				_, err := cdppage.AddScriptToEvaluateOnNewDocument(watchForRows).Do(ctx)
				return err
			}))
			p.run(chromedp.Navigate(p.base + "?token=" + encodedToken))
			p.until(fmt.Sprintf(`document.querySelector('#count').textContent === '%d components' && window.rowsAt > 0`, fleetSize+1))
			took = append(took, time.Duration(p.number(`window.rowsAt`)*float64(time.Millisecond)))
		}
	}
	median(b, took)
}
