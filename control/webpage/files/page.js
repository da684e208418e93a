// The page: it asks for an overview each second and shows it. The token is kept for as long
// as the tab is open, and sent to this server alone.
import { html, render, nothing } from './lit-html.js';
import * as f from './figures.js';
import { bar, heat, spark } from './charts.js';
import { cluster } from './cluster.js';

const asked = '/v1/overview';
const interval = 1000; // ms
const remembered = 300; // seconds of curves and heat
const kept = 'lunar-token'; // in the tab's storage

const state = {
  token: sessionStorage.getItem(kept) || '',
  wrong: '', // why the token was not taken
  overview: null,
  trouble: '', // why there is no new one
  paused: false,
  sorts: {}, // by table: {column, reverse}
  volume: '', // whose heat is shown; '': all
  opened: null, // {kind, name}
  history: new f.History(remembered),
};

// --- asking ---------------------------------------------------------------------------------

let timer = 0;

function later() {
  clearTimeout(timer);
  if (state.token && !state.paused && !document.hidden) timer = setTimeout(ask, interval);
}

async function ask() {
  clearTimeout(timer);
  const token = state.token;
  try {
    const answer = await fetch(asked, { headers: { Authorization: 'Bearer ' + token }, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(15000) });
    if (token !== state.token) return;
    if (answer.status === 401 || answer.status === 403) {
      forget(state.overview ? 'The server does not take this token any more.' : 'The server does not know this token.');
      return;
    }
    if (!answer.ok) throw new Error('the server answered ' + answer.status);
    const overview = await answer.json();
    if (token !== state.token) return; // signed out meanwhile
    state.overview = overview;
    state.trouble = '';
    sessionStorage.setItem(kept, token);
    state.history.add(overview);
    say(overview);
  } catch (wrong) {
    state.trouble = wrong.name === 'TimeoutError' ? 'no answer for 15 seconds' : wrong.message;
  }
  draw();
  later();
}

// say tells a screen reader what is worst when that changes, not each second.
let said = '';
function say(o) {
  const worst = o.answers.filter((a) => f.tone(a.severity) === 'alarm' || f.tone(a.severity) === 'caution').map((a) => f.names[a.severity] + (a.about ? ': ' + a.about : ''));
  const text = worst.length ? worst.join('; ') : 'Nothing needs attention.';
  if (text !== said) {
    said = text;
    document.getElementById('said').textContent = text;
  }
}

function forget(why) {
  sessionStorage.removeItem(kept);
  Object.assign(state, { token: '', overview: null, wrong: why, trouble: '', opened: null, history: new f.History(remembered) });
  draw();
  document.getElementById('token')?.focus();
}

function enter(event) {
  event.preventDefault();
  const field = document.getElementById('token');
  state.token = field.value.trim();
  field.value = '';
  state.wrong = '';
  if (state.token) ask();
  draw();
}

// --- tables ---------------------------------------------------------------------------------

