// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/cmd/corbel/ui"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

var corner = func(tab string) string { return hashOf(shopType, market, "corner", tab) }

// annotate sets an annotation as another client.
func (b *bed) annotate(t testing.TB, object client.Object, manager, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/note":%s}}}`, quote(value))
	b.patch(t, object, manager, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name}}
}

func TestTheTreeOfAComponentFollowsTheCluster(t *testing.T) {
	b := open(t)
	p := b.visit(t, b.serve(t, ui.Options{}), corner("tree"))
	p.shows("#heading", "Shop market/corner")
	p.shows(".status", "14/14")
	p.until(`document.title === 'Shop market/corner – Corbel'`)
	p.until(`[...document.querySelectorAll('.tree h3')].map((e) => e.textContent).join() === 'shared by all components,hooks before,wave 0,wave 1'`)
	p.until(row("Job", "corner-migration") + `.innerText.includes('Completed')`)
	p.until(row("Deployment", "corner-web") + `.querySelectorAll('.pod').length === 2`)
	if p.is(`document.body.innerText.includes('Suspend')`) {
		t.Error("a page that only reads offers an action")
	}
	// Another client sets a field: the row says who, and stays the same element; the scroll position stays.
	p.script(`window.before = ` + row("Deployment", "corner-web") + `; document.querySelector('#panel-tree').scrollTop = 70`)
	at := p.number(`document.querySelector('#panel-tree').scrollTop`)
	b.annotate(t, deployment("corner-web"), "kubectl-edit", "by hand")
	p.until(`window.before.innerText.includes('set by kubectl-edit') && window.before.innerText.includes('metadata.annotations[example.com/note]') && window.before.innerText.includes('"by hand"')`)
	if !p.is(`window.before.isConnected`) || p.number(`document.querySelector('#panel-tree').scrollTop`) != at {
		t.Error("the row was not changed in place")
	}
	b.patch(t, deployment("corner-web"), "kubectl-edit", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
	p.until(`!window.before.innerText.includes('set by')`)
	p.click("label", "Only what is not ready")
	p.until(`document.querySelector('.unready').checkVisibility() && ![...document.querySelectorAll('.dependent')].some((r) => r.checkVisibility())`)
	b.untilReady(t)
}

func TestOutputsAndRequirementsLeadToOtherComponents(t *testing.T) {
	b := open(t)
	p := b.visit(t, b.serve(t, ui.Options{}), "")
	p.until(`document.querySelectorAll('.row').length > 0`)
	p.script(`import('./fleet.js').then(({ change, components }) => change({ op: 'set', item:
		{ ...[...components.values()].find((c) => c.name === 'corner'), name: 'kiosk', requires: 'shop.example.com/Shop/market/corner db.example.com/Database/market/main' } }))`)
	p.click(".row", "kiosk")
	p.shows(".component", "Requires Shop market/corner (Ready), Database market main (not in the list)")
	p.click(".about a", "Shop market/corner")
	p.shows(".component", "Required by Shop market/kiosk (Ready)")
	check.NoError(t, b.client.Status().Patch(t.Context(), shops.New("corner"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"outputs":{"host":"<b>corner</b>"},"secretOutputs":["password"]}}`))))
	p.shows(".tree section:last-child", "host: <b>corner</b>")
	p.shows(".tree section:last-child", "password: (secret)")
	check.NoError(t, b.client.Status().Patch(t.Context(), shops.New("corner"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"outputs":null,"secretOutputs":null}}`))))
	p.until(`!document.querySelector('.tree').innerText.includes('host')`)
}

