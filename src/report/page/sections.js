// The sections of the page, from the numbers in the element "data".
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs, page = document.getElementById('page'), several = runs.length > 1;
  runs.forEach((run, index) => { run.index = index; run.color = color(index); run.dash = index > 7 ? '6 3' : null; });

  const swatchOf = (run) => {
    const swatch = make('span', 'swatch');
    swatch.style.background = run.color;
    return swatch;
  };
  function section(id, title, lead, ...children) {
    const content = children.flat().filter(Boolean);
    if (content.length === 0) return;
    document.getElementById('contents').append(make('a', {href: '#' + id}, title));
    const added = make('section', '', make('h2', {id}, title), lead ? make('p', 'lead', lead) : null, ...content);
    page.append(added);
    // Draws immediately instead of in the next animation frame, because a browser without a window may have no frames.
    for (const plot of added.querySelectorAll('.plot')) plot.draw();
  }
  const grid = (cards, wide) => cards.length ? make('div', wide ? 'grid wide' : 'grid', ...cards) : null;
  const lineOf = (run, series, more) => ({name: run.name, x: series ? series.x : [], y: series ? series.y : [], color: run.color, dash: run.dash, ...more});
  const names = (part) => [...new Set(runs.flatMap((run) => Object.keys(run[part])))].sort();
  const head = (run, badge) => make('div', 'run-head', swatchOf(run), make('h3', '', run.name), badge || null);

  // Runs
  const figure = (text, name) => make('div', 'figure', make('b', '', text), make('span', '', name));
  function runCard(run) {
    const good = run.end === 'finished' || run.end === 'stopped early' || run.end.startsWith('ended at');
    const figures = make('div', 'figures');
    for (const [name, value] of Object.entries(run.final_metrics || {})) figures.append(figure(value === null ? 'none' : value.toFixed(5), name));
    for (const [name, value] of Object.entries(run.best_metrics || {})) figures.append(figure(value === null ? 'none' : value.toFixed(5), `${name}, best (${run.best_iteration})`));
    const loss = run.training.mean_loss || run.training.loss;
    if (loss) figures.append(figure(short(loss.y[loss.y.length - 1], 5), run.training.mean_loss ? 'last mean loss' : 'last loss'));
    figures.append(figure((run.iterations === null ? run.last_iteration : run.iterations).toLocaleString('en'), 'iterations'));
    if (run.samples !== null) figures.append(figure(short(run.samples), 'samples'));
    if (run.seconds !== null) figures.append(figure(duration(run.seconds), 'training'));
    if (run.samples_per_second !== null) figures.append(figure(short(run.samples_per_second, 3), 'samples/s'));
    const notes = run.notes.length ? make('ul', 'notes', ...run.notes.map((note) => make('li', '', note))) : null;
    return make('div', 'card', head(run, make('span', 'badge ' + (good ? 'good' : 'warn'), run.end)), figures, notes);
  }
  section('runs', several ? 'Runs' : 'Run', '', grid(runs.map(runCard), true));

  // Differences between configs
  if (several) {
    const rows = data.differences.map(([place, values]) => make('tr', '', make('td', 'code', place),
      ...values.map((value) => make('td', 'code', value === '' ? 'left out' : value))));
    const shown = rows.length > 25 ? 20 : rows.length;
    const table = (some) => {
      const all = make('table', 'differences', make('thead', '', make('tr', '', make('th', '', 'Field'), ...runs.map((run) => make('th', '', run.name)))), make('tbody', '', ...some));
      all.style.setProperty('--runs', runs.length);
      return make('div', 'scroll', all);
    };
    const card = make('div', 'card', rows.length ? table(rows.slice(0, shown)) : make('p', 'empty', 'Nothing: the configs are equal.'));
    if (rows.length > shown) card.append(make('details', '', make('summary', '', `${rows.length - shown} more fields`), table(rows.slice(shown))));
    section('differences', 'What differs in the configs', '', card);
  }

  // Loss and metrics
  const losses = runs.map((run) => lineOf(run, run.training.mean_loss || run.training.loss));
  const cards = [chart({title: 'Training loss', lead: 'Mean of the samples since the line before.', xLabel: 'iteration', lines: losses})];
  for (const name of names('metrics')) {
    const lines = runs.map((run) => lineOf(run, run.metrics[name], {points: run.metrics[name] && run.metrics[name].x.length < 40}));
    const xs = lines.flatMap((line) => line.x.length ? [line.x[0], line.x[line.x.length - 1]] : []);
    const best = runs.map((run) => run.best_possible && run.best_possible[name]).find((value) => Number.isFinite(value));
    if (best !== undefined && xs.length) lines.push({name: 'best possible on this data', x: [Math.min(...xs), Math.max(...xs)], y: [best, best], color: 'var(--muted)', reference: true});
    cards.push(chart({title: name, lead: 'Of the evaluation set.', xLabel: 'iteration', lines}));
  }
  cards.push(chart({title: 'Learning rate', xLabel: 'iteration', fromZero: true, lines: runs.map((run) => lineOf(run, run.training.learning_rate))}));
  section('metrics', 'Loss and metrics', '', grid(cards));

  // Speed and memory
  const time = 'time in training', speed = [
    chart({title: 'Throughput', yLabel: 'samples/s', xLabel: time, xKind: 'seconds', fromZero: true, lines: runs.map((run) => lineOf(run, run.training.samples_per_second))})];
  const wait = runs.map((run) => lineOf(run, run.training.reader_wait));
  if (wait.some((line) => line.x.length)) speed.push(chart({title: 'Wait for the reader', lead: 'Share of the time in which steps had no batch.', yKind: 'share', xLabel: time, xKind: 'seconds', fromZero: true, lines: wait}));
  for (const [name, title] of [['gpu_memory', 'Memory in use on the GPU'], ['host_memory', 'Memory of the process']]) {
    const lines = runs.map((run) => lineOf(run, run.training[name]));
    if (lines.some((line) => line.x.length)) speed.push(chart({title, yKind: 'bytes', xLabel: time, xKind: 'seconds', fromZero: true, lines}));
  }
  section('speed', 'Speed and memory', '', grid(speed));
  const percent = (share) => share === undefined ? '' : (share * 100).toFixed(1) + ' %';
  const milliseconds = (ms) => ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 1 ? 2 : ms >= 0.01 ? 3 : 5);
  const bytes = (value) => { const [factor, unit] = unitOf('bytes', value); return `${(value / factor).toPrecision(3)} ${unit}`; };
  const parts = runs.flatMap((run) => {
    const of = Object.entries(run.memory_parts || {}).filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]), shown = 12;
    const sum = of.reduce((total, [, size]) => total + size, 0), rest = of.slice(shown).reduce((total, [, size]) => total + size, 0);
    const rows = of.slice(0, shown).map(([name, size]) => [name, bytes(size), percent(size / sum), size / sum]);
    if (rest) rows.push([`${of.length - shown} more parts`, bytes(rest), percent(rest / sum), rest / sum]);
    const ranks = run.memory_in_use && run.memory_in_use.length > 1 ? run.memory_in_use : [], most = Math.max(...ranks);
    return [rows.length ? make('div', 'card', head(run), bars(run, ['Memory at the end', 'Bytes', 'Share'], rows)) : null,
      ranks.length ? make('div', 'card', head(run), bars(run, ['Rank', 'In use'], ranks.map((size, rank) => [String(rank), bytes(size), size / most]))) : null].filter(Boolean);
  });
  section('memory', 'Memory by part', 'Weights and activations of rank 0, rows of tables of all ranks. Indices, buffers between ranks, data and libraries come on top.', grid(parts, true));

  /** A table with a bar in each row. A row is [name, ...numbers, filled fraction of the bar]. */
  function bars(run, titles, rows) {
    const track = (share) => {
      const fill = make('i', '');
      fill.style.background = run.color;
      fill.style.width = Math.max(0, Math.min(1, share)) * 100 + '%';
      return make('td', 'bar', make('div', 'track', fill));
    };
    return make('div', 'scroll', make('table', '',
      make('thead', '', make('tr', '', ...titles.map((title, i) => make('th', i ? 'number' : '', title)), make('th', '', ''))),
      make('tbody', '', ...rows.map((row) => make('tr', '', ...row.slice(0, -1).map((cell, i) => make('td', i ? 'number' : 'name', cell)), track(row[row.length - 1]))))));
  }

  // Time of a step
  const profiles = runs.filter((run) => run.profile && Array.isArray(run.profile.parts)).map((run) => {
    const step = run.profile, shown = step.parts.filter((part) => part.share >= 0.001).sort((a, b) => b.share - a.share);
    const small = step.parts.filter((part) => part.share < 0.001);
    const rows = shown.map((part) => [[part.part, part.name || part.type].filter(Boolean).join(' '), milliseconds(part.ms), percent(part.share), percent(part.share_of_copy), percent(part.share_of_products), part.share]);
    if (small.length) rows.push([`${small.length} smaller parts`, milliseconds(small.reduce((sum, part) => sum + part.ms, 0)), percent(small.reduce((sum, part) => sum + part.share, 0)), '', '', 0]);
    const rest = Math.max(0, step.step_ms - step.parts_ms);
    rows.push(['in no part', milliseconds(rest), percent(rest / step.step_ms), '', '', rest / step.step_ms]);
    return make('div', 'card', head(run), make('p', 'lead', `${short(step.step_ms, 4)} ms a step of ${step.samples} samples. ${step.bottleneck} ` +
      `This machine copies ${short(step.ceilings.copy_gb_per_s, 3)} GB/s and multiplies ${short(step.ceilings.product_gflop_per_s, 3)} GFLOP/s.`),
      bars(run, ['Part', 'ms', 'of the step', 'of copy speed', 'of product speed'], rows));
  });
  section('step', 'Where the time of a step goes', '', profiles);

  // Tables
  // A count is recorded only when it changes, so its last value holds until the end of the run.
  const toEnd = (run, series) => series.x[series.x.length - 1] < run.last_iteration ?
    {x: [...series.x, run.last_iteration], y: [...series.y, series.y[series.y.length - 1]]} : series;
  const counted = (run, table, count) => (run.tables[table] || {})[count];
  const tables = names('tables').flatMap((table) => [...new Set(runs.flatMap((run) => Object.keys(run.tables[table] || {})))]
    .filter((count) => count !== 'load' && (count === 'rows' || runs.some((run) => counted(run, table, count) && counted(run, table, count).y.some((y) => y > 0))))
    .sort((a, b) => (b === 'rows') - (a === 'rows')).map((count) => chart({title: `Table ${table}: ${count.replace(/_/g, ' ')}`, xLabel: 'iteration', fromZero: true,
      yKind: count.startsWith('bytes') ? 'bytes' : undefined,
      lines: runs.filter((run) => counted(run, table, count)).map((run) => lineOf(run, toEnd(run, counted(run, table, count)), {points: counted(run, table, count).x.length < 40}))})));
  const loads = names('tables').map((table) => [table, runs.filter((run) => run.tables[table] && run.tables[table].load)]).filter(([, having]) => having.length).map(([table, having]) =>
    chart({title: `Load of table ${table}`, lead: 'Rows over the places of the index, which doubles before it is three quarters full.', yKind: 'share', fromZero: true, xLabel: 'iteration',
      lines: having.map((run) => lineOf(run, toEnd(run, run.tables[table].load), {points: run.tables[table].load.x.length < 40}))}));
  const hottest = runs.filter((run) => run.scores).flatMap((run) => run.scores.hottest.filter((table) => table.keys.length).map((table) => {
    const slots = table.keys.some(([feature]) => feature), most = table.keys[0][2];
    const rows = table.keys.map(([feature, key, times]) => [...(slots ? [feature] : []), key, times.toLocaleString('en'), percent(times / table.times), times / most]);
    return make('div', 'card', head(run), make('p', 'lead', `Hottest keys of table ${table.table}, in ` + (table.in_training ? 'all training batches.' :
      `the ${run.scores.rows.toLocaleString('en')} scored rows: training counts keys with "count_keys".`)),
      bars(run, [...(slots ? ['Slot'] : []), 'Key', 'Times', slots ? 'of all slots' : 'of all keys'], rows));
  }));
  section('tables', 'Embedding tables', '', grid([...tables, ...loads]), grid(hottest, true));

  // Scores
  const scored = runs.filter((run) => run.scores && run.scores.labels.length);
  const labels = [...new Set(scored.flatMap((run) => run.scores.labels.map((label) => label.name)))];
  const of = (run, name) => run.scores.labels.find((label) => label.name === name);
  const scoreCards = labels.flatMap((name) => {
    const having = scored.filter((run) => of(run, name)), suffix = labels.length > 1 ? ` of ${name}` : '';
    const areas = (run) => `${run.name}, area ${of(run, name).auc === null ? 'not defined' : of(run, name).auc.toFixed(5)}`;
    const most = Math.max(0.01, ...having.flatMap((run) => of(run, name).calibration.flatMap((bucket) => [bucket.score, bucket.label])));
    const all = [
      chart({title: 'ROC curve' + suffix, lead: 'Share of clicks found over share of others taken for clicks.', square: true, xRange: [0, 1], yRange: [0, 1], diagonal: true, legend: true,
        xLabel: 'false positive rate', yLabel: 'true positive rate', empty: 'The labels are of one class.',
        lines: having.map((run) => lineOf(run, of(run, name).roc, {name: areas(run)}))}),
      chart({title: 'Calibration' + suffix, lead: 'Clicks that came over clicks that were predicted, in groups of equally many rows. On the diagonal both are equal.', square: true,
        xRange: [0, most], yRange: [0, most], diagonal: true, xLabel: 'mean score', yLabel: 'mean label',
        tip: (line, i) => `${short(line.y[i])} of ${short(line.rows[i])} rows`,
        lines: having.map((run) => lineOf(run, {x: of(run, name).calibration.map((b) => b.score), y: of(run, name).calibration.map((b) => b.label)},
          {points: true, rows: of(run, name).calibration.map((b) => b.rows)}))})];
    for (const run of having) {
      const {low, high, positives, negatives} = of(run, name).histogram, bins = positives.length;
      const x = Array.from({length: bins + 1}, (_, i) => low + (high - low) * i / bins);
      const shares = (counts) => { const sum = counts.reduce((a, b) => a + b, 0); return sum ? [...counts, counts[bins - 1]].map((count) => count / sum) : []; };
      // The value of bin i holds from x[i] to x[i + 1], so inner boundaries occur twice, with both values.
      const step = (ys) => ys.length ? {x: x.flatMap((v, i) => i === 0 || i === bins ? [v] : [v, v]), y: ys.slice(0, bins).flatMap((v) => [v, v])} : {x: [], y: []};
      all.push(chart({title: 'Scores' + suffix + (several ? `: ${run.name}` : ''), lead: 'Share of the rows of each class, by score.', yKind: 'share', fromZero: true, legend: true, square: true, xLabel: 'score',
        lines: [{name: 'label 1', ...step(shares(positives)), color: 'var(--c2)', fill: true}, {name: 'label 0', ...step(shares(negatives)), color: 'var(--muted)', fill: true}]}));
    }
    return all;
  });
  for (const run of scored.filter((one) => one.scores.unmatched.length))
    scoreCards.push(make('div', 'card', head(run), make('p', 'lead', 'Keys without a row in the model: training has not seen them, and they count as zero vectors. Slots that are not here have none.'),
      bars(run, ['Slot', 'Keys', 'without a row'], run.scores.unmatched.map(([slot, keys, without]) => [slot, keys.toLocaleString('en'), percent(without / keys), without / keys]))));
  for (const run of scored.filter((one) => one.scores.unlisted.length))
    scoreCards.push(make('div', 'card', head(run), make('p', 'lead', 'Values that the vocabulary of their slot lacks: they share one key.'),
      bars(run, ['Slot', 'Values', 'not listed'], run.scores.unlisted.map(([slot, values, lacking]) => [slot, values.toLocaleString('en'), percent(lacking / values), lacking / values]))));
  const sizes = [...new Set(scored.map((run) => `${run.scores.rows.toLocaleString('en')} rows of ${run.scores.data}`))];
  section('scores', 'Scores', scored.length ? `Of the saved models on the first ${sizes.join(' and ')}.` : '', grid(scoreCards));

  // Importance
  const importance = scored.filter((run) => run.scores.importance.length).map((run) => {
    const rows = run.scores.importance, most = Math.max(1e-12, ...rows.map((row) => row.auc_lost)), shown = 30;
    const line = (row) => [row.feature, row.auc_lost === null ? 'none' : row.auc_lost.toFixed(5).replace('-', '\u2212'), row.scores_moved.toFixed(4), row.auc_lost / most];
    const titles = ['Feature', 'AUC lost', 'scores moved'];
    const card = make('div', 'card', head(run), bars(run, titles, rows.slice(0, shown).map(line)));
    if (rows.length > shown) card.append(make('details', '', make('summary', '', `${rows.length - shown} more features`), bars(run, titles, rows.slice(shown).map(line))));
    return card;
  });
  section('importance', 'Feature importance', 'How much AUC is lost, and how far scores move on average, when the values of one feature come from other rows.', grid(importance, true));

  // Facts about the machines of the runs
  const facts = runs.map((run) => make('div', 'card', head(run), make('div', 'scroll', make('table', '', make('tbody', '',
    ...run.facts.map(([name, value]) => make('tr', '', make('th', '', name), make('td', 'code', value))))))));
  section('origin', 'Where they come from', '', grid(facts, true));

  document.getElementById('subtitle').textContent = runs.map((run) => run.name).join(', ');
  document.getElementById('footer').textContent = `Written by ${data.program} at ${data.made}. This file needs no network.`;
  const button = document.getElementById('theme'), root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  button.addEventListener('click', () => { root.dataset.theme = dark() ? 'light' : 'dark'; label(); });
  label();
})();
