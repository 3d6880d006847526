'use strict';
// Small SVG drawings: lines and steps over two linear axes. Axes have round ticks; a drawing shows a legend, and the
// values at the mouse pointer.

/** Creates an element with attributes (or a class name). The children are elements or texts. */
function make(tag, attributes, ...children) {
  const svg = ['svg', 'path', 'line', 'text', 'g', 'circle', 'rect'].includes(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  if (typeof attributes === 'string') attributes = attributes ? {class: attributes} : {};
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const color = (index) => `var(--c${index % 8})`;

/** A number as text, with at most `digits` significant digits. Large numbers end with k, M, G or T. */
function short(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return 'none';
  const size = Math.abs(value);
  for (const [factor, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
    if (size >= factor) return trim(value / (letter === 'k' ? 1e3 : factor), digits) + '\u2009' + letter;
  if (size > 0 && size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace('e-', 'e\u2212');
  return trim(value, digits);
}
const trim = (value, digits) => String(Number(value.toPrecision(digits))).replace('-', '\u2212');

function duration(seconds) {
  if (!Number.isFinite(seconds)) return 'none';
  if (seconds < 1) return trim(seconds * 1e3, 3) + ' ms';
  if (seconds < 60) return trim(seconds, 3) + ' s';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.round(seconds % 60)).padStart(2, '0')} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor(seconds % 3600 / 60)).padStart(2, '0')} min`;
}

/** At most `most` ticks, whose distance is 1, 2 or 5 times a power of ten. `enclose`: the ticks enclose [low, high]. */
function ticks(low, high, most, enclose) {
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    low -= room;
    high += room;
  }
  const raw = (high - low) / Math.max(1, most - 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= raw * (1 - 1e-9));
  const first = enclose ? Math.floor(low / step + 1e-9) : Math.ceil(low / step - 1e-9);
  const last = enclose ? Math.ceil(high / step - 1e-9) : Math.floor(high / step + 1e-9);
  const values = [];
  for (let i = first; i <= last; ++i) values.push(Number((i * step).toPrecision(12)));
  return {values, step};
}

/** The texts of the ticks, with as many decimals as `step` needs. Large numbers of an axis all have the same letter. */
function tickTexts({values, step}) {
  const largest = Math.max(...values.map(Math.abs));
  if (largest > 0 && largest < 1e-3) return values.map((value) => value === 0 ? '0' : short(value, 3));
  const [factor, letter] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k'], [0, '']].find(([f]) => largest >= f);
  const unit = letter === 'k' ? 1e3 : factor || 1;
  const decimals = Math.max(0, Math.min(8, -Math.floor(Math.log10(step / unit) + 1e-9)));
  return values.map((value) => value === 0 ? '0' : (value / unit).toFixed(decimals).replace('-', '\u2212') +
                                                   (letter ? '\u2009' + letter : ''));
}

/** The unit for seconds or bytes that suits the value `largest`: [factor, name]. */
function unitOf(kind, largest) {
  const units = {seconds: [[1, 's'], [60, 'min'], [3600, 'h'], [86400, 'days']], bytes: [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB']]}[kind];
  const least = kind === 'seconds' ? 3 : 1;
  return [...units].reverse().find(([factor]) => largest >= factor * least) || units[0];
}

/** The index of the element of `xs` that is nearest to `x`. */
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle; else high = middle;
  }
  return x - xs[low] <= xs[high] - x ? low : high;
}

/**
 * A card with a drawing. options: title, lead, xLabel, lines: [{name, x, y, color, dash, points, fill, steps, reference}],
 * xKind ('seconds'), yKind ('bytes', 'share'), fromZero, square, xRange, yRange, diagonal, empty, tip(line, index) -> text.
 */
function chart(options) {
  const lines = options.lines.filter((line) => line.x.length > 0);
  const card = make('div', 'card chart', make('h3', '', options.title));
  if (options.lead) card.append(make('p', 'lead', options.lead));
  if (lines.length === 0) {
    card.append(make('p', 'empty', options.empty || 'No values were recorded.'));
    return card;
  }
  if (lines.length > 1 || options.legend) {
    const legend = make('div', 'legend');
    for (const line of lines) {
      const swatch = make('span', 'swatch');
      swatch.style.background = line.reference ? 'transparent' : line.color;
      if (line.reference) swatch.style.borderTop = '2px dashed var(--muted)', swatch.style.height = '0';
      else if (line.dash) swatch.style.background = `repeating-linear-gradient(90deg, ${line.color} 0 4px, transparent 4px 6px)`;
      legend.append(make('span', '', swatch, line.name));
    }
    card.append(legend);
  }
  const plot = make('div', 'plot'), tip = make('div', 'tip');
  card.append(plot);
  plot.draw = () => { if (plot.clientWidth !== plot.drawn) drawInto(plot, tip, options, lines); };
  new ResizeObserver(() => requestAnimationFrame(plot.draw)).observe(plot);
  return card;
}

function drawInto(plot, tip, options, lines) {
  const width = plot.drawn = plot.clientWidth;
  if (width === 0) return;
  const height = options.square ? Math.min(width, 340) : 230;
  const all = (axis) => lines.flatMap((line) => [Math.min(...line[axis]), Math.max(...line[axis])]);
  const scaleOf = (axis, kind, range) => {
    const values = range || all(axis);
    const [factor, word] = kind && kind !== 'share' ? unitOf(kind, Math.max(...values.map(Math.abs))) : [kind === 'share' ? 0.01 : 1, kind === 'share' ? '%' : ''];
    return {factor, word, low: Math.min(...values) / factor, high: Math.max(...values) / factor};
  };
  const xs = scaleOf('x', options.xKind, options.xRange), ys = scaleOf('y', options.yKind, options.yRange);
  if (options.fromZero) ys.low = Math.min(0, ys.low);
  if (xs.low > 0 && xs.low <= xs.high / 2) xs.low = 0;
  const yTicks = ticks(ys.low, ys.high, 6, true), yTexts = tickTexts(yTicks);
  const named = options.yLabel || ys.word, bottom = 42, top = named ? 26 : 12, right = 14, left = 14 + 7 * Math.max(...yTexts.map((text) => text.length));
  const xMost = Math.max(2, Math.floor((width - left - right) / 50));
  if (xs.low === xs.high) { xs.low -= 0.5; xs.high += 0.5; }
  const xTicks = ticks(xs.low, xs.high, xMost, false), xTexts = tickTexts(xTicks);
  const yLow = yTicks.values[0], yHigh = yTicks.values[yTicks.values.length - 1];
  const px = (x) => left + (x / xs.factor - xs.low) / (xs.high - xs.low) * (width - left - right);
  const py = (y) => height - bottom - (y / ys.factor - yLow) / (yHigh - yLow) * (height - bottom - top);

  const svg = make('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': options.title});
  yTicks.values.forEach((value, i) => {
    const y = py(value * ys.factor);
    svg.append(make('line', {class: 'gridline', x1: left, x2: width - right, y1: y, y2: y}));
    svg.append(make('text', {x: left - 8, y: y + 4, 'text-anchor': 'end'}, yTexts[i]));
  });
  xTicks.values.forEach((value, i) => {
    const x = px(value * xs.factor);
    svg.append(make('line', {class: 'axis', x1: x, x2: x, y1: height - bottom, y2: height - bottom + 5}));
    const half = xTexts[i].length * 3.6;
    svg.append(make('text', {x: Math.min(x, width - half), y: height - bottom + 19, 'text-anchor': 'middle'}, xTexts[i]));
  });
  svg.append(make('line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
  svg.append(make('text', {x: (left + width - right) / 2, y: height - 5, 'text-anchor': 'middle'},
                  options.xLabel + (xs.word ? ` (${xs.word})` : '')));
  const yName = [options.yLabel, ys.word && (options.yLabel ? `(${ys.word})` : ys.word)].filter(Boolean).join(' ');
  if (yName) svg.append(make('text', {x: 2, y: 10}, yName));
  if (options.diagonal) {
    const end = Math.min(xs.high * xs.factor, yHigh * ys.factor);
    svg.append(make('path', {class: 'reference', d: `M${px(0)},${py(0)}L${px(end)},${py(end)}`}));
  }
  for (const line of lines) {
    let path = '';
    for (let i = 0; i < line.x.length; ++i) {
      const x = px(line.x[i]).toFixed(1), y = py(line.y[i]).toFixed(1);
      path += i === 0 ? `M${x},${y}` : line.steps ? `H${x}V${y}` : `L${x},${y}`;
    }
    if (line.fill)
      svg.append(make('path', {d: `${path}V${py(0)}H${px(line.x[0])}Z`, fill: line.color, 'fill-opacity': 0.22, stroke: 'none'}));
    svg.append(make('path', {class: line.reference ? 'reference' : 'series', d: path, stroke: line.color,
                             ...(line.dash ? {'stroke-dasharray': line.dash} : {})}));
    if (line.points || line.x.length === 1)
      for (let i = 0; i < line.x.length; ++i)
        svg.append(make('circle', {cx: px(line.x[i]), cy: py(line.y[i]), r: 3, fill: line.color}));
  }
  plot.replaceChildren(svg, tip);
  const cursor = make('line', {class: 'cursor', y1: top, y2: height - bottom, visibility: 'hidden'});
  svg.append(cursor);
  const hide = () => { cursor.setAttribute('visibility', 'hidden'); tip.style.visibility = 'hidden'; };
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('pointermove', (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    if (at < left || at > width - right) return hide();
    const x = ((at - left) / (width - left - right) * (xs.high - xs.low) + xs.low) * xs.factor;
    const near = lines.filter((line) => !line.reference).map((line) => ({line, i: nearest(line.x, x)}));
    const best = near.reduce((a, b) => Math.abs(a.line.x[a.i] - x) <= Math.abs(b.line.x[b.i] - x) ? a : b);
    const place = best.line.x[best.i], value = (v, scale) => short(v / scale.factor, 5) + (scale.word ? ' ' + scale.word : '');
    tip.replaceChildren(make('div', '', `${options.xLabel} ${value(place, xs)}`));
    for (const {line, i} of near) {
      const swatch = make('span', 'swatch');
      swatch.style.background = line.color;
      tip.append(make('div', '', swatch, line.name, make('b', '', options.tip ? options.tip(line, i) : value(line.y[i], ys))));
    }
    const cx = px(place);
    cursor.setAttribute('x1', cx);
    cursor.setAttribute('x2', cx);
    cursor.setAttribute('visibility', 'visible');
    tip.style.visibility = 'visible';
    tip.style.left = Math.max(0, Math.min(width - tip.offsetWidth, cx < width / 2 ? cx + 12 : cx - tip.offsetWidth - 12)) + 'px';
  });
}
