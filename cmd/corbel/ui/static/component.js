// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The component that is open: how it is, what may be done with it, and its tabs.

import { post } from './api.js';
import { ago, announce, el, icon, replace, title, toneOf } from './dom.js';
import { stateOf } from './fleet.js';
import { causePanel, eventsPanel, historyPanel, planPanel } from './panels.js';
import { treePanel } from './tree.js';

export const tabs = { tree: 'Tree', cause: 'Cause', plan: 'Plan', events: 'Events', history: 'History' };
const makers = { cause: causePanel, plan: planPanel, events: eventsPanel, history: historyPanel };

// openComponent draws a component, and returns what changes the drawing.
export function openComponent(root, component, { write, go, back }) {
  let now = component, tab = '';
  const head = el('div', { class: 'about' }), said = el('p', { class: 'said', role: 'status' });
  const heading = el('h2', { tabindex: '-1', id: 'heading' }, title(component));
  const buttons = {}, panels = {}, readers = {};
  for (const [name, text] of Object.entries(tabs)) {
    buttons[name] = el('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => go(name) }, text);
    panels[name] = el('div', { role: 'tabpanel', id: `panel-${name}`, class: `panel ${name}`, 'aria-labelledby': `tab-${name}`, tabindex: '0', hidden: true });
  }
  const list = el('div', { role: 'tablist', 'aria-label': 'About the component', onkeydown: (event) => {
    const names = Object.keys(tabs), at = names.indexOf(tab);
    const to = { ArrowRight: (at + 1) % names.length, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    const name = names.at(to);
    event.preventDefault();
    go(name);
    buttons[name].focus();
  } }, Object.values(buttons));
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
  const tree = treePanel(panels.tree, component);
  root.replaceChildren(
    el('header', { class: 'component' },
      el('button', { type: 'button', class: 'back quiet', onclick: back }, '‹ Components'),
      el('div', { class: 'title' }, heading, write && el('div', { class: 'buttons' },
        el('button', { type: 'button', onclick: () => plain('reconcile') }, 'Reconcile'), suspend, end)),
      head, said, list),
    ...Object.values(panels));

  const readShown = () => readers[tab]?.(now);
  let timer; // of the next time that what is shown is read: not more often than some times a second
  const readLater = () => { timer ??= setTimeout(() => { timer = undefined; readShown(); }, 400); };

  function drawHead() {
    const tone = toneOf(now.state);
    const [done, all] = (now.progress ?? '').split('/').map(Number);
    const progress = all > 0 && el('progress', { 'aria-label': 'Ready dependents', value: done, max: all, 'data-tone': tone });
    const pill = (when, text, tone) => when && el('span', { class: 'pill', 'data-tone': tone }, text);
    const facts = [now.revision ? `revision ${now.revision}` : '', now.reconciler && `operator ${now.reconciler}`, now.apiVersion];
    replace(head,
      el('p', { class: 'status' }, el('span', { class: 'pill', 'data-tone': tone }, icon(tone), stateOf(now)),
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
  }

  drawHead();
  return {
    readShown, tree: tree.tree, problem: tree.problem,
    dependent(event) { tree.dependent(event); if (tab === 'cause' || tab === 'events') readLater(); },
    // update takes over a change; undefined says that the component is gone.
    update(next) {
      const before = stateOf(now);
      now = next ?? { ...now, state: 'gone', message: 'The component does not exist any more.', reason: '', progress: '' };
      drawHead();
      if (stateOf(now) !== before) announce(`${title(now)}: ${stateOf(now)}${now.progress ? ', ' + now.progress : ''}`);
      readLater();
    },
    select(name) {
      if (tab === name) return;
      tab = name;
      for (const other of Object.keys(tabs)) {
        buttons[other].setAttribute('aria-selected', other === name);
        buttons[other].tabIndex = other === name ? 0 : -1;
        panels[other].hidden = other !== name;
      }
      if (makers[name]) readers[name] ??= makers[name](panels[name], now, { write, act });
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
