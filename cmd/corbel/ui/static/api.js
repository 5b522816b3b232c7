// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Requests to the server of the page. All addresses are relative, since the page may be below a prefix.

const away = 'The server of this page does not answer.';

// The address that corbel ui prints has a token. It is kept for this origin, port included, and leaves the address. A browser that keeps
// nothing for a page throws: then a page that is loaded again needs the address again.
const given = new URLSearchParams(location.search).get('token') ?? '';
if (given) {
  try { localStorage.setItem('corbel-token', given); } catch { /* as above */ }
  history.replaceState(history.state, '', location.pathname + location.hash);
}
function token() {
  try { return localStorage.getItem('corbel-token') ?? given; } catch { return given; }
}

// query is how requests name a component, with more parameters; those without a value are left out.
function query({ type, namespace, name } = {}, more = {}) {
  const parameters = new URLSearchParams(Object.entries({ type, namespace, name, ...more }).filter(([, value]) => value));
  return parameters.size ? `?${parameters}` : '';
}

// ask sends a request and returns the JSON of the answer. The message of an error is a sentence for people.
async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(token() && { 'X-Corbel-Token': token() }) };
  const response = await fetch(path, { ...options, headers }).catch(() => { throw new Error(away); });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) throw new Error('This page is not signed in: open the address that corbel ui printed.');
  throw new Error(answer.error || `The server answered ${response.status}.`);
}

export const get = (path, component, more) => ask(`api/${path}${query(component, more)}`);

export const post = (path, component, body, more) => ask(`api/${path}${query(component, more)}`, {
  method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Corbel': '1' }, body: JSON.stringify(body),
});

const streams = new Set();
let current, retry, silence;
let known = ''; // whether the list of components is known, and is kept by streams

// heard expects the server to say something again soon, as it does every 15 seconds: a connection that is cut silently has no error.
function heard() {
  clearTimeout(silence);
  silence = setTimeout(() => current.onerror(), 40000);
}

// follow opens the stream of events: those of the fleet, and those of one component if there is one. The stream before
// goes on until this one is open, so that no change is missed.
export function follow(component, on) {
  clearTimeout(retry);
  const stream = current = new EventSource('api/stream' + query(component, { token: token(), known }));
  streams.add(stream);
  heard();
  stream.onopen = () => {
    if (stream !== current) return; // it goes on until the one that replaces it is open
    for (const other of streams) if (other !== stream) { other.close(); streams.delete(other); }
  };
  stream.onerror = async () => { // the browser would try again with the same address
    const isRefused = stream.readyState === EventSource.CLOSED;
    stream.close();
    streams.delete(stream);
    if (stream !== current) return;
    known = '';
    const many = 'The server refuses to say what changes: too many pages may be open.';
    on.lost(isRefused ? await get('info').then(() => many, (error) => error.message) : away);
    if (stream === current) retry = setTimeout(follow, 1000, component, on);
  };
  for (const name of ['alive', 'fleet', 'component', 'tree', 'problem', 'dependent']) {
    const ofOne = ['tree', 'problem', 'dependent'].includes(name);
    stream.addEventListener(name, (event) => {
      if (stream === current) heard();
      if (name === 'fleet') known = 'true';
      on.alive();
      if (!ofOne || stream === current) on[name](JSON.parse(event.data));
    });
  }
}
