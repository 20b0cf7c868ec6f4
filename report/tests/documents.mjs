// Documents for the tests: invented numbers, the same on every run.
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const block = [
  ['norm1', 'LayerNormalization', 'normalization'], ['attn.qkv', 'MatMul', 'matrix product'], ['attn.split', 'Split', 'layout'], ['attn.t', 'Transpose', 'layout'],
  ['attn.scores', 'MatMul', 'attention'], ['attn.scale', 'Mul', 'arithmetic'], ['attn.softmax', 'Softmax', 'attention'], ['attn.context', 'MatMul', 'attention'],
  ['attn.proj', 'MatMul', 'matrix product'], ['add1', 'Add', 'arithmetic'], ['norm2', 'LayerNormalization', 'normalization'], ['mlp.fc1', 'MatMul', 'matrix product'],
  ['mlp.act', 'Gelu', 'activation'], ['mlp.fc2', 'MatMul', 'matrix product'], ['add2', 'Add', 'arithmetic'],
];

export function graph(blocks) {
  const out = { name: [], op: [], category: [], block: [] };
  const push = (name, op, category, where) => {
    out.name.push(name);
    out.op.push(op);
    out.category.push(category);
    out.block.push(where);
  };
  push('pre.resize', 'Resize', 'image', 'stem');
  push('stem.conv', 'Conv', 'convolution', 'stem');
  for (let b = 0; b < blocks; b++) for (const [name, op, category] of block) push(`blocks.${b}.${name}`, op, category, String(b));
  for (const i of [0, 1, 2]) push(`neck.${i}.sample`, 'GridSample', 'image', 'neck');
  push('post.topk', 'TopK', 'sampling', 'post');
  push('post.nms', 'NonMaxSuppression', 'dynamic shape', 'post');
  return out;
}

const states = ['native', 'constrained', 'expanded', 'fallback', 'unsupported', 'unknown'];

function scan(g) {
  const rules = {
    gpu: { Gelu: ['constrained', 'attribute', 'approximate=none runs the tanh form'], GridSample: ['fallback', 'no-kernel', 'no kernel and no expansion', 'P0'], NonMaxSuppression: ['fallback', 'dynamic', 'output shape depends on data', 'P1'], Resize: ['expanded', 'attribute', 'runs as Gather and Mul', 'P2'] },
    cuda: {},
    opencl: { GridSample: ['unsupported', 'no-kernel', 'no kernel', 'P0'], LayerNormalization: ['constrained', 'size', 'at most 4096 channels'], TopK: ['unknown', '', ''] },
    cpu: {},
  };
  const nodes = [];
  const platforms = Object.entries(rules).map(([name, rule], i) => {
    const counts = Object.fromEntries(states.map((state) => [state, 0]));
    const p = { P0: 0, P1: 0, P2: 0 };
    g.op.forEach((op, n) => {
      const [state, reason, detail, priority] = rule[op] ?? ['native'];
      counts[state]++;
      if (priority) p[priority]++;
      if (state !== 'native') nodes.push({ node: g.name[n], op, platform: name, state, reason, detail, advice: '', priority: priority ?? '' });
    });
    return { name, version: '1.2', role: ['target', 'source', '', ''][i], source: ['plan', 'recorded', 'catalogue', 'plan'][i], nodes: g.name.length, ...counts, p0: p.P0, p1: p.P1, p2: p.P2, effort_days: [[3, 7], [0, 0], [12, 90], [0, 1]][i] };
  });
  const about = { 'matrix product': ['low', 'direct; mind the transpose flags'], attention: ['high', 'a fused kernel may have to be written'], image: ['medium', 'mind coordinate mode and padding mode'], 'dynamic shape': ['high', 'pad to a fixed bound, or run on the host'], layout: ['low', 'direct; often cancels out'] };
  return { platforms, nodes, categories: [...new Set(g.category)].map((name) => ({ name, difficulty: about[name]?.[0] ?? 'low', alternative: about[name]?.[1] ?? 'direct' })) };
}