func TestAComponentThatFailsIsShownWithItsCause(t *testing.T) {
	b := open(t)
	p := b.visit(t, b.serve(t, ui.Options{}), "")
	p.until(`document.querySelectorAll('.row').length > 0`)
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:broken"}}`)))
	p.click(".row", "corner")
	p.shows(".status", "Processing")
	p.shows(".about .message", "ImagePullBackOff")
	p.until(`document.querySelector('.row[aria-selected=true]').getAttribute('aria-label').includes('ImagePullBackOff')`)
	p.click("[role=tab]", "Cause")
	p.until(`location.hash.endsWith('/corner/cause')`)
	p.shows(".chain .last", "registry.example.com/shop:broken")
	p.shows(".chain .last", "cause")
	p.shows("#panel-cause", "Held back by it: ")
	p.until(`!document.body.innerText.includes('[object ')`)
	p.shows(".command", "kubectl -n market describe pod")
	// What has the focus keeps it when it is drawn again.
	p.script(`window.before = document.querySelector('.command code'); window.before.focus()`)
	b.annotate(t, deployment("corner-cache"), "kubectl-edit", "by hand")
	p.until(`!window.before.isConnected && document.activeElement.matches('.command code')`)
	b.patch(t, deployment("corner-cache"), "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
	p.click("[role=tab]", "Events")
	p.shows("#panel-events table", "Warning")
	// It is corrected: what is shown follows, and a screen reader hears it.
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:1.0"}}`)))
	p.until(`document.querySelector('#announcer').textContent === 'Shop market/corner: Ready, 14/14'`)
	p.click("[role=tab]", "Cause")
	p.shows("#panel-cause .headline", "Shop market/corner is Ready")
	b.untilReady(t)
}

func TestAnEditIsPlanned(t *testing.T) {
	b := open(t)
	p := b.visit(t, b.serve(t, ui.Options{}), corner("plan"))
	p.until(`document.querySelector('#spec').value.includes('replicas: 2')`)
	p.script(`document.querySelector('#spec').value = document.querySelector('#spec').value.replace('replicas: 2', 'replicas: 5')`)
	p.click(".plan button", "Plan")
	p.until(`[...document.querySelectorAll('#panel-plan .change tr')].some((r) => [...r.cells].map((c) => c.textContent).join() === 'spec.replicas,2,5')`)
	p.shows("#panel-plan .verbatim", "Nothing was written.")
	p.click("summary", "Deployment corner-web")
	p.until(`![...document.querySelectorAll('#panel-plan .change')].find((c) => c.textContent.includes('Deployment corner-web')).querySelector('table').checkVisibility()`)
	p.script(`document.querySelector('#spec').value = 'replicas: many'`)
	p.expect("409")
	p.click(".plan button", "Plan")
	p.until(`document.querySelector('#panel-plan .error').textContent.length > 0`)
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"greeting":"Hello"}}`)))
	p.shows("#panel-plan .note", "The spec has changed since")
	check.SameNamed(t, "what was typed is lost", "replicas: many", p.text(`document.querySelector('#spec').value`))
	p.click("button", "Undo my edits")
	p.until(`document.querySelector('#spec').value.includes('greeting: Hello') && document.querySelector('#panel-plan .note').hidden`)
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"greeting":"Welcome"}}`)))
	p.until(`document.querySelector('#spec').value.includes('greeting: Welcome') && document.querySelector('#panel-plan .note').hidden`)
	p.script(`document.querySelector('#spec').focus()`)
	p.press(kb.Escape)
	p.until(`document.activeElement === document.body && location.hash.endsWith('/plan')`)
	b.untilReady(t)
	p.click(".plan button", "Plan the deletion")
	p.shows("#panel-plan .verbatim", "Shop market/corner: deletion")
	p.until(`[...document.querySelectorAll('.change')].some((c) => c.textContent === '- Deployment corner-web deleted')`)
	if text := p.text(`document.body.innerText`); strings.Contains(text, "a very secret canary") {
		t.Error("the page shows the value of a Secret")
	}
	b.untilReady(t)
}

