// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Requests to the server of the page. All addresses are relative, since the page may be below a prefix.

const away = 'The server of this page does not answer.';

// query is how requests name a component.
export function query(component, more = {}) {
  const { type, namespace, name } = component ?? {};
  const parameters = new URLSearchParams(component ? { type, namespace: namespace ?? '', name, ...more } : more);
  return parameters.size ? '?' + parameters : '';
}

// ask sends a request and returns the JSON of the answer. The message of an error is a sentence for people.
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === 'AbortError' ? error : new Error(away);
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const text = response.status === 401 ? 'Open the address that corbel ui printed: this page is not signed in.' : `The server answered ${response.status}.`;
  throw new Error(answer.error || text);
}

export const get = (path, component, more, signal) => ask(`api/${path}${query(component, more)}`, { signal });

export const post = (path, component, body) => ask(`api/${path}${query(component)}`, {
  method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Corbel': '1' }, body: JSON.stringify(body),
});

const streams = new Set();
let current, retry;

// follow opens the stream of events: those of the fleet, and those of one component if there is one. The stream before
// goes on until this one is open, so that no change is missed.
export function follow(component, on) {
  clearTimeout(retry);
  const stream = current = new EventSource('api/stream' + query(component));
  streams.add(stream);
  stream.onopen = () => {
    if (stream !== current) return; // it goes on until the one that replaces it is open
    for (const other of streams) if (other !== stream) { other.close(); streams.delete(other); }
    on.open();
  };
  stream.onerror = () => {
    if (stream !== current) return;
    on.lost(away);
    // The browser tries again by itself unless the answer was no stream.
    if (stream.readyState === EventSource.CLOSED) retry = setTimeout(follow, 1000, component, on);
  };
  for (const name of ['component', 'connection', 'reset', 'tree', 'dependent']) {
    const ofOne = name === 'tree' || name === 'dependent';
    stream.addEventListener(name, (event) => { if (!ofOne || stream === current) on[name](JSON.parse(event.data)); });
  }
}