export function full({ blocks = 12, floor = false } = {}) {
  const random = randomFrom(7);
  const g = graph(blocks);
  const n = g.name.length;
  const column = (make) => g.name.map((_, i) => make(i));
  const onHost = (i) => ['GridSample', 'NonMaxSuppression', 'TopK'].includes(g.op[i]);
  const gelu = (i) => g.op[i] === 'Gelu';
  const single = column((i) => (gelu(i) ? 3e-3 : 2e-5) * (0.5 + random()));
  let level = 3e-5;
  const entire = column((i) => (level = Math.min(0.02, level * (gelu(i) && i < 60 ? 3 : 1 + (random() - 0.48) * 0.06))));
  const over = column((i) => (gelu(i) ? 20 * (0.5 + random()) : g.op[i] === 'Softmax' && random() > 0.5 ? 1.5 + random() : 0.05 + 0.6 * random()));
  const over_entire = column((i) => over[i] * (1 + i / n));
  const metrics = ['max_abs', 'mean_abs', 'rel_l2', 'cosine'];
  const heavy = { 'matrix product': 0.06, attention: 0.03, image: 0.4, 'dynamic shape': 0.3 };
  const ms = column((i) => (heavy[g.category[i]] ?? 0.006) * (0.5 + random()));
  const metric = (x) => ({ max_abs: x * 10, mean_abs: x, max_rel: x * 30, cosine: 1 - x * x, rel_l2: x });
  const copies = [{ before: 0, from: 1, to: 0, bytes: 602112, ms: 0.05 }];
  for (let i = 1; i < n; i++) {
    const [a, b] = [onHost(i - 1) ? 1 : 0, onHost(i) ? 1 : 0];
    if (a !== b) copies.push({ before: i, from: a, to: b, bytes: 2460000, ms: 0.21 });
  }
  const samples = (p50, noise) => Array.from({ length: 60 }, () => p50 * (1 + noise * (random() ** 3 * 2 - 0.1)));
  const run = (runner, p50, load, prepare, batch = 1) => ({ runner, threads: 16, batch, load_ms: load, prepare_ms: prepare, first_ms: p50 * 3,
    warm: { count: 60, p50, p90: p50 * 1.04, p99: p50 * 1.12, min: p50 * 0.98, mean: p50 * 1.01, cv: 0.03, samples: samples(p50, 0.08) }, peak_bytes: 1.2e9 });
  const nodeOps = (op) => g.op.flatMap((one, i) => (one === op ? [i] : []));
  const data = {
    schema: 1, tool: 'migrate', version: '0.1.0', status: 0, reason: '', created: '2026-01-09T10:20:30Z', command: 'unmoor migrate vit_det_b16.onnx --to gpu --seed 7 --html report.html',
    model: { path: 'models/vit_det_b16.onnx', fingerprint: 'ab12'.repeat(16), inputs: [{ name: 'image', dtype: 'float32', shape: [1, 3, 224, 224] }] },
    environment: { host: { name: 'example-host', os: 'Linux 6.6', cpu: '2 × 32 cores' }, devices: ['gpu:0', 'cpu'], versions: { driver: '24.1', toolkit: '8.0', onnx: '1.16.1' } },
    source: 'cuda', target: 'gpu:0', dtype: 'float16', verdict: 'ready with limits',
    sentence: 'The model runs on gpu:0, but Gelu computes something else than the model asks for, and 5 nodes still run on the host.',
    figures: [
      { id: 'scan', value: `${n - 5} of ${n}`, label: 'nodes run on the target', note: '3 P0 (the host helps), 1 P1', state: 'warn' },
      { id: 'align', value: `${blocks} nodes`, label: 'differ by more than the tolerance', note: 'all of them Gelu', state: 'bad' },
      { id: 'bench', value: '14.1 ms', label: 'p50, batch 1, warm', note: '', state: 'ok' },
    ],
    next: [
      { text: 'Set the erf form of Gelu; the difference then goes away.', command: 'unmoor migrate MODEL --to gpu:0 --set gpu.gelu=erf', effect: `${blocks} differences to 0`, see: 'align' },
      { text: 'Rewrite GridSample so that it stays on the device.', command: 'unmoor tune MODEL --on gpu:0 --only gridsample.rewrite', effect: '1.9 to 3.1 ms of 14.1', see: 'scan' },
      { text: 'Look at the refusals.', command: '', effect: '', see: '' },
    ],
    answers: {
      scan: `On gpu:0 ${n - 5} of ${n} nodes stay on the device. 3 P0 nodes run only because the host takes them.`,
      plan: '4 nodes run on the host because the device refuses them, 1 by choice.', align: 'No. All Gelu nodes compute the tanh form.',
      bench: '14.1 ms warm, 4.5 s from start to first result.', profile: 'Matrix products and GridSample take most of the time.', environment: 'Run the command below on the same model and device.', doctor: 'All versions fit.',
    },
    readings: { growth: 'The error jumps at the first Gelu nodes.' }, graph: g, scan: scan(g),
    plan: { devices: ['gpu:0', 'cpu'], device: column((i) => (onHost(i) ? 1 : 0)), choice: column((i) => g.op[i] === 'TopK'), kernel: column((i) => `${onHost(i) ? 'cpu' : 'gpu'}.${g.op[i].toLowerCase()}`),
      refusals: column((i) => (onHost(i) && g.op[i] !== 'TopK' ? [{ device: 'gpu:0', kernel: 'gpu.generic', reason: 'no-kernel', detail: 'nobody takes it' }] : [])), copies },
    align: { reference: 'reference', target: 'gpu:0', verdict: 'differ', atol: 1e-4, rtol: 1e-3, metrics, single, entire, over, over_entire, heat: metrics.map((_, m) => column((i) => over[i] * (0.6 + 0.2 * m))),
      hidden: column((i) => i).filter((i) => g.op[i] === 'Mul'), first_divergent: 'blocks.0.mlp.act', first_nonfinite: null,
      values: column((i) => ({ name: `${g.name[i]}_out`, node: g.name[i], op: g.op[i], dtype: 'float16', single: metric(single[i]), entire: metric(entire[i]), verdict: gelu(i) ? 'differ' : over[i] > 1 ? 'suspicious' : 'match' })) },
    bench: { runs: [run('gpu:0', 14.1, 1800, 2500), run('onnxruntime', 19.9, 2100, 4900), run('cuda (recorded)', 7.4, 900, 1000), run('cpu', 95.9, 500, 200)],
      ratios: [{ a: 'gpu:0', b: 'onnxruntime', median: 0.712, low: 0.698, high: 0.727 }, { a: 'gpu:0', b: 'cpu', median: 0.147, low: 0.144, high: 0.151 }, { a: 'gpu:0', b: 'last release', median: 0.992, low: 0.981, high: 1.004 }, { a: 'gpu:0', b: 'cuda (recorded)', median: 1.905, low: 1.86, high: 1.93, unpaired: true }],
      warnings: ['The clock fell by 6 % in 3 of 60 runs; those runs are kept.'] },
    profile: { ms, groups: [...new Set(g.op)].map((op) => ({ op, label: op, nodes: nodeOps(op), ms: nodeOps(op).reduce((sum, i) => sum + ms[i], 0) })) },
    doctor: { devices: [{ name: 'gpu:0', backend: 'gpu', state: 'ready', reason: '', check_ms: 3.1, versions: { driver: '24.1' } }, { name: 'ascend', backend: 'ascend', state: 'absent', reason: 'libascendcl.so was not found', check_ms: null, versions: {} }], engines: [],
      pairs: [{ a: 'driver 24.1', b: 'toolkit 8.0', verdict: 'fits', source: 'vendor table' }], libraries: [{ name: 'libopencl.so', paths: ['/usr/lib/a', '/usr/lib/b'], used: '/usr/lib/a' }] },
    tools: [...['doctor', 'scan', 'align', 'bench', 'profile'].map((name) => ({ name, state: 'ran', command: `unmoor ${name} MODEL`, note: '' })),
      { name: 'tune', state: 'not run', command: 'unmoor tune models/vit_det_b16.onnx --on gpu:0', note: 'takes minutes' }, { name: 'regress', state: 'not run', command: 'unmoor regress record models/vit_det_b16.onnx', note: '' },
      { name: 'matrix', state: 'failed', command: 'unmoor matrix suite.toml', note: 'no suite given' }],
  };
  if (floor) Object.assign(data.align, { floor_low: column((i) => 1e-5 * (1 + i / n)), floor_high: column((i) => 9e-5 * (1 + 3 * i / n)), baseline_entire: column((i) => 4e-5 * (1 + 2 * i / n)), excess: over.map((x) => x * 8) });
  if (n > 1000) data.align.values.forEach(({ single: one, entire: whole }) => [one, whole].forEach((metrics) => ['mean_abs', 'max_rel'].forEach((key) => delete metrics[key])));
  return rounded(data);
}