func TestARollbackIsConfirmedByTyping(t *testing.T) {
	b := open(t)
	scaled := shops.New("corner")
	b.patch(t, scaled, "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)))
	b.untilReady(t)
	readOnly := b.visit(t, b.serve(t, ui.Options{}), corner("history"))
	readOnly.shows("#panel-history table", "helm shop 1.0.0")
	if readOnly.is(`[...document.querySelectorAll('button')].some((e) => /Roll back|Suspend|Reconcile/.test(e.textContent))`) {
		t.Error("a page that only reads offers actions")
	}
	p := b.visit(t, b.serve(t, ui.Options{Write: true}), corner("history"))
	p.click("tr:has(button) button", "Compare")
	p.shows("#panel-history .change", "spec.replicas")
	if !p.is(`new Set([...document.querySelectorAll('#panel-history tr:has(button) .state')].map((e) => getComputedStyle(e).color)).size === 1 &&
		getComputedStyle(document.querySelector('#panel-history tr:has(.pill) .state')).color !== getComputedStyle(document.querySelector('tr:has(button) .state')).color`) {
		t.Error("a revision of the past looks as the current one does")
	}
	revision := p.text(`document.querySelector('tr:has(button) td').textContent`)
	p.click("tr:has(button) button", "Roll back")
	p.until(`document.querySelector('#confirm').open && document.activeElement.id === 'confirm-phrase' && document.querySelector('#confirm-go').disabled`)
	p.press("shop/corne")
	p.press(kb.Enter)
	if !p.is(`document.querySelector('#confirm').open && document.querySelector('#confirm-go').disabled`) {
		t.Fatal("a part of the name is enough")
	}
	p.press("r")
	p.press(kb.Enter)
	p.until(`!document.querySelector('#confirm').open`)
	p.until(`document.querySelector('.said').textContent.length > 0`)
	p.shows("#panel-history table", "rollback to "+revision)
	env.Until(t, "the Deployment is as it was", func() error {
		d := deployment("corner-web")
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if *d.Spec.Replicas != 2 {
			return fmt.Errorf("it has %d replicas", *d.Spec.Replicas)
		}
		return nil
	})
	p.click("button", "Suspend")
	p.shows(".status", "Suspended")
	p.click("button", "Resume")
	p.shows(".status", "Ready")
	b.patch(t, scaled, "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"shop.example.com/rollback-to":null}},"spec":{"replicas":2}}`)))
	b.untilReady(t)
}

func TestAFleetIsSearched(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	p := b.visit(t, b.serve(t, ui.Options{}), "")
	p.until(fmt.Sprintf(`document.querySelector('#count').textContent === '%d components'`, fleetSize+1))
	if rows := p.number(`document.querySelectorAll('.row').length`); rows > 50 {
		t.Errorf("%v rows are in the page, want those in sight", rows)
	}
	branch := branchOf("team-7", "branch-0777")
	check.NoError(t, b.client.Get(t.Context(), client.ObjectKeyFromObject(branch), branch))
	check.NoError(t, b.setStatus(t.Context(), branch, branchStatus(v1alpha1.StateError, "the quota is used up")))
	p.click("#search", "")
	p.press("QUOTA used")
	p.until(fmt.Sprintf(`document.querySelector('#count').textContent === '1 of %d components'`, fleetSize+1))
	p.shows(".row", "the quota is used up")
	// The address has the search. It is marked when the component that is open is not among the results.
	p.location(corner("tree"))
	p.shows("#count", "not the open one")
	p.run(chromedp.Reload())
	p.until(`document.querySelector('#heading')?.textContent === 'Shop market/corner' && location.hash.endsWith('/corner/tree?search=QUOTA+used') && document.querySelector('.astray .row')`)
	p.click("#all", "Show all")
	p.until(`document.querySelector('#search').value === '' && !location.hash.includes('?') && !document.querySelector('.astray')`)
	p.location("#")
	p.until(`document.querySelector('.row').textContent.includes('branch-0777')`) // the worst is the first
	p.click(".chip", "Not ready")
	p.until(`document.querySelectorAll('.row').length === 1`)
	p.click(".chip", "All")
	p.script(`document.querySelector('#namespace').value = 'team-3'; document.querySelector('#namespace').dispatchEvent(new Event('input'))`)
	p.until(fmt.Sprintf(`document.querySelector('#count').textContent === '100 of %d components'`, fleetSize+1))
	p.script(`document.querySelector('#list').scrollTop = 1e9`)
	p.shows(".row:last-child", "branch-0993")
	p.until(`document.querySelector('.row:last-child').ariaPosInSet === '100' && document.querySelector('.row').ariaSetSize === '100'`)
	check.NoError(t, b.setStatus(t.Context(), branch, branchStatus(v1alpha1.StateReady, "3 of 3 dependent objects are ready")))
	// One that is open and goes.
	check.NoError(t, b.createBranch(t.Context(), "team-3", "short", branchStatus(v1alpha1.StateReady, "3 of 3 dependent objects are ready")))
	p.click(".row", "short")
	p.shows(".status", "Ready")
	check.NoError(t, b.client.Delete(t.Context(), branchOf("team-3", "short")))
	p.shows(".component .about", "The component does not exist any more.")
	p.until(`![...document.querySelectorAll('.row')].some((r) => r.textContent.includes('short'))`)
}

func TestTheKeyboardIsEnough(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	p := b.visit(t, b.serve(t, ui.Options{}), "")
	p.until(`document.querySelectorAll('.row').length > 10`)
	p.press("jj")
	if !p.is(`document.activeElement === document.body && !document.querySelector('#list').hasAttribute('aria-activedescendant')`) {
		t.Error("a letter moves in the list, which has not the focus")
	}
	p.press("?")
	p.until(`document.querySelector('#help').open`)
	p.press(kb.Escape)
	p.until(`!document.querySelector('#help').open`)
	p.press("/")
	p.until(`document.activeElement.id === 'search'`)
	p.press("branch-01")
	p.until(`document.querySelector('#count').textContent.startsWith('100 of')`)
	p.press(kb.ArrowDown)
	p.tabTo(`e.id === 'list'`)
	p.press("j")
	p.press(kb.ArrowDown)
	p.press("k")
	p.until(`document.querySelector('#list').getAttribute('aria-activedescendant') === document.querySelectorAll('.row')[1].id`)
	p.press(kb.Enter)
	p.until(`document.activeElement.id === 'heading' && document.querySelector('#heading').textContent === 'Branch team-0/branch-0110'`)
	p.press("2")
	p.until(`document.querySelector('#tab-cause').getAttribute('aria-selected') === 'true' && !document.querySelector('#panel-cause').hidden && document.querySelector('#panel-tree').hidden`)
	p.tabTo(`e.id === 'tab-cause'`)
	p.press(kb.ArrowRight)
	p.until(`document.activeElement.id === 'tab-plan' && location.hash.includes('/plan?search=')`)
	p.press(kb.Escape)
	p.until(`document.activeElement.id === 'list' && location.hash.startsWith('#?search=')`)
	p.run(chromedp.NavigateBack())
	p.until(`location.hash.includes('/plan?') && !document.querySelector('#panel-plan').hidden`)
	// The keys that are characters can be switched off, and stay so.
	p.script(`document.activeElement.blur()`)
	p.press("?")
	p.tabTo(`e.id === 'shortcuts'`)
	p.press(" ")
	p.press(kb.Escape)
	p.until(`!document.querySelector('#help').open`)
	p.press("1?")
	p.run(chromedp.Reload())
	p.until(`document.querySelector('#panel-plan') && !document.querySelector('#shortcuts').checked`)
	p.press("1?")
	if !p.is(`location.hash.includes('/plan?') && !document.querySelector('#help').open`) {
		t.Error("keys that were switched off do something")
	}
	p.script(`document.querySelector('#shortcuts').click()`)
}

func TestARollbackIsConfirmedByTheKeyboard(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	status := branchStatus(v1alpha1.StateReady, "3 of 3 dependent objects are ready")
	for revision := range int64(2) {
		status.Revision = revision + 1
		status.History = append(status.History, v1alpha1.RevisionStatus{Revision: revision + 1, AppliedAt: metav1.Now(), Digest: "kept"})
	}
	create := func() {
		t.Helper()
		check.NoError(t, b.createBranch(t.Context(), "team-0", "keys", status))
	}
	remove := func() {
		t.Helper()
		check.NoError(t, b.client.Delete(context.WithoutCancel(t.Context()), branchOf("team-0", "keys")))
	}
	create()
	t.Cleanup(remove)
	p := b.visit(t, b.serve(t, ui.Options{Write: true}), hashOf(branchType, "team-0", "keys", "history"))
	p.until(`document.querySelector('#panel-history table')`)
	begin := func() {
		t.Helper()
		p.press(kb.Enter)
		p.until(`document.querySelector('#confirm').open && document.activeElement.id === 'confirm-phrase'`)
	}
	p.tabTo(`e.textContent === 'Roll back…'`)
	begin()
	// The table is drawn again while the dialog is open.
	p.script(`document.querySelector('#panel-history table').id = 'before'`)
	b.patch(t, branchOf("team-0", "keys"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"databaseSecret":"other"}}`)))
	p.until(`document.querySelector('#panel-history table') && !document.querySelector('#before')`)
	p.press(kb.Escape)
	p.until(`!document.querySelector('#confirm').open && document.activeElement.textContent === 'Roll back…'`)
	begin()
	// Another component of the name comes while the dialog is open: it is not the one that was meant.
	remove()
	status.Conditions[0].Message = "it is another one"
	create()
	p.shows(".component .about .message", "it is another one")
	p.press("branch/keys")
	p.tabTo(`e.id === 'confirm-go'`)
	p.expect("409")
	p.press(kb.Enter)
	p.shows("#confirm-error", "created again meanwhile")
	p.press(kb.Escape)
	p.until(`!document.querySelector('#confirm').open`)
	p.tabTo(`e.textContent === 'Roll back…'`)
	begin()
	p.press("branch/keys")
	p.tabTo(`e.id === 'confirm-go'`)
	p.press(kb.Enter)
	p.until(`!document.querySelector('#confirm').open`)
	p.shows(".said", "rolled back to revision 1")
}

// A file, as the command writes it, leads to the page.
func TestAFileLeadsToThePage(t *testing.T) {
	b := open(t)
	base := b.serve(t, ui.Options{})
	file := filepath.Join(t.TempDir(), "open.html")
	check.NoError(t, os.WriteFile(file, []byte(`<!doctype html><meta http-equiv="refresh" content="0; url=`+base+"?token="+encodedToken+`">`), 0o600))
	p := b.tab(t, base)
	p.run(chromedp.Navigate("file://" + file))
	p.until(opened + ` && document.querySelector('#live').textContent === 'Live'`)
}

// hostile is what would be code if the page made markup of it.
const hostile = `<img src=x onerror="alert(1)"></script><script>alert(2)</script>{{alert(3)}}`

func TestHostileTextsAreOnlyText(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	ctx := t.Context()
	// The inventory of one branch names another one. The message and the manager of that one are hostile.
	status := branchStatus(v1alpha1.StateError, hostile)
	check.NoError(t, b.createBranch(ctx, "team-0", "zz-dependent", status))
	dependent := branchOf("team-0", "zz-dependent")
	check.NoError(t, b.client.Get(ctx, client.ObjectKeyFromObject(dependent), dependent))
	b.annotate(t, dependent, "branch.example.com", "ours") // the operator's own, so that others can be told apart
	b.patch(t, dependent, `<img src=x onerror=alert(4)>`, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/other":`+quote(hostile)+`}}}`)))
	status.Inventory.Items = v1alpha1.InventoryItems{{Group: "branch.example.com", Version: "v1alpha1", Kind: "Branch", Namespace: "team-0", Name: "zz-dependent", UID: dependent.GetUID()}}
	check.NoError(t, b.createBranch(ctx, "team-0", "zz-hostile", status))
	owner := branchOf("team-0", "zz-hostile")
	check.NoError(t, b.client.Get(ctx, client.ObjectKeyFromObject(owner), owner))
	check.NoError(t, b.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team-0", Name: "hostile"},
		InvolvedObject: corev1.ObjectReference{APIVersion: branchAPI, Kind: "Branch", Namespace: "team-0", Name: "zz-hostile", UID: owner.GetUID()},
		Type:           corev1.EventTypeWarning, Reason: "Hostile", Message: hostile, LastTimestamp: metav1.Now(), Count: 1,
	}))
	t.Cleanup(func() {
		for _, branch := range []client.Object{owner, dependent} {
			if err := b.client.Delete(context.WithoutCancel(ctx), branch); err != nil {
				t.Error(err)
			}
		}
	})

	p := b.visit(t, b.serve(t, ui.Options{Write: true}), "")
	p.shows(".overview", hostile)
	p.press("/")
	p.press("zz-hostile")
	p.shows(".row .message", hostile)
	p.location(hashOf(branchType, "team-0", "zz-hostile", "tree"))
	p.shows(".about .message", hostile)
	p.shows(".dependent .message", hostile)
	p.shows(".tree", `set by <img src=x onerror=alert(4)>`)
	p.location(hashOf(branchType, "team-0", "zz-hostile", "cause"))
	p.shows("#panel-cause", "<img src=x")
	p.location(hashOf(branchType, "team-0", "zz-hostile", "events"))
	p.shows("#panel-events td bdi", hostile)
	p.location("#" + strings.Repeat("/", 5) + "%zz")
	p.shows(".overview", hostile)
	p.location("#<img src=x onerror=alert(5)>/a/b/tree")
	p.shows("#detail", "There is no such component")
	if p.is(`document.querySelector('img, .row script, main script')`) {
		t.Error("a text became an element")
	}
	// The policy of the server refuses what the page itself does not do. The page does not use innerHTML at all, and cannot.
	p.expect("TrustedHTML")
	if !p.is(`(() => { try { document.createElement('p').innerHTML = 'x'; return false; } catch (e) { return e instanceof TypeError; } })()`) {
		t.Error("the page can turn text into markup")
	}
}

