// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The list of components. Only the rows in sight are in the page, so that thousands are quick.

import { el, frame, icon, title, toneOf } from './dom.js';

export const components = new Map(); // all, by their id
export const idOf = ({ type, namespace, name }) => `${type}/${namespace ?? ''}/${name}`;

const byId = (id) => document.getElementById(id);
const list = byId('list'), rows = byId('rows'), states = byId('states');
const controls = Object.fromEntries(['search', 'kind', 'namespace', 'sort'].map((name) => [name, byId(name)]));
const rowHeight = 50, spare = 6; // as in app.css; rows beyond those in sight
const filter = { search: '', kind: '', namespace: '', state: '', sort: '' }; // the address has them
let sorted = null; // all; null if one came, went or has another place
let shown = []; // those that the filters let through
let drawn = new Map(); // rows in the page, by the id of the component
let active = '', chosen = ''; // ids of what the keyboard is at, and of what is open
let loaded = false;

// set replaces all components.
export function setAll(items) {
  components.clear();
  for (const item of items) components.set(idOf(item), item);
  sorted = null;
  loaded = true;
  refresh();
}

// change takes over what happened to one component.
export function change({ op, item }) {
  const id = idOf(item), before = components.get(id);
  if (op === 'gone') components.delete(id); else components.set(id, item);
  if (op === 'gone' || !before || orderOf(before) !== orderOf(item)) sorted = null;
  refresh();
}

export const filterText = () => String(new URLSearchParams(Object.entries(filter).filter(([, value]) => value)));

// setFilter takes over filters and the order from an address.
export function setFilter(text) {
  const given = new URLSearchParams(text);
  set(Object.fromEntries(Object.keys(filter).map((name) => [name, given.get(name) ?? ''])));
}

function set(some) {
  const before = filterText();
  Object.assign(filter, some);
  if (filterText() === before) return;
  for (const name of ['search', 'sort']) if (controls[name].value !== filter[name]) controls[name].value = filter[name];
  sorted = null;
  list.scrollTop = 0;
  refresh();
}

let keep; // called with the filters that a user has set
const choice = (some) => { set(some); keep(filterText()); };

// The order of components, and of the overview: the worst first. Equal ones are sorted by their place.
const severity = ['bad', 'busy', 'gone', 'idle', 'good'];
const place = (c) => `${c.namespace ?? ''}\u0000${c.kind}\u0000${c.name}`;
export const worstFirst = (c) => (c.ready ? (c.drifted ? 5 : 6) : severity.indexOf(toneOf(c.state))) + place(c);
const orders = { name: (c) => `${c.name}\u0000${place(c)}`, new: (c) => 9e15 - Date.parse(c.created) + place(c) };
const orderOf = (c) => (orders[filter.sort] ?? worstFirst)(c);
export const sortBy = (order, items) => items.map((item) => [order(item), item]).sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([, item]) => item);

export function choose(id) {
  chosen = id;
  if (id) active = id;
  refresh();
}

const refresh = frame(() => {
  sorted ??= sortBy(orderOf, [...components.values()]).map(idOf);
  const all = sorted.map((id) => components.get(id));
  fillSelect('kind', 'All kinds', all.map((c) => c.kind));
  fillSelect('namespace', 'All namespaces', all.map((c) => c.namespace ?? ''));
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((c) => ['kind', 'namespace'].every((name) => !filter[name] || filter[name] === c[name]) && matches(c, words));
  drawChips(found);
  const anchor = list.scrollTop > 0 && shown[Math.floor(list.scrollTop / rowHeight)];
  const before = anchor && shown.indexOf(anchor);
  shown = found.filter((c) => passes(c, filter.state));
  if (anchor) { // a row that comes or goes above moves nothing
    const after = shown.findIndex((c) => idOf(c) === idOf(anchor));
    if (after >= 0 && after !== before) { draw(); list.scrollTop += (after - before) * rowHeight; }
  }
  const isAstray = components.has(chosen) && !shown.some((c) => idOf(c) === chosen); // the list does not show what is open
  const text = (shown.length === all.length ? '' : `${shown.length} of `) + `${all.length} components` + (isAstray ? ', not the open one' : '');
  const count = byId('count');
  if (loaded && count.textContent !== text) count.textContent = text;
  byId('all').hidden = !Object.entries(filter).some(([name, value]) => value && name !== 'sort');
  byId('fleet').classList.toggle('astray', isAstray);
  draw();
});