// As tools write numbers: five digits.
const rounded = (data) => JSON.parse(JSON.stringify(data, (_, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value)));

// The signed error of a tensor, by channel or of chance.
function plane(rows, cols, systematic) {
  const random = randomFrom(rows);
  const mean = Array.from({ length: cols }, () => (systematic ? random() * 2 - 1 : 0));
  const cells = Array.from({ length: rows * cols }, (_, i) => Math.round(127 * Math.max(-1, Math.min(1, mean[i % cols] + 0.3 * (random() - 0.5)))));
  const hist = Array.from({ length: 33 }, () => 0);
  cells.forEach((cell) => hist[Math.round((cell / 127 + 1) * 16)]++);
  return { rows, cols, axes: [[0, 1], [2]], shape: [1, rows, cols * 3], scale: 4.9e-4, data: Buffer.from(Int8Array.from(cells).buffer).toString('base64'), row_mean: [], col_mean: mean, hist,
    verdict: systematic ? 'systematic' : 'random', pattern: systematic ? ['78 % of the error\'s variance lies between places along axis 2.', '71 % of the errors are positive.'] : ['50 % of the errors are positive; neither place, value nor neighbours tell a fifth of their variance.'] };
}

// The tanh form of Gelu, with a tie and a pair on other nodes, and a cause without numbers.
function withCauses() {
  const data = full({ blocks: 4 });
  const ids = ['gelu-quick', 'silu-for-gelu', 'bias-dropped', 'float16-sums', 'bfloat16-inputs', 'truncated-weights', 'relu-for-gelu', 'scaled-by-half', 'transposed-weights', 'saturated', 'flushed-subnormals', 'constant-shift'];
  const hypotheses = (id) => [{ id, bits: 5120, excess: 0.92 }, ...ids.map((one, i) => ({ id: one, bits: 400 - 40 * i - (i > 5 ? 900 : 0), excess: [38, 160, 420, 399, 402, 411, 2600, 1400, 'inf', 420, 421, 'nan'][i] }))];
  const cause = (id, more) => ({ id, text: 'The target computes GELU by tanh, though the model asks for erf.', advice: 'Set approximate to none, or ask the vendor for the erf form.', bits: 5120, excess: 0.92, also: [], with: null, hypotheses: hypotheses(id), ...more });
  data.align.values.filter((value) => value.op === 'Gelu').forEach((value, i) => {
    value.single.excess_e = 420 - 40 * i;
    if (i < 2) value.plane = plane(i === 0 ? 128 : 12, i === 0 ? 256 : 20, i === 0);
    value.cause = [cause('gelu-tanh'), cause('bias-dropped', { also: ['bias-wrong', 'shift-by-mean'] }), cause('gelu-tanh+float16-sums', { id: 'gelu-tanh', with: 'float16-sums', text: 'The target computes GELU by tanh, and sums in float16.' }),
      { id: 'gelu-tanh', text: 'The target computes GELU by tanh.' }][i];
  });
  return data;
}