func TestServersThatGoAwayAndComeBack(t *testing.T) {
	b := open(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: "corner-settings"}}
	ready := row("ConfigMap", "corner-settings") + `.innerText.includes('Ready')`
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	base, stop := b.serveOn(t, listener, ui.Options{})
	b.createFleet(t)
	short := branchOf("team-3", "away")
	check.NoError(t, b.createBranch(t.Context(), "team-3", "away", branchStatus(v1alpha1.StateReady, "3 of 3 dependent objects are ready")))
	other := b.visit(t, base, hashOf(branchType, "team-3", "away", "tree"))
	other.shows(".status", "Ready")
	other.expect("Failed to load")
	p := b.visit(t, base, corner("tree"))
	p.until(ready + ` && document.querySelector('#live').textContent === 'Live'`)

	p.expect("502")
	check.NoError(t, b.env.KillAPIServer())
	p.shows("#banner", "The API server does not answer")
	p.until(`document.querySelector('#live').textContent === 'Not live'`)
	p.until(ready) // what was there stays
	check.NoError(t, b.env.RestartAPIServer(t.Context()))
	p.until(`document.querySelector('#banner').textContent === '' && document.querySelector('#live').textContent === 'Live'`)
	b.annotate(t, settings, "after-the-restart", "1")
	p.until(row("ConfigMap", "corner-settings") + `.innerText.includes('set by after-the-restart')`)

	p.expect("Failed to load")
	stop()
	p.shows("#banner", "The server of this page does not answer")
	p.until(ready)
	b.annotate(t, settings, "while-away", "2")
	check.NoError(t, b.client.Delete(t.Context(), short))
	// One with another token does not know the page.
	if listener, err = net.Listen("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	_, stop = b.serveOn(t, listener, ui.Options{Token: "another token of these tests"})
	p.shows("#banner", "open the address that corbel ui printed")
	stop()
	if listener, err = net.Listen("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	b.serveOn(t, listener, ui.Options{})
	p.until(`document.querySelector('#banner').textContent === ''`)
	other.run(cdppage.BringToFront())
	other.shows(".component .about", "The component does not exist any more.")
	p.run(cdppage.BringToFront())
	p.until(row("ConfigMap", "corner-settings") + `.innerText.includes('set by while-away')`)
	b.patch(t, settings, "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
	b.untilReady(t)
}

// A connection may be cut without an error: then it is too long silent.
func TestAServerThatIsSilentIsNotLive(t *testing.T) {
	b := open(t)
	p := b.tab(t, b.serve(t, ui.Options{}))
	p.run(chromedp.ActionFunc(func(ctx context.Context) error { // too long is one second
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(`{ const later = setTimeout; window.setTimeout = (run, time, ...more) => later(run, time === 40000 ? 1000 : time, ...more); }`).Do(ctx)
		return err
	}))
	p.run(chromedp.Navigate(p.base + "?token=" + encodedToken))
	p.shows("#banner", "The server of this page does not answer")
	p.until(`document.querySelector('#live').textContent === 'Not live' && document.querySelector('#age').textContent.startsWith('data of ')`)
	p.until(`document.querySelector('#live').textContent === 'Live' && document.querySelector('#banner').textContent === ''`)
}

// interactive are the roles of what a user operates.
var interactive = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab", "listbox", "option", "tabpanel", "dialog", "navigation", "main", "progressbar", "table"}

// nameless returns the elements in the accessibility tree that need a name and have none.
func (p *page) nameless() (found []string) {
	p.Helper()
	var nodes []*accessibility.Node
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		nodes, err = accessibility.GetFullAXTree().Do(ctx)
		return err
	}))
	text := func(value *accessibility.Value) string {
		if value == nil {
			return ""
		}
		return strings.Trim(string(value.Value), `"`)
	}
	seen := map[string]bool{}
	for _, node := range nodes {
		role := text(node.Role)
		seen[role] = true
		if slices.Contains(interactive, role) && !node.Ignored && text(node.Name) == "" {
			found = append(found, fmt.Sprintf("%s %s", role, node.NodeID))
		}
	}
	for _, role := range []string{"navigation", "main", "banner", "searchbox", "listbox", "option", "heading"} {
		if !seen[role] && !seen["dialog"] {
			found = append(found, "there is no "+role)
		}
	}
	return found
}

