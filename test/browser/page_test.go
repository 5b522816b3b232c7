// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/corbel-run/corbel/test/check"
)

var encodedToken = url.QueryEscape(token)

// page is a tab of the browser. The test fails if a dialog opens, if a script throws, or if the policy of the server
// refuses something.
type page struct {
	testing.TB
	ctx  context.Context
	base string // the address of the server

	mu       sync.Mutex
	expected []string // parts of messages of the console that are no failures
}

// visit opens a tab, and the page in it.
func (b *bed) visit(t testing.TB, base, hash string) *page {
	t.Helper()
	p := b.tab(t, base)
	p.run(chromedp.Navigate(base + "?token=" + encodedToken))
	p.until(opened)
	p.location(hash)
	return p
}

// opened is true if the page is there, and not the one that leads to it.
const opened = `document.querySelector('#live') && location.search === ''`

// tab opens an empty tab.
func (b *bed) tab(t testing.TB, base string) *page {
	t.Helper()
	// The first context of the browser is the browser itself, and stays.
	check.NoError(t, chromedp.Run(b.browser))
	ctx, cancel := chromedp.NewContext(b.browser)
	ctx, cancelTimeout := context.WithTimeout(ctx, 2*patience)
	p := &page{TB: t, ctx: ctx, base: base}
	t.Cleanup(func() {
		// What is no text was put where text is shown.
		check.SameNamed(t, "the page says", "", regexp.MustCompile(`.*(\[object |undefined|\bNaN\b).*`).FindString(p.text(`document.body.innerText`)))
		cancelTimeout()
		cancel()
	})
	chromedp.ListenTarget(ctx, p.notice)
	// A tab that is not in front draws no frames.
	p.run(cdplog.Enable(), cdppage.BringToFront(), p.size(1280, 800))
	return p
}

func (p *page) notice(event any) {
	what := ""
	switch e := event.(type) {
	case *cdppage.EventJavascriptDialogOpening:
		what = "a dialog opened: " + e.Message
		go func() { _ = chromedp.Run(p.ctx, cdppage.HandleJavaScriptDialog(true)) }() // else the page stands still
	case *cdpruntime.EventExceptionThrown:
		what = "a script failed: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError {
			what = "the console says: " + e.Entry.Text + " " + e.Entry.URL
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	isExpected := slices.ContainsFunc(p.expected, func(part string) bool { return strings.Contains(what, part) })
	if what != "" && !isExpected && p.ctx.Err() == nil {
		p.Error(what)
	}
}

// expect lets messages of the console with a text be no failures.
func (p *page) expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

func (p *page) run(actions ...chromedp.Action) {
	p.Helper()
	check.NoError(p, chromedp.Run(p.ctx, actions...))
}

func (p *page) size(width, height int64) chromedp.Action {
	return chromedp.EmulateViewport(width, height)
}

func (p *page) scheme(name string) {
	p.Helper()
	p.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}

// location changes the hash, as a link does.
func (p *page) location(hash string) {
	p.Helper()
	p.script(`location.hash = ` + quote(hash))
}

// hashOf is the hash of a component.
func hashOf(typeName, namespace, name, tab string) string {
	return "#" + strings.Join([]string{typeName, namespace, name, tab}, "/")
}

// script runs a script in the page.
func (p *page) script(script string) {
	p.Helper()
	p.run(chromedp.Evaluate(script, nil))
}

// is returns whether an expression is true. An expression that cannot be evaluated yet is not.
func (p *page) is(expression string) bool {
	var value bool
	err := chromedp.Run(p.ctx, chromedp.Evaluate(`(() => { try { return Boolean(`+expression+`); } catch { return false; } })()`, &value))
	return err == nil && value
}

// number is the value of an expression.
func (p *page) number(expression string) (value float64) {
	p.Helper()
	p.run(chromedp.Evaluate(expression, &value))
	return value
}

// text is the value of an expression.
func (p *page) text(expression string) (value string) {
	p.Helper()
	p.run(chromedp.Evaluate(expression, &value))
	return value
}

// until waits until an expression is true.
func (p *page) until(expression string) {
	p.Helper()
	for deadline := time.Now().Add(patience); !p.is(expression); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.Fatalf("waited in vain until %s; the page says:\n%s", expression, p.text(`document.body.innerText`))
		}
	}
}

// shows waits until an element has a text.
func (p *page) shows(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%s).innerText.includes(%s)`, quote(selector), quote(text)))
}

// click clicks with the mouse on the first element in sight with a text.
func (p *page) click(selector, text string) {
	p.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%s)].find((e) => e.checkVisibility() && e.textContent.includes(%s))`, quote(selector), quote(text))
	p.until(find + ` && !` + find + `.disabled`)
	p.script(find + `.scrollIntoView({ block: 'nearest' })`)
	// Where it is after a frame in which it has not moved, and is not covered.
	var at []float64
	p.run(chromedp.Evaluate(`(async () => {
		for (let before = ''; ; await new Promise(requestAnimationFrame)) {
			const e = `+find+`, r = e?.getBoundingClientRect();
			const at = r && [r.x + r.width / 2, r.y + r.height / 2];
			if (at && at.join() === before && e.contains(document.elementFromPoint(...at))) return at;
			before = at?.join() ?? '';
		}
	})()`, &at, awaited))
	p.run(chromedp.MouseClickXY(at[0], at[1]))
}

// press types keys, where the focus is.
func (p *page) press(keys string) {
	p.Helper()
	p.run(chromedp.KeyEvent(keys))
}

// tabTo presses the key Tab until an expression about the element with the focus, e, is true.
func (p *page) tabTo(expression string) {
	p.Helper()
	for range 40 {
		p.press(kb.Tab)
		if p.is(`((e) => ` + expression + `)(document.activeElement)`) {
			return
		}
	}
	p.Fatalf("Tab does not lead to where %s", expression)
}

// quote is a string in JavaScript.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// row finds the row of a dependent in the tree.
func row(kind, name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.dependent')].find((r) => r.querySelector('.kind').textContent === %s && r.querySelector('.name').textContent === %s)`, quote(kind), quote(name))
}
