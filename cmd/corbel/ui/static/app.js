// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The page of corbel ui: the list of components on the left, one of them, or one of its objects, on the right. All changes come by the
// stream of events.

import { hashOf, keepFilters, parseHash } from './address.js';
import { follow, get } from './api.js';
import { ago, frame, replace, el, title } from './dom.js';
import { openComponent, tabs } from './component.js';
import { change, choose, components, filterText, idOf, setAll, setFilter, start } from './fleet.js';
import { objectTabs, openObject } from './object.js';
import { drawOverview } from './overview.js';

const byId = (id) => document.getElementById(id);
const detail = byId('detail');
let info = {}, problems = [], loading = true, isOld = false; // loading: there is no list yet; isOld: changes may have been missed
let open = null; // {id, component, view, object} of what is open; view is undefined as long as the component is not known
let routed = false, routedObject; // the hash was looked at once: from now on the focus follows it, and the object in it
let heard = new Date(); // when the server said something last

// route shows what the hash names.
function route() {
  const { component, object, filters } = parseHash();
  if (!component || filters !== undefined) setFilter(filters ?? '');
  else if (filterText()) keepFilters(filterText());
  document.body.classList.toggle('listed', !component && filters !== undefined); // on a small screen: the list in place of the overview
  const id = component && idOf(component), isOther = !routed || open?.id !== id;
  const moves = routed && (isOther || routedObject !== object);
  if (isOther) {
    open = component && { id, component };
    document.body.classList.toggle('opened', Boolean(open));
    detail.replaceChildren();
    choose(id ?? '');
    follow(component, handlers);
  }
  show();
  if (moves) (open ? byId(object ? 'object-heading' : 'heading') ?? detail : byId('list')).focus({ preventScroll: true });
  routed = true;
  routedObject = object;
}

// show draws what is on the right as far as it is known.
function show() {
  const known = open && components.get(open.id), { tab, object, container } = parseHash();
  const name = open && title({ kind: '', ...open.component, ...known }).trim();
  document.title = [object?.split('/').at(-1), name, 'Corbel'].filter(Boolean).join(' – ');
  if (!open) return drawOverview(detail, { problems, loading, namespace: info.namespace });
  if (known && !open.view) {
    open.view = openComponent(known, { write: info.write, go: (to) => { location.hash = hashOf(known, to); }, back });
    detail.replaceChildren(open.view.root);
  } else if (!known && !open.view) {
    return replace(detail, el('button', { type: 'button', class: 'back quiet', 'data-key': 'back', onclick: back }, '‹ Components'),
      el('p', { class: 'empty' }, loading ? 'Loading…' : 'There is no such component, or you may not list its type.'));
  }
  if (open.object?.key !== object) {
    open.object?.root.remove();
    const go = (to, of) => { location.hash = hashOf(open.component, to, object, ...(of ? [of] : [])); };
    open.object = object && openObject(open.component, object, { title: name, go, back });
    if (object) detail.append(open.object.root);
    open.view.root.hidden = Boolean(object);
  }
  (open.object ?? open.view).select(tab, container);
}
const showSoon = frame(show);

function back() { location.hash = open?.object ? hashOf(open.component) : '?' + filterText(); }

// ofOpen takes over what the stream says about the component that is open. It may know it before the list does.
const ofOpen = (name) => (data) => {
  if (!open?.view && data.component) { change({ item: data.component }); show(); }
  open?.view?.[name](data);
  const key = open?.object?.key;
  if (key && (!data.item || data.item.key === key || data.item.pods?.some((pod) => key.endsWith('/' + pod.name)))) open.object.readLater();
};

const handlers = {
  alive() { heard = new Date(); },
  lost(message) { banner(`${message} It is tried again; what is shown may be out of date.`); },
  fleet(list) {
    problems = list.problems;
    loading = list.isDown && !list.items.length;
    if (!list.isDown || list.items.length) setAll(list.items);
    // One that is not in a list that lacks a type may be there.
    if (open?.view && !list.isDown && (components.has(open.id) || !problems.length)) open.view.update(components.get(open.id));
    if (isOld && !list.isDown) open?.object?.readShown();
    banner(list.isDown ? `The API server does not answer: ${list.message}. What is shown may be out of date.` : '');
    show();
  },
  component(event) {
    change(event);
    if (open && idOf(event.item) === open.id) open.view?.update(event.op === 'gone' ? undefined : event.item);
    if (!open?.view) showSoon(); else open.view.relate();
  },
  tree: ofOpen('tree'), problem: ofOpen('problem'), dependent: ofOpen('dependent'),
};

// banner says what is wrong with the connection, and how old the data is, or that nothing is wrong.
function banner(text) {
  isOld = Boolean(text);
  if (!text) byId('age').replaceChildren();
  else if (!byId('age').hasChildNodes()) byId('age').replaceChildren('data of ', ago(heard.toISOString()));
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
  const name = Object.keys(open?.object ? objectTabs : tabs)[event.key - 1];
  if (name && open?.view) location.hash = hashOf(open.component, name, ...(open.object ? [open.object.key] : []));
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click', () => button.closest('dialog').close());
byId('help-button').addEventListener('click', keys['?']);
window.addEventListener('hashchange', route);
// A ring around the focus is for those who use the keyboard.
for (const type of ['keydown', 'pointerdown']) document.addEventListener(type, () => document.body.classList.toggle('keyed', type === 'keydown'), true);

start((c) => {
  if (open?.id === idOf(c) && !open.object) byId('heading')?.focus();
  else location.hash = hashOf(c);
}, keepFilters);
get('info').then((answer) => {
  info = answer;
  byId('cluster').textContent = [info.context, info.server, info.namespace && `namespace ${info.namespace}`].filter(Boolean).join(' · ');
  byId('mode').textContent = info.write ? 'Writes' : 'Read-only';
  byId('mode').title = info.write ? 'Started with --write' : 'Start corbel ui with --write to steer components';
  byId('mode').hidden = false;
}).catch((error) => banner(error.message)).finally(route);