// faint returns texts in sight with a contrast of less than 4.5 to what is behind them.
const faint = `(() => {
	const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > .99) return c; } return [255, 255, 255]; };
	const walker = document.createTreeWalker(document.querySelector('dialog[open]') ?? document.body, NodeFilter.SHOW_TEXT), found = new Set();
	for (let n; (n = walker.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest('.unseen, noscript, option, :disabled')) continue;
		const [a, b] = [light(channels(getComputedStyle(e).color)), light(behind(e))];
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) found.add(e.className + ' "' + n.data.trim().slice(0, 40) + '" ' + ratio.toFixed(2));
	}
	return [...found].join('\n');
})()`

// wide returns elements that stick out of the page to the right.
const wide = `(() => {
	for (const e of [document.documentElement, ...document.querySelectorAll('.overview, .panel')]) if (e.scrollWidth > e.clientWidth + 1) return e.className + ' is ' + e.scrollWidth + ' wide';
	return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('.unseen, pre, textarea, [role=tablist], thead') &&
		e.getBoundingClientRect().width && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className).join('\n');
})()`

// tiny returns what a finger does not hit on a small screen, and what lets a telephone zoom in.
const tiny = `innerWidth > 700 ? '' : [...document.querySelectorAll('a, button, select, summary, textarea, input:not([type=checkbox])')].filter((e) => e.checkVisibility() &&
	(e.getBoundingClientRect().height < 23.5 || e.matches('input, select, textarea') && parseFloat(getComputedStyle(e).fontSize) < 16)).map((e) => e.tagName + '.' + e.className + ' ' + e.textContent).join('\n')`

