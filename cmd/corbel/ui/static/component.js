// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The component that is open: how it is, what may be done with it, and its tabs.

import { hashOf } from './address.js';
import { post } from './api.js';
import { ago, announce, el, icon, replace, soon, title, toneOf, update } from './dom.js';
import { components } from './fleet.js';
import { causePanel, eventsPanel, historyPanel, planPanel } from './panels.js';
import { tabbed } from './tabs.js';
import { treePanel } from './tree.js';

export const tabs = { tree: 'Tree', cause: 'Cause', plan: 'Plan', events: 'Events', history: 'History' };
const makers = { cause: causePanel, plan: planPanel, events: eventsPanel, history: historyPanel };

const keyOf = (c) => [c.apiVersion.split('/')[0], c.kind, c.namespace ?? '', c.name].join('/'); // as what others require

// related is a line about components; of what is not in the list there is the key only.
const related = (label, list) => list.length > 0 && el('p', {}, label, list.map((c, i) => [i > 0 && ', ',
  c.name ? [el('a', { href: hashOf(c), 'data-key': title(c) }, title(c)), ` (${c.state})`] : `${c.split('/').slice(1).filter(Boolean).join(' ')} (not in the list)`]));

// openComponent draws a component, and returns what changes the drawing.
export function openComponent(component, { write, go, back }) {
  let now = component;
  const head = el('div', { class: 'about' }), relations = el('div', { class: 'about' }), said = el('p', { class: 'said', role: 'status' });
  const heading = el('h2', { tabindex: '-1', id: 'heading' }, title(component));
  const view = tabbed(tabs, { label: 'About the component', go }), readers = {};
  const act = (question) => { // about the component that is there now, not one that is created while the dialog is open
    const body = { ...question.body, uid: now.uid };
    confirmThen({ ...question, text: `${title(component)}: ${question.text}`, body }, `${component.kind.toLowerCase()}/${component.name}`, send);
  };
  const send = async (body) => {
    said.textContent = 'Asking…';
    try {
      said.textContent = (await post('action', now, { uid: now.uid, ...body })).text;
    } catch (error) { said.textContent = error.message; throw error; }
  };
  const plain = (action) => send({ action }).catch(() => {}); // said has it
  const suspend = el('button', { type: 'button', onclick: () => plain(now.suspended ? 'resume' : 'suspend') });
  const end = el('button', { type: 'button', onclick: () => act({
    title: 'End the rollback', go: 'End the rollback', text: 'The operator applies the spec of the component as it is stored. “Plan the end of the rollback”, in the tab Plan, shows what that changes.', body: { action: 'end-rollback' },
  }) }, 'End rollback…');
  const tree = treePanel(view.panels.tree, component);
  const root = el('div', { class: 'view' },
    el('header', { class: 'component' },
      el('button', { type: 'button', class: 'back quiet', onclick: back }, '‹ Components'),
      el('div', { class: 'title' }, heading, write && el('div', { class: 'buttons' },
        el('button', { type: 'button', onclick: () => plain('reconcile') }, 'Reconcile'), suspend, end)),
      head, relations, said, view.list),
    Object.values(view.panels));

  const readShown = () => readers[view.current]?.(now), readLater = soon(readShown);

  function drawHead() {
    const tone = toneOf(now.state);
    const [done, all] = (now.progress ?? '').split('/').map(Number);
    const progress = all > 0 && el('progress', { 'aria-label': 'Ready dependents', value: done, max: all, 'data-tone': tone });
    const pill = (when, text, tone) => when && el('span', { class: 'pill', 'data-tone': tone }, text);
    const facts = [now.revision ? `revision ${now.revision}` : '', now.reconciler && `operator ${now.reconciler}`, now.apiVersion];
    replace(head,
      el('p', { class: 'status' }, el('span', { class: 'pill', 'data-tone': tone }, icon(tone), now.state),
        pill(now.reason && now.reason !== now.state, now.reason),
        pill(now.deleting && now.state !== 'Deleting', 'being deleted', 'gone'),
        pill(now.suspended && now.state !== 'Suspended', 'suspended', 'idle'),
        pill(now.rolledBack, `rolled back to ${now.rolledBack}`, 'idle'),
        pill(now.drifted, 'drifted', 'busy'),
        pill(now.upToDate === false, 'its last change is not observed yet', 'busy'), progress, now.progress),
      now.message && el('p', {}, el('bdi', { class: 'message' }, now.message)),
      now.drifted && el('p', {}, 'Changed by others, and left as it is: ', el('bdi', {}, now.drifted)),
      el('p', { class: 'dim' }, facts.filter(Boolean).join(' · '), ' · age ', ago(now.created, '')));
    suspend.textContent = now.suspended ? 'Resume' : 'Suspend';
    end.hidden = !now.rolledBack;
    drawRelations();
  }

  function drawRelations() {
    const all = [...components.values()], key = keyOf(now);
    update(relations, related('Requires ', (now.requires?.split(' ') ?? []).map((wanted) => all.find((c) => keyOf(c) === wanted) ?? wanted)),
      related('Required by ', all.filter((c) => c.requires?.split(' ').includes(key))));
  }

  drawHead();
  return {
    root, relate: soon(drawRelations), readShown, problem: tree.problem,
    tree(event) { tree.tree(event); if (view.current === 'cause') readLater(); }, // its objects are links now
    dependent(event) { tree.dependent(event); if (view.current === 'cause' || view.current === 'events') readLater(); },
    // update takes over a change; undefined says that the component is gone.
    update(next) {
      const before = now.state;
      now = next ?? { ...now, state: 'gone', message: 'The component does not exist any more.', reason: '', progress: '' };
      drawHead();
      if (now.state !== before) announce(`${title(now)}: ${now.state}${now.progress ? ', ' + now.progress : ''}`);
      readLater();
    },
    select(wanted) {
      if (!view.select(wanted)) return;
      const name = view.current;
      if (makers[name]) readers[name] ??= makers[name](view.panels[name], now, { write, act, has: tree.has });
      readShown();
    },
  };
}

// confirmThen asks for a phrase to be typed before it sends anything.
function confirmThen({ title: text, text: about, go, body }, phrase, send) {
  const byId = (id) => document.getElementById(`confirm-${id}`);
  const dialog = document.getElementById('confirm'), typed = byId('phrase'), button = byId('go');
  byId('title').textContent = text;
  byId('text').textContent = about;
  byId('wanted').textContent = phrase;
  byId('error').textContent = typed.value = '';
  button.textContent = go;
  button.disabled = true;
  typed.oninput = () => { button.disabled = typed.value !== phrase; };
  typed.onkeydown = (event) => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    if (button.disabled) byId('error').textContent = `Type ${phrase}`; else button.click();
  };
  button.onclick = async () => {
    button.disabled = true;
    try { await send({ ...body, confirm: typed.value }); dialog.close(); } catch (error) { byId('error').textContent = error.message; button.disabled = false; }
  };
  // The browser gives the focus back to the button that opened the dialog, unless the button is drawn again meanwhile.
  const { key } = document.activeElement.dataset;
  dialog.onclose = () => { if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus(); };
  dialog.showModal();
  typed.focus();
}
