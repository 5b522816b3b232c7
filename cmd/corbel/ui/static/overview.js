// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// What is shown while no component is open: how the fleet is.

import { hashOf } from './address.js';
import { ago, el, icon, title, toneOf, update } from './dom.js';
import { components, sortBy, worstFirst } from './fleet.js';

const most = 30; // that are listed
const unfolded = new Set(); // groups
const cards = el('ul', { class: 'cards' }), overview = el('section', { class: 'overview' });

// common is a message without the name of its component, the namespace before that and what is generated of the names of pods, so that those of
// one cause are equal.
const common = ({ namespace, name, message = '' }) => message.replace(new RegExp(`(?<![a-z0-9])(${namespace}/)?${name.replaceAll('.', '\\.')}(?![a-z0-9])`, 'g'), '…')
  .replace(/(?<=\bpods? "?…[a-z0-9-]*)(-[bcdf-hj-np-tv-xz24-9]{6,10})?-[bcdf-hj-np-tv-xz24-9]{5}(?![a-z0-9-])/g, '-…');
const link = (c, kind, mark, message) => el('a', { href: hashOf(c, 'cause'), class: kind, 'data-key': title(c) }, mark, el('b', {}, title(c)),
  el('span', { class: 'dim' }, ` ${c.state}${c.progress ? ', ' + c.progress : ''}, age `, ago(c.created, '')), message);
const more = (count) => count > 0 && el('li', {}, el('a', { href: '#?state=Not+ready', class: 'more' }, `and ${count} more`));

const reasonOf = (c) => `${c.state} ${common(c)}`;

// card is about components that are not ready for the same reason.
function card(of) {
  const [c] = of, key = reasonOf(c), mark = icon(toneOf(c.state)), said = (text) => el('bdi', { class: 'message' }, text);
  if (of.length === 1) return el('li', {}, link(c, 'card', mark, said(c.message)));
  return el('li', {}, el('details', { class: 'card', open: unfolded.has(key), ontoggle: ({ target }) => unfolded[target.open ? 'add' : 'delete'](key) },
    el('summary', { 'data-key': key }, mark, el('b', {}, `${of.length} components`), el('span', { class: 'dim' }, ` ${c.state}`), said(common(c))),
    el('ul', {}, of.slice(0, most).map((one) => el('li', {}, link(one))), more(of.length - most))));
}

export function drawOverview(root, { problems, loading, namespace }) {
  const all = [...components.values()], wrong = sortBy(worstFirst, all.filter((c) => !c.ready));
  const groups = Object.values(Object.groupBy(wrong, reasonOf));
  const counts = Object.entries(Object.groupBy(all, (c) => c.state)).map(([state, of]) => [state, of.length]).sort((a, b) => b[1] - a[1]);
  const bar = el('div', { class: 'fleet-bar', 'aria-hidden': 'true' }, counts.map(([state, count]) => {
    const part = el('span', { 'data-tone': toneOf(state) });
    part.style.flexGrow = count;
    return part;
  }));
  if (overview.parentNode !== root) root.replaceChildren(overview);
  update(overview, el('h2', { tabindex: '-1', id: 'heading' }, 'Overview'),
    problems.map((problem) => el('p', { class: 'note', 'data-tone': 'busy' }, problem)),
    loading && el('p', { class: 'empty' }, 'Loading…'),
    !loading && !all.length && el('p', { class: 'empty' }, `No components found${namespace ? ` in namespace ${namespace}` : ''}. A type of components has the category corbel.`),
    all.length > 0 && [bar,
      el('ul', { class: 'counts' }, counts.map(([state, count]) => el('li', {}, el('a', { href: '#?' + new URLSearchParams({ state }), 'data-key': `state ${state}` },
        icon(toneOf(state)), el('b', {}, String(count)), ` ${state}`))), el('li', {}, el('a', { href: '#?', 'data-key': 'all' }, `All ${all.length} components`))),
      el('h3', {}, wrong.length ? `Not ready (${wrong.length})` : 'All components are ready')], cards);
  update(cards, groups.slice(0, most).map(card), more(groups.slice(most).flat().length));
}