// table is rows below heads that sort. A column is {name, of, by, number, title}.
function table(id, caption, columns, rows, look) {
  const by = state.sorts[id] || {};
  const column = columns.find((c) => c.name === by.column);
  const shown = f.sorted(rows, column && (column.by || column.of), by.reverse);
  const sort = (name) => () => {
    state.sorts[id] = by.column !== name ? { column: name } : by.reverse ? {} : { column: name, reverse: true };
    draw();
  };
  return html`<div class="wide" role="region" tabindex="0" aria-label=${`Table: ${caption}`}><table id=${id}>
    <caption class="unseen">${caption}</caption>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.number ? 'number' : ''} title=${c.title || nothing}
      aria-sort=${by.column === c.name ? (by.reverse ? 'ascending' : 'descending') : 'none'}>${
      c.fixed ? c.name : html`<button type="button" @click=${sort(c.name)}>${c.name}<span aria-hidden="true">${by.column === c.name ? (by.reverse ? ' ▲' : ' ▼') : ''}</span></button>`}</th>`)}</tr></thead>
    <tbody>${shown.map((r) => html`<tr class=${(look && look(r)) || ''}>${columns.map((c, i) => (i === 0
      ? html`<th scope="row">${c.of(r)}</th>`
      : html`<td class=${c.number ? 'number' : ''} data-name=${c.name}>${c.of(r)}</td>`))}</tr>`)}
    ${rows.length ? nothing : html`<tr><td colspan=${columns.length} class="quiet">None.</td></tr>`}</tbody></table></div>`;
}

const opens = (kind, name) => html`<button type="button" class="link" @click=${() => open(kind, name)}>${name}</button>`;

const speed = [
  { name: 'IOPS', of: (r) => f.grouped(r.iops), by: (r) => r.iops, number: true },
  { name: 'Read', of: (r) => f.rate(r.read_bytes), by: (r) => r.read_bytes, number: true },
  { name: 'Written', of: (r) => f.rate(r.written_bytes), by: (r) => r.written_bytes, number: true },
];

const times = (operation, field, name) => ({
  name, of: (r) => f.time(f.quantile(r.recent, field, operation)), by: (r) => f.quantile(r.recent, field, operation) ?? -1, number: true,
  title: 'of the last 10 seconds',
});

const latencies = [times('read', 'p50_seconds', 'Read p50'), times('read', 'p99_seconds', 'Read p99'), times('write', 'p50_seconds', 'Write p50'), times('write', 'p99_seconds', 'Write p99')];

const boundBy = { name: 'Ends at', title: 'what its rate ends at', of: (i) => html`<span class="tag ${f.boundTone(i.bound)}">${f.bounds[i.bound]}</span>`, by: (i) => f.bounds[i.bound] };
const throttled = { name: 'Held back', title: 'share of the time in which a limit held commands back', of: (i) => (i.throttled > 0 ? f.percent(i.throttled) : '–'), by: (i) => i.throttled, number: true };

const initiatorColumns = [
  { name: 'Initiator', of: (i) => opens('initiator', i.initiator), by: (i) => i.initiator },
  ...speed, times('', 'p50_seconds', 'p50'), times('', 'p99_seconds', 'p99'), boundBy,
  { name: 'Promise', of: (i) => (i.promise === 'none' ? '–' : html`<span class="tag ${i.promise === 'missed' ? 'alarm' : 'good'}">${i.promise}</span>`), by: (i) => i.promise },
  { name: 'Promised', title: 'tokens a second', of: (i) => (i.reserved_tokens ? f.grouped(i.reserved_tokens) : '–'), by: (i) => i.reserved_tokens, number: true },
  { name: 'Received', title: 'tokens a second', of: (i) => (i.rules.length || i.received_tokens ? f.grouped(i.received_tokens) : '–'), by: (i) => i.received_tokens, number: true },
  { name: 'Limit', of: (i) => f.limit(i.limit), by: (i) => (i.limit && (i.limit.iops || i.limit.bytes)) || 0, number: true },
  throttled,
];

const useColumns = (name, of) => [
  { name, of, by: (u) => (name === 'Volume' ? u.volume : u.initiator) }, ...speed, ...latencies, throttled,
  { name: 'Rules', of: (u) => u.rules.join(', ') || '–' },
];

const stateTag = (v) => {
  const tone = v.failing || v.state === 'failed' ? 'alarm' : v.state !== 'ok' || v.frozen ? 'caution' : 'good';
  return html`<span class="tag ${tone}">${v.failing ? 'not written' : v.frozen ? 'frozen' : v.state}</span>`;
};

const volumeColumns = [
  { name: 'Volume', of: (v) => opens('volume', v.volume), by: (v) => v.volume },
  { name: 'State', of: stateTag, by: (v) => (v.failing ? 'z' : v.state) }, ...speed, ...latencies,
  { name: 'Cache hits', of: (v) => f.percent(v.hit_ratio), by: (v) => v.hit_ratio ?? -1, number: true },
  { name: 'Dirty', title: 'data that only the cache has', of: (v) => (v.dirty_bytes ? f.bytes(v.dirty_bytes) : '–'), by: (v) => v.dirty_bytes, number: true },
  { name: 'Size', of: (v) => f.bytes(v.size_bytes), by: (v) => v.size_bytes, number: true },
  { name: 'Device', of: (v) => v.device || '–' },
  { name: 'Snapshots', of: (v) => (!v.snapshots ? '–' : v.snapshots.failed ? html`<span class="tag alarm">${v.snapshots.count}, failed</span>` : f.grouped(v.snapshots.count)), by: (v) => v.snapshots?.count ?? -1, number: true },
];

// --- sections -------------------------------------------------------------------------------

const sections = [
  ['answers', 'Answers', answers], ['promises', 'Promised and received', promises], ['initiators', 'Initiators', initiators], ['latency', 'Latency', latency],
  ['volumes', 'Volumes', volumes], ['threads', 'Threads and devices', threads], ['cache', 'Cache and NUMA', cache], ['rules', 'Rules', rules], ['drift', 'Drift', drift], ['events', 'Events', events],
];

// shown are the sections that there are of an overview: a server alone has no cluster.
function shown(o) {
  if (!o.cluster) return sections;
  const at = sections.findIndex(([id]) => id === 'threads');
  return [...sections.slice(0, at), ['cluster', 'Cluster', inCluster], ...sections.slice(at)];
}

function inCluster(o) {
  return html`${cluster(o, table, opens)}${leftOut(o.left_out.cluster_volumes, 'volumes of the cluster')}`;
}

const leftOut = (n, what) => (n ? html`<p class="quiet">${f.grouped(n)} less busy ${what} are not listed.</p>` : nothing);

function answerItems(list) {
  return html`<ul class="answers">${list.map((a) => html`<li class=${f.tone(a.severity)}>
    <strong>${f.names[a.severity]}</strong>
    <div><p>${a.what}</p>${a.help ? html`<p class="quiet">${a.help}</p>` : nothing}</div></li>`)}</ul>`;
}

function answers(o) {
  return answerItems(o.answers);
}

function promises(o) {
  if (!o.promises.length) return html`<p class="quiet">No rule promises anything to anybody who is connected.</p>`;
  return html`<ul class="promises">${o.promises.map((p) => {
    const whole = Math.max(p.reservation_tokens, p.served_tokens, p.asked_tokens, ...p.history, 1);
    const tone = p.state === 'missed' ? 'alarm' : p.state === 'unused' ? 'plain' : 'good';
    return html`<li>
      <div class="who"><strong>${p.level} ${p.name}</strong> <span class="quiet">rule ${p.rule}</span></div>
      <div>${bar(p.served_tokens / whole, tone, p.reservation_tokens / whole)}
        <span class="figures">received <b data-figure="served">${f.grouped(p.served_tokens)}</b> of <b data-figure="promised">${f.grouped(p.reservation_tokens)}</b> promised, asked for ${f.grouped(p.asked_tokens)} tokens/s</span></div>
      <div><span class="tag ${tone}">${p.state}</span> <span class="quiet">${p.missed_of_60 ? `missed in ${p.missed_of_60} of the last 60 s` : 'never missed in the last minute'}</span></div>
      ${spark(p.history, whole, 'received in the last minute')}</li>`;
  })}</ul>${leftOut(o.left_out.promises, 'promises')}`;
}

const initiatorLook = (i) => (i.promise === 'missed' ? 'alarm' : i.bound === 'idle' ? 'faint' : '');

function initiators(o) {
  return html`${table('table-initiators', 'What each initiator asks for and gets', initiatorColumns, o.initiators, initiatorLook)}${leftOut(o.left_out.initiators, 'initiators')}
    <details><summary>Initiators by volumes</summary>${table('table-uses', 'What each initiator does with each volume', [useColumns('Initiator', (u) => opens('initiator', u.initiator))[0],
      { name: 'Volume', of: (u) => opens('volume', u.volume), by: (u) => u.volume }, ...useColumns('', null).slice(1)], o.uses)}${leftOut(o.left_out.uses, 'pairs')}</details>`;
}

function latency(o) {
  const columns = state.history.heat.get(state.volume) || [];
  const counts = f.sums(columns, 60);
  const range = f.occupied(columns.slice(-60));
  const rows = range ? counts.slice(range.first, range.last + 1).map((n, i) => ({ label: f.label(o.heat_bounds_seconds, range.first + i), n })).reverse() : [];
  return html`<p><label>Reads and writes of <select @change=${(e) => { state.volume = e.target.value; draw(); }}>
      <option value="" ?selected=${state.volume === ''}>all volumes</option>${o.volumes.map((v) => v.volume).sort().map((name) => html`<option value=${name} ?selected=${state.volume === name}>volume ${name}</option>`)}
    </select></label> <span class="quiet">by how long they took: the stronger, the more. The page keeps five minutes.</span></p>
    <canvas id="heat" role="img" aria-label="Heat map of latency; the table below has its figures"></canvas>
    <details><summary>As a table: the last minute</summary>${table('table-heat', 'Reads and writes of the last minute by time', [
      { name: 'Time', of: (r) => r.label, fixed: true }, { name: 'Commands', of: (r) => f.grouped(r.n), number: true, fixed: true }], rows)}</details>`;
}

function volumes(o) {
  return html`${table('table-volumes', 'Volumes', volumeColumns, o.volumes, (v) => (v.failing || v.state === 'failed' ? 'alarm' : ''))}${leftOut(o.left_out.volumes, 'volumes')}`;
}

const threadColumns = [
  { name: 'Event thread', of: (t) => t.name },
  { name: 'Busy', of: (t) => html`${bar(t.busy, t.busy >= 0.9 ? 'caution' : 'plain')} ${f.percent(t.busy)}`, by: (t) => t.busy, number: true },
  { name: 'Last minutes', fixed: true, of: (t) => spark(state.history.threads.get(t.name) || [], 1, 'how busy it was') },
  { name: 'No CPU', title: 'share of the time in which it had something to do, and other processes or machines had the CPU', of: (t) => f.percent(t.waited), by: (t) => t.waited, number: true },
  { name: 'Connections', of: (t) => t.connections, number: true },
  { name: 'CPU', of: (t) => (t.cpu < 0 ? '–' : t.cpu), number: true },
  { name: 'Node', of: (t) => (t.node < 0 ? '–' : t.node), number: true },
  { name: 'Buffers', title: 'share of its data buffers that is handed out', of: (t) => f.percent(t.buffers), by: (t) => t.buffers, number: true },
];

const deviceColumns = [
  { name: 'Device', of: (d) => d.name },
  { name: 'State', of: (d) => (d.full ? html`<span class="tag caution">full</span>` : '–'), by: (d) => (d.full ? 1 : 0) },
  ...speed,
  { name: 'Can do', title: 'tokens a second', of: (d) => (d.tokens_per_second ? f.grouped(d.tokens_per_second) : 'not known'), by: (d) => d.tokens_per_second, number: true },
  { name: 'Reserved', title: 'tokens a second', of: (d) => f.grouped(d.reserved_tokens_per_second), by: (d) => d.reserved_tokens_per_second, number: true },
  { name: 'Volumes', of: (d) => d.volumes.join(', ') },
];

function threads(o) {
  return html`${table('table-threads', 'Event threads', threadColumns, o.threads)}${table('table-devices', 'Devices', deviceColumns, o.devices)}
    <p class="quiet">A command needs an event thread and, unless the cache or memory has its data, a device. Whether a device is full is known while there are rules.</p>`;
}

function cache(o) {
  const c = o.cache;
  if (!c) return html`<p class="quiet">This server has no cache.</p>`;
  const traffic = Math.max(1, ...c.nodes.flatMap((n) => [n.local_bytes, n.remote_bytes, n.forwarded_bytes]));
  return html`<dl class="facts">
      <div><dt>Used</dt><dd>${bar(c.used_bytes / Math.max(1, c.size_bytes), 'plain')} ${f.bytes(c.used_bytes)} of ${f.bytes(c.size_bytes)}</dd></div>
      <div><dt>Reads that found all</dt><dd data-figure="hits">${f.percent(c.hit_ratio)}</dd></div>
      <div><dt>Dirty</dt><dd>${bar(c.dirty_bytes / Math.max(1, c.dirty_limit_bytes), c.waiting_writes ? 'caution' : 'plain')} ${f.bytes(c.dirty_bytes)} of ${f.bytes(c.dirty_limit_bytes)}</dd></div>
      <div><dt>Written below</dt><dd>${f.rate(c.flushed_bytes)}</dd></div>
      <div><dt>Writes that wait</dt><dd>${f.grouped(c.waiting_writes)}</dd></div>
    </dl>${table('table-nodes', 'The cache of each NUMA node, and what goes between them', [
      { name: 'Node', of: (n) => n.node }, { name: 'Used', of: (n) => f.bytes(n.used_bytes), by: (n) => n.used_bytes, number: true },
      { name: 'Dirty', of: (n) => f.bytes(n.dirty_bytes), by: (n) => n.dirty_bytes, number: true }, { name: 'Hits', of: (n) => f.percent(n.hit_ratio), by: (n) => n.hit_ratio ?? -1, number: true },
      ...[['Served here', 'local_bytes', 'good', 'requests served on the node that has their data'], ['From other nodes', 'remote_bytes', 'caution', 'requests served here though another node has their data'], ['Handed over', 'forwarded_bytes', 'plain', 'requests handed to the node that has their data']]
        .map(([name, field, tone, title]) => ({ name, title, of: (n) => html`${bar(n[field] / traffic, tone)} ${f.rate(n[field])}`, by: (n) => n[field], number: true })),
    ], c.nodes)}`;
}

function rules(o) {
  if (!o.rules.length) return html`<p class="quiet">No rules: every command passes at once, and nothing is promised.</p>`;
  return html`<dl class="rules">${o.rules.map((r) => html`<div><dt>${r.name}</dt><dd>${r.text}</dd></div>`)}</dl>
    <p class="quiet">A command costs a token for each 4 KiB unless the configuration says otherwise; reservations and capacities count in tokens.</p>`;
}

function drift(o) {
  if (!o.drift.length) return html`<p class="quiet">The server runs what its configuration file says.</p>`;
  return html`<ul class="drift">${o.drift.map((d) => html`<li class="alarm"><strong>${d.kind}</strong> ${d.what}</li>`)}</ul>`;
}

function events(o) {
  if (!o.events.length) return html`<p class="quiet">Nothing has happened yet.</p>`;
  return html`<ol class="events">${[...o.events].reverse().map((e) => html`<li><time datetime=${e.time}>${new Date(e.time).toLocaleTimeString()}</time> <span class="tag plain">${e.kind}</span> ${e.text}
    <span class="quiet">${Object.entries(e.fields || {}).filter(([, v]) => v).map(([k, v]) => k + '=' + v).join(' ')}</span></li>`)}</ol>`;
}

// --- what was opened ------------------------------------------------------------------------

function open(kind, name) {
  state.opened = { kind, name };
  draw();
  const dialog = document.getElementById('opened');
  if (!dialog.open) dialog.showModal();
}

function closed() {
  state.opened = null;
  draw();
}

function opened(o) {
  const at = state.opened;
  if (!o || !at) return nothing;
  const it = at.kind === 'initiator' ? o.initiators.find((i) => i.initiator === at.name) : o.volumes.find((v) => v.volume === at.name);
  const body = !it ? html`<p>${at.kind} ${at.name} is not listed any more.</p>` : at.kind === 'initiator' ? initiatorFacts(o, it) : volumeFacts(o, it);
  return html`<header><h2 id="opened-name">${at.kind} ${at.name}</h2><button type="button" @click=${() => document.getElementById('opened').close()}>Close</button></header>${body}`;
}

function initiatorFacts(o, i) {
  const hit = o.answers.filter((a) => a.initiators.includes(i.initiator));
  return html`${hit.length ? answerItems(hit) : nothing}<dl class="facts">
      <div><dt>IOPS</dt><dd>${f.grouped(i.iops)}</dd></div><div><dt>Read</dt><dd>${f.rate(i.read_bytes)}</dd></div><div><dt>Written</dt><dd>${f.rate(i.written_bytes)}</dd></div>
      <div><dt>Its rate ends at</dt><dd>${f.bounds[i.bound]}</dd></div>
      <div><dt>Under way</dt><dd>${i.in_flight} of ${i.window}, ${i.under_way.toFixed(1)} on average</dd></div>
      <div><dt>Sessions</dt><dd>${i.sessions} from ${i.addresses.join(', ')}, on ${i.threads.join(', ')}</dd></div>
      ${i.rules.length ? html`<div><dt>Tokens a second</dt><dd>${i.reserved_tokens ? f.grouped(i.reserved_tokens) + ' promised, ' : ''}${f.grouped(i.asked_tokens)} asked for, ${f.grouped(i.received_tokens)} received</dd></div>` : nothing}
    </dl>
    ${o.rules.some((r) => i.rules.includes(r.name)) ? html`<dl class="rules">${o.rules.filter((r) => i.rules.includes(r.name)).map((r) => html`<div><dt>${r.name}</dt><dd>${r.text}</dd></div>`)}</dl>` : nothing}
    ${table('table-opened', 'Its volumes', useColumns('Volume', (u) => opens('volume', u.volume)), o.uses.filter((u) => u.initiator === i.initiator))}`;
}

function snapshotFacts(s) {
  const at = (time) => new Date(time).toLocaleString();
  return html`${f.grouped(s.count)}${s.newest ? `, the newest of ${at(s.newest)}` : ''}${s.due ? `; the schedule's next ${at(s.due)}` : ''}${s.count ? `; ${f.bytes(s.shared_bytes)} of the file shared, ${f.bytes(s.owned_bytes)} its own` : ''}
    ${s.failed ? html`<p class="alarm">The last one that was due was not made: ${s.failed}</p>` : nothing}`;
}

function volumeFacts(o, v) {
  const hit = o.answers.filter((a) => a.about && (a.about === v.volume || a.about === v.device));
  return html`${hit.length ? answerItems(hit) : nothing}<dl class="facts">
      <div><dt>State</dt><dd>${stateTag(v)} ${v.wrong.join('; ')}</dd></div><div><dt>Size</dt><dd>${f.bytes(v.size_bytes)}</dd></div><div><dt>Device</dt><dd>${v.device || '–'}</dd></div>
      <div><dt>Cache hits</dt><dd>${f.percent(v.hit_ratio)}</dd></div><div><dt>Dirty</dt><dd>${f.bytes(v.dirty_bytes)}</dd></div>
      ${v.snapshots ? html`<div><dt>Snapshots</dt><dd>${snapshotFacts(v.snapshots)}</dd></div>` : nothing}
    </dl>${table('table-opened', 'Its initiators', useColumns('Initiator', (u) => opens('initiator', u.initiator)), o.uses.filter((u) => u.volume === v.volume))}`;
}

// --- the whole ------------------------------------------------------------------------------

function signIn() {
  return html`<main id="content" class="signin"><h1><img src="icon.svg" alt="" width="40" height="40"> Lunar</h1>
    <form @submit=${enter}>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" spellcheck="false" autocapitalize="off" required aria-describedby="token-help ${state.wrong ? 'token-wrong' : ''}">
      ${state.wrong ? html`<p id="token-wrong" class="alarm" role="alert">${state.wrong}</p>` : nothing}
      <button type="submit" ?disabled=${state.token !== ''}>${state.token ? 'Asking …' : 'Show the server'}</button>
      <p id="token-help" class="quiet">One with the role read is enough: <code>lunar token create NAME --role read</code>. It is kept until you close this tab or sign out, and nowhere else.</p>
      ${state.trouble ? html`<p class="alarm" role="alert">No answer: ${state.trouble}</p>` : nothing}
    </form></main>`;
}

function tile(name, figure, text, series, top) {
  return html`<div class="tile"><span class="name">${name}</span><span class="figure" data-figure=${figure}>${text}</span>${spark(series, top, name + ' in the last minutes')}</div>`;
}

function tiles(o) {
  const all = state.history.totals;
  const busy = Math.max(0, ...o.threads.map((t) => t.busy));
  return html`<div class="tiles">
    ${tile('IOPS', 'iops', f.grouped(o.total.iops), all.map((t) => t.iops))}
    ${tile('Read', 'read', f.rate(o.total.read_bytes), all.map((t) => t.read))}
    ${tile('Written', 'written', f.rate(o.total.written_bytes), all.map((t) => t.written))}
    ${o.cache ? tile('Cache hits', 'hits', f.percent(o.cache.hit_ratio), all.map((t) => t.hits), 1) : nothing}
    ${tile('Busiest thread', 'busy', f.percent(busy), all.map((t) => t.busy), 1)}</div>`;
}

function whole(o) {
  const alarms = o.answers.filter((a) => f.tone(a.severity) === 'alarm').length;
  const cautions = o.answers.filter((a) => f.tone(a.severity) === 'caution').length;
  const tone = { ok: 'good', degraded: 'caution', failed: 'alarm' }[o.state];
  return html`<header class="top">
      <div class="title"><img src="icon.svg" alt="" width="24" height="24"><h1>Lunar</h1><span class="tag ${tone}">${o.state}</span>
        ${alarms ? html`<a class="tag alarm" href="#answers">${alarms} in red</a>` : nothing}${cautions ? html`<a class="tag caution" href="#answers">${cautions} to look at</a>` : nothing}</div>
      <div class="tools"><span class="quiet">${o.version}, up ${f.span(o.uptime_seconds)}, ${new Date(o.at).toLocaleTimeString()}</span>
        <button type="button" aria-pressed=${state.paused} @click=${pause}>${state.paused ? 'Go on' : 'Pause'}</button>
        <button type="button" @click=${() => forget('')}>Sign out</button></div>
      <nav aria-label="Sections"><ul>${shown(o).map(([id, name]) => html`<li><a href="#${id}">${name}</a></li>`)}</ul></nav>
      ${state.trouble ? html`<p class="notice alarm" role="alert">No answer any more, the figures are old: ${state.trouble}. The page asks again each second.</p>` : nothing}
    </header>
    <main id="content">${tiles(o)}${shown(o).map(([id, name, show]) => html`<section id=${id} aria-labelledby="${id}-name"><h2 id="${id}-name">${name}</h2>${show(o)}</section>`)}</main>
    <dialog id="opened" aria-labelledby="opened-name" @close=${closed} @click=${(e) => { if (e.target.id === 'opened') e.target.close(); }}><div>${opened(o)}</div></dialog>`;
}

function pause() {
  state.paused = !state.paused;
  if (!state.paused) ask();
  draw();
}

function draw() {
  const o = state.overview;
  render(o ? whole(o) : signIn(), document.getElementById('page'));
  const canvas = document.getElementById('heat');
  if (canvas && o) heat(canvas, state.history.heat.get(state.volume) || [], o.heat_bounds_seconds);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden && state.token && !state.paused) ask(); });
window.addEventListener('resize', draw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
draw();
if (state.token) ask();