func TestThePageIsAccessibleInEachLayout(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	ill := "ill-" + strings.Repeat("very-", 9) + "long-name"
	check.NoError(t, b.createBranch(t.Context(), "team-0", ill, branchStatus(v1alpha1.StateProcessing, "Deployment team-0/"+strings.Repeat("long", 60)+": 0 of 3 replicas ready")))
	t.Cleanup(func() {
		if err := b.client.Delete(context.WithoutCancel(t.Context()), branchOf("team-0", ill)); err != nil {
			t.Error(err)
		}
	})
	p := b.visit(t, b.serve(t, ui.Options{Write: true}), "")
	p.location(corner("tree"))
	p.until(`document.querySelectorAll('.pod').length > 2`)
	pod := p.text(`document.querySelector('.pod a').hash`)
	about := func(tab string) string {
		return hashOf(shopType, market, "corner", tab+"/apps%2FDeployment%2Fmarket%2Fcorner-web")
	}
	views := []struct{ name, hash, ready string }{
		{"overview", "", `document.querySelector('.cards') && document.querySelector('.row')`},
		{"list", "#?", `document.querySelector('.row')`},
		{"object", about("live"), `document.querySelector('#panel-object-live pre')`},
		{"difference", about("difference"), `document.querySelector('#panel-object-difference .buttons')`},
		{"log", pod, `document.querySelector('#panel-object-log .chip')`},
		{"tree", corner("tree"), `document.querySelectorAll('.dependent').length > 10`},
		{"cause", hashOf(branchType, "team-0", ill, "cause"), `document.querySelector('#panel-cause .headline')`},
		{"plan", corner("plan"), `document.querySelector('#spec').value`},
		{"events", corner("events"), `document.querySelector('#panel-events table')`},
		{"history", corner("history"), `document.querySelector('#panel-history table')`},
	}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, view := range views {
			p.run(p.size(1280, 800))
			p.location(view.hash)
			p.until(view.ready)
			check := func(what string, problems string) {
				t.Helper()
				if problems != "" {
					t.Errorf("%s, %s, %s:\n%s", view.name, scheme, what, problems)
				}
			}
			check("without a name", strings.Join(p.nameless(), "\n"))
			check("faint", p.text(faint))
			for _, width := range []int64{1440, 800, 390, 360} {
				p.run(p.size(width, 844))
				check(fmt.Sprintf("%d wide", width), p.text(wide))
				check(fmt.Sprintf("%d wide, too small", width), p.text(tiny))
			}
			if isList := view.name == "list"; !p.is(fmt.Sprintf(`document.querySelector('.fleet').checkVisibility() === %t && document.querySelector('main').checkVisibility() === %t`, isList, !isList)) {
				t.Errorf("%s: a small screen does not show one column", view.name)
			}
		}
		p.run(p.size(1280, 800))
		p.location("")
		p.script(`document.querySelector('#help').showModal()`)
		if found := p.nameless(); len(found) > 0 {
			t.Errorf("the help: %v", found)
		}
		check.SameNamed(t, "the help is faint", "", p.text(faint))
		p.script(`document.querySelector('#help').close()`)
	}
	// The way back on a small screen.
	p.run(p.size(390, 844))
	p.location(pod)
	p.click("button", "‹ Shop market/corner")
	p.click("button", "‹ Components")
	p.until(`document.querySelector('.fleet').checkVisibility() && !document.querySelector('main').checkVisibility()`)
	p.click("a", "‹ Overview")
	p.until(`!document.querySelector('.fleet').checkVisibility() && document.querySelector('.overview').checkVisibility()`)
}

