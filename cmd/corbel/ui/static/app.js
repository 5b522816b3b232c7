// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The page of corbel ui: the list of components on the left, one of them on the right. What is open is in the hash of
// the address, #type/namespace/name/tab. All changes come by the stream of events.

import { follow, get } from './api.js';
import { frame, replace, el, title } from './dom.js';
import { openComponent, tabs } from './component.js';
import { change, choose, components, idOf, setAll, start } from './fleet.js';
import { drawOverview } from './overview.js';

const byId = (id) => document.getElementById(id);
const detail = byId('detail');
let info = {}, problems = [], loading = true; // loading: there is no list yet
let open = null; // {id, component, view} of what is open; view is undefined as long as the component is not known
let held = null; // what changes while the list is read: functions
let stale = true; // the list must be read when the stream is open
let routed = false; // the hash was looked at once: from now on the focus follows it

const hashOf = (c, tab = 'tree') => '#' + [c.type, c.namespace ?? '', c.name, tab].map(encodeURIComponent).join('/');

function parseHash() {
  try {
    const [type, namespace, name, tab] = location.hash.slice(1).split('/').map(decodeURIComponent);
    return type && name ? { component: { type, namespace, name }, tab: Object.hasOwn(tabs, tab) ? tab : 'tree' } : {};
  } catch { return {}; } // no address of this page
}

// route shows what the hash names.
function route() {
  const { component, tab } = parseHash();
  const id = component && idOf(component);
  if (!routed || open?.id !== id) {
    open = component && { id, component };
    document.body.classList.toggle('opened', Boolean(open));
    detail.replaceChildren();
    choose(id ?? '');
    follow(component, handlers);
    show();
    if (routed) (open ? byId('heading') ?? detail : byId('list')).focus({ preventScroll: true });
    routed = true;
  }
  open?.view?.select(tab);
}

// show draws what is on the right as far as it is known.
function show() {
  const known = open && components.get(open.id);
  document.title = (open ? title({ kind: '', ...open.component, ...known }).trim() + ' – ' : '') + 'Corbel';
  if (!open) return drawOverview(detail, { problems, loading, link: hashOf });
  if (known && !open.view) {
    open.view = openComponent(detail, known, { write: info.write, go: (tab) => { location.hash = hashOf(known, tab); }, back });
    open.view.select(parseHash().tab);
    for (const [name, data] of open.early ?? []) open.view[name](data);
  } else if (!known && !open.view) {
    replace(detail, el('button', { type: 'button', class: 'back quiet', 'data-key': 'back', onclick: back }, '‹ Components'),
      el('p', { class: 'empty' }, loading ? 'Loading…' : 'There is no such component, or you may not list its type.'));
  }
}
const showSoon = frame(show);

function back() { location.hash = ''; }

// load reads all components. Changes that come meanwhile are applied after it.
async function load() {
  if (held) return;
  held = [];
  try {
    const answer = await get('components');
    loading = stale = false;
    problems = answer.problems ?? [];
    setAll(answer.items ?? []);
    // One that is not in a list that lacks a type may be there.
    if (open?.view && (components.has(open.id) || !problems.length)) open.view.update(components.get(open.id));
  } catch (error) {
    banner(error.message);
    setTimeout(load, 2000);
  }
  const missed = held;
  held = null;
  missed.forEach((apply) => apply());
  show();
}

const whenRead = (apply) => (data) => { if (held) held.push(() => apply(data)); else apply(data); };

function takeOver(event) {
  change(event);
  if (open && idOf(event.item) === open.id) open.view?.update(event.op === 'gone' ? undefined : event.item);
  if (!open?.view) showSoon();
}

// early keeps what the stream says about a component before the list has it.
const ofOpen = (name) => (data) => { if (open?.view) open.view[name](data); else if (open) (open.early ??= []).push([name, data]); };

const handlers = {
  open() { banner(''); if (stale) load(); },
  lost(message) { stale = true; banner(`${message} It is tried again; what is shown may be out of date.`); },
  connection({ ok, message }) {
    if (!ok) stale = true;
    banner(ok ? '' : `The API server does not answer${message ? ': ' + message : ''}. What is shown may be out of date.`);
  },
  reset() { if (stale) { load(); open?.view?.readShown(); } },
  component: whenRead(takeOver), problems: whenRead((list) => { problems = list; showSoon(); }),
  tree: ofOpen('tree'), problem: ofOpen('problem'), dependent: ofOpen('dependent'),
};

// banner says what is wrong with the connection, or that nothing is.
function banner(text) {
  if (byId('banner').textContent !== text) byId('banner').textContent = text;
  byId('live').textContent = text ? 'Not live' : 'Live';
  byId('live').dataset.tone = text ? 'bad' : 'good';
}

const keys = {
  '/': () => { byId('search').focus(); byId('search').select(); },
  '?': () => byId('help').showModal(),
  Escape() {
    if (document.activeElement === byId('search') && byId('search').value) { byId('search').value = ''; byId('search').dispatchEvent(new Event('input')); }
    else if (open) back();
    else byId('list').focus();
  },
};

// Keys that are characters can be switched off: dictated text, for instance, has them.
const shortcuts = byId('shortcuts');
try { shortcuts.checked = localStorage.getItem('shortcuts') !== 'off'; } catch { /* the browser keeps nothing */ }
shortcuts.addEventListener('change', () => { try { localStorage.setItem('shortcuts', shortcuts.checked ? 'on' : 'off'); } catch { /* as above */ } });

document.addEventListener('keydown', (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.matches('input:not([type=checkbox]), textarea, select');
  if (event.key !== 'Escape' && (typing || !shortcuts.checked)) return;
  if (event.key === 'Escape' && event.target.matches('textarea, select')) return event.target.blur();
  const name = Object.keys(tabs)[event.key - 1];
  if (name && open?.view) location.hash = hashOf(open.component, name);
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click', () => button.closest('dialog').close());
byId('help-button').addEventListener('click', keys['?']);
window.addEventListener('hashchange', route);

start((c) => {
  if (open?.id === idOf(c)) byId('heading')?.focus();
  else location.hash = hashOf(c);
});
get('info').then((answer) => {
  info = answer;
  byId('cluster').textContent = [info.context, info.server, info.namespace && `namespace ${info.namespace}`].filter(Boolean).join(' · ');
  byId('mode').textContent = info.write ? 'Writes' : 'Read-only';
  byId('mode').title = info.write ? 'Started with --write' : 'Start corbel ui with --write to steer components';
  byId('mode').hidden = false;
}).catch((error) => banner(error.message)).finally(route);