const only = (...keys) => Object.fromEntries(Object.entries(full()).filter(([key]) => ['schema', 'tool', 'version', 'model', 'environment', 'graph', 'target', ...keys].includes(key)));

function lost() {
  const data = full({ blocks: 2 });
  data.align.single[5] = 'nan';
  data.align.over[5] = 'nan';
  data.align.over[9] = 'inf';
  data.align.entire = data.align.entire.map((x, i) => (i > 20 ? 'inf' : i === 3 ? null : x));
  data.align.over_entire = data.align.over_entire.map((x, i) => (i > 20 ? 'nan' : x));
  data.align.heat[0][7] = '-inf';
  data.align.first_nonfinite = data.graph.name[21];
  data.align.values[5].single.max_abs = 'nan';
  data.profile.ms[4] = 'nan';
  data.bench.runs[1].warm.p50 = 'inf';
  data.bench.runs[0].warm.samples[3] = 'nan';
  data.bench.ratios[0].median = 'nan';
  return data;
}

export const hostileNames = ['</script><img src=x onerror=alert(1)>', '=1+1', 'n'.repeat(500), 'שלום עולם ‮drow', '{{sentence}}', '<!--', '日本語/レイヤー', "a'b\"c`d$&", '%zz', '__proto__', 'constructor', '\u2028'];

