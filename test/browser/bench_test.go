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
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/ui"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
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

// BenchmarkAFleetIsOpened measures from the address that the token leads to until the frame with the rows of 1,000 components, with a server that
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

// BenchmarkATreeOf1000IsOpened measures from the change of the address to the frame with the tree of a component of 1,000
// objects, ten times.
func BenchmarkATreeOf1000IsOpened(b *testing.B) {
	bed := open(b)
	bed.createFleet(b)
	const large = "large"
	status := branchStatus(v1alpha1.StateReady, "1000 of 1000 dependent objects are ready")
	running, ctx := errgroup.WithContext(b.Context())
	running.SetLimit(16)
	for i := range 1000 {
		item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "team-0", Name: fmt.Sprintf("large-%04d", i), UID: "1"}
		status.Inventory.Items = append(status.Inventory.Items, item)
		running.Go(func() error {
			return bed.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: item.Namespace, Name: item.Name, Labels: map[string]string{"branch.example.com/" + vocabulary.LabelOwnerID: "test"},
			}})
		})
	}
	check.NoError(b, running.Wait())
	check.NoError(b, bed.createBranch(b.Context(), "team-0", large, status))
	p := bed.visit(b, bed.serve(b, ui.Options{}), "")
	p.until(`document.querySelectorAll('.row').length > 9`)
	var took []time.Duration
	for b.Loop() {
		for range 10 {
			p.location("")
			p.until(`document.querySelector('.overview')`)
			var shown float64
			p.run(chromedp.Evaluate(fmt.Sprintf(`new Promise((done) => {
				const start = performance.now();
				new MutationObserver((_, seen) => {
					if (document.querySelectorAll('.dependent').length < 1000) return;
					seen.disconnect();
					requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
				}).observe(document.querySelector('#detail'), { childList: true, subtree: true });
				location.hash = %s;
			})`, quote(hashOf(branchType, "team-0", large, "tree"))), &shown, awaited))
			took = append(took, time.Duration(shown*float64(time.Millisecond)))
		}
	}
	median(b, took)
}
