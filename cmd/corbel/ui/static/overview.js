// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// What is shown while no component is open: how the fleet is.

import { ago, el, icon, replace, title, toneOf } from './dom.js';
import { components, idOf, stateOf } from './fleet.js';

const most = 30; // that are listed

export function drawOverview(root, { problems, link, loading }) {
  const all = [...components.values()];
  const wrong = all.filter((c) => !c.ready).sort((a, b) => (toneOf(b.state) === 'bad') - (toneOf(a.state) === 'bad') || (idOf(a) < idOf(b) ? -1 : 1));
  const counts = Object.entries(Object.groupBy(all, stateOf)).map(([state, of]) => [state, of.length]).sort((a, b) => b[1] - a[1]);
  const bar = el('div', { class: 'fleet-bar', 'aria-hidden': 'true' }, counts.map(([state, count]) => {
    const part = el('span', { 'data-tone': toneOf(state) });
    part.style.flexGrow = count;
    return part;
  }));
  replace(root, el('section', { class: 'overview' },
    el('h2', { tabindex: '-1', id: 'heading' }, 'Overview'),
    problems.map((problem) => el('p', { class: 'note', 'data-tone': 'busy' }, problem)),
    loading && el('p', { class: 'empty' }, 'Loading…'),
    !loading && !all.length && el('p', { class: 'empty' }, 'No components found. A type of components has the category corbel.'),
    all.length > 0 && bar,
    all.length > 0 && el('ul', { class: 'counts' }, counts.map(([state, count]) => el('li', {}, icon(toneOf(state)), el('b', {}, String(count)), ` ${state}`))),
    all.length > 0 && el('h3', {}, wrong.length ? `Not ready (${wrong.length})` : 'All components are ready'),
    el('ul', { class: 'cards' }, wrong.slice(0, most).map((c) => el('li', {}, el('a', { href: link(c), 'data-key': idOf(c) },
      icon(toneOf(c.state)), el('b', {}, title(c)), el('span', { class: 'dim' }, ` ${stateOf(c)}${c.progress ? ', ' + c.progress : ''}, age `, ago(c.created, '')),
      el('bdi', { class: 'message' }, c.message))))),
    wrong.length > most && el('p', { class: 'dim' }, `and ${wrong.length - most} more`)));
}