function hostile() {
  const data = full({ blocks: 1 });
  const rename = new Map(hostileNames.map((name, i) => [data.graph.name[i], name]));
  const swap = (name) => rename.get(name) ?? name;
  data.graph.name = data.graph.name.map(swap);
  data.align.values.forEach((value) => (value.node = swap(value.node)));
  data.scan.nodes.forEach((row) => (row.node = swap(row.node)));
  data.scan.nodes[0].detail = hostileNames[0] + hostileNames[2];
  data.graph.op[2] = data.graph.op[3] = hostileNames[2];
  data.graph.block[0] = hostileNames[0];
  data.model.path = `models/${hostileNames[0]}${hostileNames[2]}`;
  data.sentence = hostileNames[0] + hostileNames[2];
  data.answers.scan = hostileNames.join(' ');
  data.next[0].command = hostileNames[2] + hostileNames[0];
  data.bench.runs[0].runner = hostileNames[2];
  data.scan.platforms[2].name = hostileNames[2];
  data.target = 'gpu:0';
  data.environment.versions[hostileNames[2]] = hostileNames[0];
  data.readings.growth = hostileNames[0];
  data.sources = [{ file: hostileNames[0], tool: 'migrate', machine: 'Example 9000, 8 cores', date: '2026-01-09 10:20 UTC', shown: 'scan and align', left_out: `bench (${hostileNames[2]} is newer)` }, { file: 'b.json', tool: 'doctor', machine: '', date: '2026-01-08 10:20 UTC' }];
  data.notes = [hostileNames[0], 'The verdict is older than a part.', 3];
  return data;
}

