import test from 'node:test';
import assert from 'node:assert/strict';
import * as f from '../files/figures.js';

test('amounts, rates, times and shares in words', () => {
  for (const [got, want] of [
    [f.grouped(1234567.4), '1,234,567'], [f.grouped(0), '0'], [f.grouped(999), '999'],
    [f.bytes(0), '0 B'], [f.bytes(1023), '1023 B'], [f.bytes(1536), '1.5 KiB'], [f.bytes(1023 * 1024), '0.999 MiB'], [f.bytes(26.34 * 2 ** 20), '26.3 MiB'], [f.bytes(-5), '0 B'], [f.bytes(200 * 2 ** 30), '200 GiB'],
    [f.rate(2 ** 20), '1 MiB/s'],
    [f.time(0.0000038), '3.8 µs'], [f.time(0.0045), '4.5 ms'], [f.time(0.1), '100 ms'], [f.time(32.5), '32.5 s'], [f.time(0), '0 µs'], [f.time(null), '–'], [f.time(undefined), '–'],
    [f.percent(0.634), '63 %'], [f.percent(null), '–'], [f.percent(undefined), '–'],
    [f.span(5), '5 s'], [f.span(0), '0 s'], [f.span(3 * 86400 + 7200 + 59), '3 d 2 h'], [f.span(3661), '1 h 1 min'],
    [f.limit({ iops: 1200, bytes: 2 ** 20 }), '1,200 IOPS, 1 MiB/s'], [f.limit({}), '–'], [f.limit(undefined), '–'],
  ]) assert.equal(got, want);
});

test('the longest of an operation', () => {
  const recent = [{ operation: 'read', p99_seconds: 2 }, { operation: 'write', p99_seconds: 3 }];
  assert.equal(f.quantile(recent, 'p99_seconds', 'read'), 2);
  assert.equal(f.quantile(recent, 'p99_seconds'), 3);
  assert.equal(f.quantile([], 'p99_seconds'), null);
});

test('a node that is away or silent is red', () => {
  assert.deepEqual(['ok', 'away', 'silent', 'cut', 'drained', 'behind'].map(f.nodeTone), ['good', 'alarm', 'alarm', 'caution', 'caution', 'caution']);
});

test('every severity has a name and a tone; red are data, drift and promises', () => {
  for (const s of ['failed', 'differs', 'missed', 'full', 'warning', 'note', 'ok']) assert.ok(f.names[s], s);
  assert.deepEqual(['failed', 'differs', 'missed', 'full', 'warning', 'note', 'ok'].map(f.tone), ['alarm', 'alarm', 'alarm', 'caution', 'caution', 'plain', 'good']);
});

const overview = (at, heat, volumes = ['a', 'b']) => ({
  at, total: { iops: 5, read_bytes: 1, written_bytes: 2 }, threads: [{ name: 'event0', busy: 0.5 }, { name: 'event1', busy: 0.75 }], volumes: volumes.map((volume) => ({ volume, heat })),
});

test('history: the last ones, each once, and of volumes that there are', () => {
  const h = new f.History(3);
  for (let i = 1; i <= 5; i++) h.add(overview(`2026-11-26T03:00:0${i}Z`, [i, 0, 1]));
  h.add(overview('2026-11-26T03:00:05Z', [9, 9, 9]));
  assert.equal(h.totals.length, 3);
  assert.equal(h.totals.at(-1).busy, 0.75);
  assert.equal(h.totals.at(-1).hits, null);
  assert.deepEqual(h.heat.get('').map((c) => c.counts), [[6, 0, 2], [8, 0, 2], [10, 0, 2]]);
  assert.deepEqual(h.threads.get('event1'), [0.75, 0.75, 0.75]);
  h.add(overview('2026-11-26T03:00:06Z', [1, 0, 0], ['a']));
  assert.deepEqual([...h.heat.keys()].sort(), ['', 'a']);
});

test('heat: what is occupied, its labels, sums and shades', () => {
  const columns = [{ counts: [0, 0, 3, 0, 0] }, { counts: [0, 0, 1, 4, 0] }];
  assert.deepEqual(f.occupied(columns), { first: 1, last: 4 });
  assert.equal(f.occupied([{ counts: [0, 0] }]), null);
  assert.equal(f.occupied([]), null);
  assert.equal(f.label([0.001, 0.002], 1), '< 2 ms');
  assert.equal(f.label([0.001, 0.002], 2), '≥ 2 ms');
  assert.deepEqual(f.sums(columns, 60), [0, 0, 4, 4, 0]);
  assert.deepEqual(f.sums(columns, 1), [0, 0, 1, 4, 0]);
  assert.equal(f.shade(0, 9), 0);
  assert.equal(f.shade(9, 9), 1);
  assert.ok(f.shade(1, 1000) > 0.15 && f.shade(1, 1000) < f.shade(10, 1000));
});

test('a curve ends at the right, and leaves gaps out', () => {
  assert.equal(f.line([0, 1], 100, 12, 11, 1), '90.0,11.0 100.0,1.0');
  assert.equal(f.line([null, 1], 100, 12, 11, 2), '100.0,6.0');
  assert.equal(f.line([], 100, 12, 11, 1), '');
});

test('rows by numbers, the largest first, and by names', () => {
  const rows = [{ n: 1, s: 'b' }, { n: 3, s: 'a' }, { n: null, s: 'c' }, { n: 3, s: 'd' }];
  assert.deepEqual(f.sorted(rows, (r) => r.n).map((r) => r.s), ['a', 'd', 'b', 'c']);
  assert.deepEqual(f.sorted(rows, (r) => r.n, true).map((r) => r.s), ['c', 'b', 'a', 'd']);
  assert.deepEqual(f.sorted(rows, (r) => r.s).map((r) => r.s), ['a', 'b', 'c', 'd']);
  assert.equal(f.sorted(rows, undefined), rows);
});
