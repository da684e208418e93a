// Figures in words, and what is made of overviews. Nothing here knows of a document.

// grouped is a whole number with a comma before every third digit.
export const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',');

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

// three is a number with three digits.
function three(n) {
  return n >= 99.95 ? Math.round(n).toString() : Number(n.toPrecision(3)).toString();
}

// bytes is an amount of data with three digits and a binary unit.
export function bytes(n) {
  let unit = 0;
  n = Math.max(0, n);
  if (n < 1024) return Math.trunc(n) + ' B';
  while (n >= 999.5 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return three(n) + ' ' + units[unit];
}

// rate is data in a second.
export const rate = (n) => bytes(n) + '/s';

// time is a duration with three digits.
export function time(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 1e-3) return three(seconds * 1e6) + ' µs';
  if (seconds < 1) return three(seconds * 1e3) + ' ms';
  return three(seconds) + ' s';
}

// percent is a share without a fraction.
export const percent = (share) => (share === null || share === undefined ? '–' : Math.round(100 * share) + ' %');

// span is for how long something has been, in its two largest units.
export function span(seconds) {
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const out = [];
  for (const [size, unit] of parts) {
    const n = Math.floor(seconds / size);
    if (n > 0 || (size === 1 && out.length === 0)) out.push(n + ' ' + unit);
    seconds -= n * size;
    if (out.length === 2) break;
  }
  return out.join(' ');
}

// limit is a rate that a rule permits, in words.
export function limit(l) {
  const parts = [];
  if (l && l.iops) parts.push(grouped(l.iops) + ' IOPS');
  if (l && l.bytes) parts.push(rate(l.bytes));
  return parts.join(', ') || '–';
}

// quantile is the longest of an operation's, or of all operations'; null: there were none.
export function quantile(recent, field, operation) {
  let most = null;
  for (const q of recent) {
    if (operation && q.operation !== operation) continue;
    if (most === null || q[field] > most) most = q[field];
  }
  return most;
}

// alarms are the severities that are red; cautions are amber.
export const alarms = ['failed', 'differs', 'missed'];
const cautions = ['full', 'warning'];

// tone is how something of a severity looks.
export function tone(severity) {
  if (alarms.includes(severity)) return 'alarm';
  if (cautions.includes(severity)) return 'caution';
  return severity === 'ok' ? 'good' : 'plain';
}

// names say what a severity is, for who does not see colours.
export const names = {
  failed: 'Data in danger', differs: 'Differs from the file', missed: 'Promise missed', full: 'Bottleneck', warning: 'Warning', note: 'Note', ok: 'Well',
};

// bounds are what a rate ends at, in words.
export const bounds = {
  idle: 'idle', depth: 'its own depth', window: 'command window', limit: 'a limit', thread: 'event thread', device: 'device', cache: 'cache', memory: 'memory', network: 'network',
};

// boundTone is how that looks.
export const boundTone = (bound) => (bound === 'depth' || bound === 'idle' ? 'plain' : 'caution');

// nodeTone is how a node of a cluster looks by its state.
export function nodeTone(state) {
  if (state === 'away' || state === 'silent') return 'alarm';
  return state === 'ok' ? 'good' : 'caution';
}

// History keeps the last overviews' figures: the server keeps none.
export class History {
  constructor(most) {
    this.most = most;
    this.totals = []; // {at, iops, read, written, hits, busy}
    this.heat = new Map(); // by volume, '' is all: [{at, counts}]
    this.threads = new Map(); // by name: [busy]
  }

  // add takes in an overview. One that is there already changes nothing.
  add(o) {
    const at = Date.parse(o.at);
    const last = this.totals.at(-1);
    if (last && last.at >= at) return;
    const busy = Math.max(0, ...o.threads.map((t) => t.busy));
    this.push(this.totals, {
      at, iops: o.total.iops, read: o.total.read_bytes, written: o.total.written_bytes, hits: o.cache && o.cache.hit_ratio !== undefined ? o.cache.hit_ratio : null, busy,
    });
    const all = [];
    for (const v of o.volumes) {
      v.heat.forEach((n, i) => { all[i] = (all[i] || 0) + n; });
      this.push(this.of(this.heat, v.volume), { at, counts: v.heat });
    }
    this.push(this.of(this.heat, ''), { at, counts: all });
    for (const t of o.threads) this.push(this.of(this.threads, t.name), t.busy);
    for (const name of this.heat.keys()) {
      if (name && !o.volumes.some((v) => v.volume === name)) this.heat.delete(name);
    }
  }

  of(map, name) {
    if (!map.has(name)) map.set(name, []);
    return map.get(name);
  }

  push(list, value) {
    list.push(value);
    if (list.length > this.most) list.shift();
  }
}

// occupied are the buckets of heat that have something, with one of room at each end.
export function occupied(columns) {
  let first = Infinity;
  let last = -1;
  for (const c of columns) {
    c.counts.forEach((n, i) => {
      if (n > 0) {
        first = Math.min(first, i);
        last = Math.max(last, i);
      }
    });
  }
  if (last < 0) return null;
  const most = columns.at(-1).counts.length - 1;
  return { first: Math.max(0, first - 1), last: Math.min(most, last + 1) };
}

// label names a bucket of heat.
export function label(heatBounds, i) {
  return i < heatBounds.length ? '< ' + time(heatBounds[i]) : '≥ ' + time(heatBounds.at(-1));
}

// sums are heat by bucket over the last columns.
export function sums(columns, last) {
  const out = [];
  for (const c of columns.slice(-last)) c.counts.forEach((n, i) => { out[i] = (out[i] || 0) + n; });
  return out;
}

// shade is how dark a count of heat is, 0 to 1: by its logarithm, so that a few slow
// commands are seen beside many fast ones.
export const shade = (n, most) => (n <= 0 || most <= 0 ? 0 : 0.15 + 0.85 * (Math.log1p(n) / Math.log1p(most)));

// line is a series as the points of an SVG polyline in a width and height; null is a gap's
// value and is left out.
export function line(series, width, height, most, top) {
  const step = width / Math.max(1, most - 1);
  const from = width - (series.length - 1) * step;
  return series.map((v, i) => (v === null ? null : `${(from + i * step).toFixed(1)},${(height - (height - 2) * Math.min(1, top > 0 ? v / top : 0) - 1).toFixed(1)}`)).filter(Boolean).join(' ');
}

// sorted is rows by a column: of gives what rows are compared by, numbers with the largest
// first.
export function sorted(rows, of, reverse) {
  if (!of) return rows;
  const out = rows.map((r, i) => [of(r), i, r]);
  out.sort((a, b) => {
    const order = typeof a[0] === 'string' || typeof b[0] === 'string' ? String(a[0]).localeCompare(String(b[0])) : (b[0] ?? -1) - (a[0] ?? -1);
    return order * (reverse ? -1 : 1) || a[1] - b[1];
  });
  return out.map((r) => r[2]);
}
