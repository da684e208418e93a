// The section of the cluster: how its nodes are, who owns what, and what is promised over all.
import { html, nothing } from './lit-html.js';
import { bar } from './charts.js';
import * as f from './figures.js';

const tag = (tone, text) => html`<span class="tag ${tone}">${text}</span>`;
const moment = (time) => (time ? new Date(time).toLocaleString() : '–');

const nodeColumns = [
  { name: 'Node', of: (n) => n.name },
  { name: 'State', of: (n) => tag(f.nodeTone(n.state), n.state === 'away' && n.draining ? 'drained, away' : n.state), by: (n) => n.state },
  { name: 'Volumes', title: 'that it owns', of: (n) => n.volumes.length, by: (n) => n.volumes.length, number: true },
  { name: 'etcd', title: 'whether etcd hears it', of: (n) => (n.heard ? 'heard' : n.silent_seconds ? tag('alarm', 'silent for ' + f.time(n.silent_seconds)) : '–'), by: (n) => n.silent_seconds, number: true },
  { name: 'Lease', title: 'for how long it lasts if it is not renewed, and when it was', of: (n) => (n.lease ? `${f.time(n.lease.left_seconds)}, renewed ${f.time(n.lease.age_seconds)} ago` : '–'), by: (n) => (n.lease ? n.lease.left_seconds : -1) },
  { name: 'Link', title: "from this node, with a beat's round trip", of: (n) => (!n.link ? '–' : n.link.up ? tag('good', 'up ' + f.time(n.link.round_trip_seconds)) : tag('caution', 'down')), by: (n) => (!n.link ? '' : n.link.up ? 'up' : 'down') },
  { name: 'Heard', title: 'since it was heard over a link', of: (n) => (n.link && n.link.heard_seconds !== undefined ? f.time(n.link.heard_seconds) + ' ago' : '–'), by: (n) => (n.link && n.link.heard_seconds) ?? -1, number: true },
  { name: 'Hears', title: 'nodes that it hears over its links', of: (n) => n.hears.join(', ') || '–' },
  { name: 'Revision', title: 'of the configuration of all nodes', of: (n) => n.revision || '–', by: (n) => n.revision, number: true },
  { name: 'Version', of: (n) => n.version || '–' },
  { name: 'Process', of: (n) => (n.incarnation ? html`<code title=${n.incarnation}>${n.incarnation.slice(0, 8)}</code>` : '–') },
  { name: 'Since', of: (n) => moment(n.since), by: (n) => n.since || '' },
  { name: 'Portals', of: (n) => n.portals.join(' ') || '–' },
];

// candidate is a node that may own a volume, with what keeps it from that.
function candidate(nodes, name, volume) {
  const lacks = nodes.find((n) => n.name === name)?.unable.find((u) => u.volume === volume);
  return lacks ? html`<span class="tag caution" title=${lacks.why}>${name} cannot open it</span> ` : name + ' ';
}

const volumeColumns = (opens, nodes) => [
  { name: 'Volume', of: (v) => opens('volume', v.name), by: (v) => v.name },
  { name: 'Owner', of: (v) => v.owner || '–' },
  { name: 'State', of: (v) => (v.in_flux ? tag('alarm', v.state + ', in flux') : tag('good', v.state)), by: (v) => (v.in_flux ? 'z' : v.state) },
  { name: 'Since', of: (v) => moment(v.since), by: (v) => v.since || '' },
  { name: 'Epoch', title: 'grows with each change of its owner', of: (v) => f.grouped(v.epoch), by: (v) => v.epoch, number: true },
  { name: 'Here', title: 'what this node is doing with it', of: (v) => v.here || '–' },
  { name: 'Candidates', title: 'nodes that may own it, the preferred one first', of: (v) => (v.owners.length ? v.owners.map((n) => candidate(nodes, n, v.name)) : '–'), by: (v) => v.owners.join(' ') },
  { name: 'Access', title: "what hosts are told of each node's paths", of: (v) => v.access.map((a) => html`<span class="tag ${a.state === 'optimized' ? 'good' : 'plain'}">${a.node} ${a.state}</span> `) },
];