function matches(c, words) {
  if (!words.length) return true;
  const text = `${title(c)} ${c.state} ${c.reason ?? ''} ${c.message ?? ''} ${c.reconciler ?? ''}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

const passes = (c, state) => !state || (state === 'Not ready' ? !c.ready : c.state === state);

// fillSelect offers what there is to choose from, and what is chosen.
function fillSelect(name, all, values) {
  const options = ['', ...[...new Set([...values, filter[name]])].filter(Boolean).sort()], select = controls[name];
  if (select.dataset.options !== options.join()) {
    select.dataset.options = options.join();
    select.replaceChildren(...options.map((option) => el('option', { value: option }, option || all)));
  }
  if (select.value !== filter[name]) select.value = filter[name];
}

// drawChips shows the states with how many components are in each. One that was seen stays, so that the rows do not jump.
function drawChips(found) {
  const seen = [...states.children].map((chip) => chip.dataset.state);
  for (const name of new Set(['', 'Not ready', ...seen, ...found.map((c) => c.state).sort()])) {
    let chip = [...states.children].find((c) => c.dataset.state === name);
    if (!chip) {
      chip = el('button', { type: 'button', class: 'chip', 'data-state': name, onclick: () => choice({ state: name }) },
        name && icon(name === 'Not ready' ? 'busy' : toneOf(name)), name || 'All', el('span', { class: 'number' }));
      states.append(chip);
    }
    chip.setAttribute('aria-pressed', filter.state === name);
    chip.lastChild.textContent = found.filter((c) => passes(c, name)).length;
  }
}

// draw puts the rows in sight into the page; a row that stays is changed in place.
function draw() {
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - spare);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + spare);
  const next = new Map();
  for (let i = first; i < last; i++) {
    const id = idOf(shown[i]);
    const row = drawn.get(id) ?? el('div', { class: 'row', role: 'option', id: `row-${encodeURIComponent(id)}`, 'data-id': id });
    fill(row, shown[i], i, id);
    next.set(id, row);
  }
  rows.style.height = `${shown.length * rowHeight}px`;
  rows.style.paddingTop = `${first * rowHeight}px`;
  if ([...next.keys()].join('\n') !== [...drawn.keys()].join('\n')) rows.replaceChildren(...next.values());
  drawn = next;
  if (drawn.has(active)) list.setAttribute('aria-activedescendant', drawn.get(active).id); else list.removeAttribute('aria-activedescendant');
  list.classList.toggle('none', loaded && !shown.length);
}

function fill(row, c, index, id) {
  for (const [name, value] of [['aria-setsize', shown.length], ['aria-posinset', index + 1], ['aria-selected', id === chosen]]) row.setAttribute(name, value);
  row.classList.toggle('active', id === active);
  if (row.component === c) return;
  row.component = c;
  row.setAttribute('aria-label', [title(c), c.state, c.progress, c.message, c.rolledBack && `rolled back to ${c.rolledBack}`, c.drifted && 'drifted'].filter(Boolean).join(', '));
  const part = (name, text) => el('span', { class: name }, text);
  const marks = [c.rolledBack && `rolled back to ${c.rolledBack}`, c.drifted && 'drifted'].filter(Boolean);
  const message = c.ready ? [c.state, ...marks].join(', ') : [c.state, c.message || c.reason].filter(Boolean).join(': ');
  row.replaceChildren(icon(toneOf(c.state)), part('name', c.name), part('kind', c.kind), part('progress', c.progress),
    el('span', { class: 'about' }, part('place', c.namespace), el('bdi', { class: 'message' }, message)));
}

// move goes up or down by so many rows, and shows where that is.
function move(by) {
  const at = shown.findIndex((c) => idOf(c) === active);
  const to = Math.max(0, Math.min(shown.length - 1, at < 0 ? 0 : at + by));
  if (!shown[to]) return;
  active = idOf(shown[to]);
  const top = to * rowHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
  draw();
}

// start wires the controls; open is called with the component that is chosen, and keepFilters with the filters.
export function start(open, keepFilters) {
  keep = keepFilters;
  for (const [name, control] of Object.entries(controls)) control.addEventListener('input', () => choice({ [name]: control.value }));
  byId('all').addEventListener('click', () => choice({ search: '', kind: '', namespace: '', state: '' }));
  list.addEventListener('scroll', frame(draw), { passive: true });
  new ResizeObserver(frame(draw)).observe(list);
  rows.addEventListener('click', (event) => {
    const c = components.get(event.target.closest('.row')?.dataset.id);
    if (c) open(c);
  });
  const keys = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  for (const at of [list, controls.search]) {
    at.addEventListener('keydown', (event) => {
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Enter') requestAnimationFrame(() => { // what was typed last is searched for in this frame
        const hit = shown.find((c) => idOf(c) === active) ?? shown[0];
        if (hit) open(hit);
      });
      else if (Object.hasOwn(keys, event.key) && (at === list || event.key.startsWith('Arrow'))) move(keys[event.key]);
      else return;
      event.preventDefault();
    });
  }
}
