// What is drawn: heat on a canvas, curves and bars as SVG and HTML.
import { html, svg, nothing } from './lit-html.js';
import { line, occupied, label, shade } from './figures.js';

// spark is a curve of the last values, at least a minute wide.
export function spark(series, top, text) {
  const width = 120;
  const most = Math.max(60, series.length);
  const height = 28;
  const highest = top || Math.max(1e-9, ...series.filter((v) => v !== null));
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label=${text}>
    ${svg`<polyline points=${line(series, width, height, most, highest)}></polyline>`}
  </svg>`;
}

// bar is a share of a whole, with a mark where something is promised.
export function bar(share, tone, mark) {
  return html`<span class="bar ${tone}" aria-hidden="true"><span .style=${`width:${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`}></span>${
    mark === undefined ? nothing : html`<i .style=${`left:${(100 * Math.min(1, mark)).toFixed(1)}%`}></i>`}</span>`;
}

const left = 72; // room for the labels of times
const below = 18; // and for those of the seconds

// heat draws how long reads and writes took: a column for each second, a row for each range
// of times, the stronger the more. It is as many minutes wide as there are columns for.
export function heat(canvas, columns, bounds) {
  const most = 60 * Math.max(1, Math.ceil(columns.length / 60));
  const style = getComputedStyle(canvas);
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const to = canvas.getContext('2d');
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.clearRect(0, 0, width, height);
  to.font = '11px ' + style.fontFamily;
  to.fillStyle = style.getPropertyValue('--quiet');
  const range = occupied(columns);
  if (!range) {
    to.fillText('No reads or writes yet.', left, height / 2);
    return;
  }
  const rows = range.last - range.first + 1;
  const across = (width - left) / most;
  const down = (height - below) / rows;
  let highest = 0;
  for (const c of columns) for (const n of c.counts) highest = Math.max(highest, n);
  to.textAlign = 'right';
  to.textBaseline = 'middle';
  const every = Math.ceil(14 / down);
  for (let r = 0; r < rows; r++) {
    if (r % every === 0) to.fillText(label(bounds, range.first + r), left - 6, height - below - (r + 0.5) * down);
  }
  to.textAlign = 'center';
  for (let s = 60; s < most; s += 60) to.fillText(`−${s / 60} min`, width - s * across, height - below / 2);
  to.textAlign = 'right';
  to.fillText('now', width - 2, height - below / 2);
  to.fillStyle = style.getPropertyValue('--heat');
  columns.forEach((c, i) => {
    const x = width - (columns.length - i) * across;
    for (let r = 0; r < rows; r++) {
      to.globalAlpha = shade(c.counts[range.first + r], highest);
      if (to.globalAlpha > 0) to.fillRect(x, height - below - (r + 1) * down, Math.max(1, across - (across > 3 ? 1 : 0)), Math.max(1, down - 1));
    }
  });
  to.globalAlpha = 1;
}