func TestObjectsOfAComponentAreOpened(t *testing.T) {
	b := open(t)
	p := b.visit(t, b.serve(t, ui.Options{}), corner("tree"))
	p.click(".dependent a[href*=Deployment]", "corner-web")
	p.until(`document.activeElement.id === 'object-heading' && document.title === 'corner-web – Shop market/corner – Corbel'`)
	p.shows("#panel-object-live", "image: registry.example.com/shop:1.0")
	p.until(`!document.querySelector('#panel-object-live').innerText.includes('managedFields')`)
	b.annotate(t, deployment("corner-web"), "kubectl-edit", "by hand")
	p.shows("#panel-object-live", "example.com/note: by hand")
	p.press("2")
	p.until(`[...document.querySelectorAll('#panel-object-difference tr')].some((r) => [...r.cells].slice(0, 3).map((c) => c.textContent).join() === 'metadata.annotations[example.com/note],"by hand",kubectl-edit')`)
	p.click("button", "Compare with the manifest")
	p.shows("#panel-object-difference .result", "The operator would change nothing of it")
	p.shows("#panel-object-difference .result pre", "image: registry.example.com/shop:1.0")
	b.patch(t, deployment("corner-web"), "kubectl-edit", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/note":null}}}`)))
	p.shows("#panel-object-difference", "No other client has set a field of it.")
	p.press("3")
	p.shows("#panel-object-events table", "ScalingReplicaSet")
	p.press("4")
	p.until(`document.querySelector('#panel-object-log a')`)
	name := p.text(`document.querySelector('#panel-object-log a').textContent`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: market, Name: name}}
	b.patch(t, pod, "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"podsim.corbel.run/log":"the first line"}}}`)))
	p.click("#panel-object-log a", name)
	p.shows("#panel-object-log pre", "the first line")
	b.patch(t, pod, "", client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"podsim.corbel.run/log":"the next line"}}}`)))
	p.shows("#panel-object-log pre", "the next line") // it goes on reading
	p.press(kb.Escape)
	p.until(`location.hash.endsWith('/corner/tree') && document.querySelector('#panel-tree').checkVisibility()`)
	p.expect("404")
	p.location(hashOf(shopType, market, "corner", "log/%2FPod%2Fmarket%2Fgone"))
	p.shows("#panel-object-log", `has no dependent object or pod "/Pod/market/gone"`)
	b.untilReady(t)
}

// From the overview to the log of a pod that fails, on a telephone.
func TestTheLogOfAFailingPodIsThreeTapsAway(t *testing.T) {
	b := open(t)
	b.createFleet(t)
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:broken"}}`)))
	create := func(namespace, name, message string) {
		check.NoError(t, b.createBranch(t.Context(), namespace, name, branchStatus(v1alpha1.StateError, message)))
		t.Cleanup(func() {
			check.NoError(t, b.client.Delete(context.WithoutCancel(t.Context()), branchOf(namespace, name)))
		})
	}
	create("team-0", "alike-0", "Deployment team-0/alike-0-web: 0 of 1 replicas ready; pod alike-0-web-754fcb8c55-5k7p7: out of memory")
	create("team-1", "alike-1", "Deployment team-1/alike-1-web: 0 of 1 replicas ready; pod alike-1-web-6f6bf7fcb8-x4jlj: out of memory")
	p := b.visit(t, b.serve(t, ui.Options{}), "")
	p.run(p.size(390, 844))
	p.shows(".overview details", "Deployment …-web: 0 of 1 replicas ready; pod …-web-…: out of memory") // a card for both
	p.shows(".overview details summary", "2 components")
	p.shows(".overview", "ImagePullBackOff")
	if p.is(`document.body.matches('.keyed') || document.querySelector('.fleet').checkVisibility()`) {
		t.Error("the overview is not the first")
	}
	// A card that stays as it is stays in its place: else a click on it is lost.
	p.script(`window.before = document.querySelector('.overview details')`)
	create("team-0", "new", "it is new")
	p.shows(".overview .cards", "it is new")
	if !p.is(`window.before.isConnected`) {
		t.Error("all of the overview was drawn again")
	}
	empty := b.visit(t, b.serve(t, ui.Options{Namespace: "default"}), "")
	empty.shows(".overview", "No components found in namespace default.")
	p.run(cdppage.BringToFront())
	p.click(".card", "Shop market/corner")
	p.click(".chain .last a", "Pod market/corner-")
	p.shows("#panel-object-log", "The log is empty") // the simulated kubelet does not say that the container waits
	b.patch(t, shops.New("corner"), "", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:1.0"}}`)))
	b.untilReady(t)
}