// As tools write: every sentence is one of theirs.
function spoken() {
  const data = withCauses();
  const n = data.graph.name.length;
  data.sentence = "The model runs on gpu:0, but its numbers differ from 'blocks.0.mlp.act' on.";
  data.verdict = 'blocked';
  data.figures = [
    { id: 'scan', value: `${n - 5} of ${n}`, label: 'of the nodes run there', note: `${n - 5} of ${n} on gpu:0`, state: 'warn' },
    { id: 'align', value: '4.1e-03', label: 'error of the outputs, relative', note: 'more than rounding', state: 'bad' },
    { id: 'bench', value: '14.1 ms', label: 'a warm run, median', note: 'gpu:0; the fastest is cpu with 9.4 ms', state: 'ok' },
  ];
  data.next = [
    { text: "look at 'blocks.0.mlp.act', the first node whose numbers differ", command: 'unmoor align m.onnx --node blocks.0.mlp.act', effect: 'the cause of the first difference', see: 'align' },
    { text: '4 nodes run on the host: GridSample (3), NonMaxSuppression', command: 'unmoor scan m.onnx --on gpu:0', effect: '3 to 7 days of work, fewer copies', see: 'scan' },
  ];
  data.answers = { scan: `gpu:0 takes ${n - 5} of ${n} nodes; 3 P0, 1 P1, 1 P2. 3 platforms stand beside it.`, plan: `${n} steps after fusing, 4 on the host, 5 copies of 2.5 MB.`, align: "No: they first part at 'blocks.0.mlp.act'.",
    bench: 'A warm run, median: gpu:0 14.1 ms, cpu 9.4 ms.', profile: `12.3 ms in ${n} steps, measured one by one.`, doctor: '2 devices are ready here; each ran an operator and was checked.' };
  data.readings = {};
  data.scan.nodes.forEach((row) => Object.assign(row, { detail: row.detail && 'no kernel for GridSample', advice: row.advice && 'the host runs it; a kernel for the device would save the copies' }));
  data.scan.categories.forEach((category) => (category.alternative = 'the host'));
  const names = { 'matrix product': 'matmul', image: 'sampling', 'dynamic shape': 'dynamic output', normalization: 'norm', convolution: 'conv' };
  data.graph.category = data.graph.category.map((name) => names[name] ?? name);
  data.scan.categories.forEach((category) => (category.name = names[category.name] ?? category.name));
  data.plan.refusals.forEach((all) => all.forEach((one) => (one.detail = `no kernel for GridSample`)));
  data.align.metrics = ['kernel alone', 'whole run'];
  data.align.heat = data.align.heat.slice(0, 2);
  data.align.values.forEach((value) => value.cause && Object.assign(value.cause, { text: 'The target computes GELU by the other of its two forms: tanh where the model asks for erf.', advice: "Re-export the model with the form that the target computes, or set the target's exact GELU." }));
  data.bench.warnings = ['runs of gpu:0 spread by 6 % of their mean', 'runs of different files were not measured in turns: a ratio is of one file'];
  data.doctor.devices[1].reason = 'it was not found';
  data.doctor.pairs = [{ a: 'driver 24.1', b: 'toolkit 8.0', verdict: 'fits', source: 'vendor table' }, { a: 'driver 24.1', b: 'toolkit 9.0', verdict: 'does not', source: 'vendor table', would: 'toolkit 8.0' }];
  data.tools = [{ name: 'tune', state: 'not run', command: '', note: 'this version of Unmoor does not have it' }, { name: 'journal', state: 'failed', command: '', note: 'it was not found' }];
  data.sources = [{ file: 'a.json', tool: 'migrate', machine: 'Example 9000, 8 cores', date: '2026-01-09 10:20 UTC', shown: 'scan, align and bench', left_out: 'doctor (b.json is newer)' }];
  data.notes = ['The verdict is that of a.json; doctor is from elsewhere and may say otherwise.'];
  data.command = 'unmoor migrate m.onnx --to gpu:0';
  return data;
}

function empty(value) {
  if (Array.isArray(value)) return [];
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, empty(item)]));
  return value;
}

function oneNode() {
  const data = full({ blocks: 0 });
  const cut = (value) => (Array.isArray(value) ? value.slice(0, 1) : value);
  for (const part of ['graph', 'plan', 'align', 'profile']) for (const key of Object.keys(data[part])) data[part][key] = cut(data[part][key]);
  data.plan.copies = [];
  data.profile.groups = [];
  return data;
}

export const documents = {
  full: () => full(), floor: () => full({ floor: true }), large: () => full({ blocks: 200 }), 'one node': oneNode, nothing: () => ({}), 'empty lists': () => empty(full()),
  'not finite': lost, hostile, scan: () => ({ ...only('scan', 'answers'), answers: { scan: 'Yes.' } }), align: () => ({ ...only('align'), graph: undefined }), 'align with graph': () => only('align'),
  causes: withCauses, spoken, bench: () => only('bench'), plan: () => only('plan'), profile: () => only('profile'), doctor: () => only('doctor'),
};