const partColumns = [
  { name: 'Node', of: (n) => n.node },
  { name: 'Served', title: 'tokens in the last second', of: (n) => html`${n.capacity_tokens ? bar(n.served_tokens / n.capacity_tokens, 'plain', n.reserved_tokens / n.capacity_tokens) : nothing} ${f.grouped(n.served_tokens)}`, by: (n) => n.served_tokens, number: true },
  { name: 'Reserved', title: 'tokens that it has left of reservations in this second', of: (n) => f.grouped(n.reserved_tokens), by: (n) => n.reserved_tokens, number: true },
  { name: 'Can do', title: 'tokens a second, of all devices that it uses', of: (n) => (n.capacity_tokens ? f.grouped(n.capacity_tokens) : 'not known'), by: (n) => n.capacity_tokens, number: true },
];

// promise is what is promised over all nodes.
function promise(p, table) {
  if (!p) return html`<p class="quiet">Nothing is heard of a node that keeps promises over all nodes: each promises by itself.</p>`;
  return html`<dl class="facts">
      <div><dt>Promises are kept by</dt><dd>${p.controller}, for ${f.span(p.elected_seconds)}</dd></div>
      <div><dt>Promises</dt><dd>${f.grouped(p.promises)} ${p.missed ? tag('alarm', f.grouped(p.missed) + ' missed') : nothing}</dd></div>
      <div><dt>Reserved</dt><dd>${f.grouped(p.reserved_tokens)} tokens/s</dd></div>
      <div><dt>Limits</dt><dd>${f.grouped(p.limit_tokens)} tokens/s</dd></div>
      <div><dt>Served</dt><dd>${f.grouped(p.served_tokens)} tokens/s</dd></div>
      ${p.silent.length ? html`<div><dt>Do not report</dt><dd>${tag('caution', p.silent.join(', '))}</dd></div>` : nothing}
    </dl>${table('table-parts', 'What nodes have of all promises', partColumns, p.nodes)}`;
}

// cluster is the section; table and opens are the page's.
export function cluster(o, table, opens) {
  const c = o.cluster;
  const strangers = c.nodes.filter((n) => n.stranger);
  const behind = c.nodes.filter((n) => n.state === 'behind');
  return html`<dl class="facts">
      <div><dt>Cluster</dt><dd>${c.name}, this is node ${c.node} ${c.joined ? nothing : tag('alarm', 'not joined')}</dd></div>
      <div><dt>etcd</dt><dd>${c.etcd ? `answers; renewed the lease ${f.time(c.etcd_answered_seconds)} ago` : tag('alarm', 'has not answered for ' + f.time(c.etcd_answered_seconds))} ${c.full ? tag('alarm', 'full: nobody takes volumes over') : nothing}</dd></div>
      <div><dt>Cached data are served for</dt><dd>${f.time(c.lease_seconds)}</dd></div>
      <div><dt>Configuration of all nodes</dt><dd>${c.newest_revision ? 'revision ' + c.revision : 'none'} ${behind.length ? tag('caution', 'behind: ' + behind.map((n) => n.name).join(', ')) : nothing}</dd></div>
    </dl>${c.joined ? nothing : html`<p class="alarm">${c.why}</p>`}${strangers.map((n) => html`<p class="alarm">Disks of node ${n.name} have other serial numbers than on other nodes.</p>`)}${behind.map((n) => html`<p class="quiet">Node ${n.name}: ${n.behind || 'revision ' + n.revision}</p>`)}
    ${table('table-cluster-nodes', 'Nodes of the cluster', nodeColumns, c.nodes, (n) => (f.nodeTone(n.state) === 'alarm' ? 'alarm' : ''))}
    ${table('table-cluster-volumes', 'Volumes with owners', volumeColumns(opens, c.nodes), c.volumes, (v) => (v.in_flux ? 'alarm' : ''))}
    ${promise(c.promise, table)}`;
}
