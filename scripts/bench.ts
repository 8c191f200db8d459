/**
 * `npm run bench`: start-up, memory, CPU time and rate of this program's forms, side by side with each other and with any other CSI plugin.
 *
 *   --against COMMAND        also this plugin: a command line with {socket} and {config}, such as
 *                            "exec node bin/democratic-csi --driver-config-file {config} --server-socket {socket} --csi-version 1.9.0 --csi-name x"
 *   --endpoint unix:///PATH  also this plugin, which runs already
 *   --parameter NAME=VALUE   volumes of those two are created with it
 *   --subject NAME           only these: direct, proxy, node, deno, none
 *   --case NAME              only these calls: Probe, NodeGetInfo, GetCapacity, Create+Delete, Publish+Unpublish
 *   --rounds N, --slice MS   how often, and for how long each time (8 rounds of 250 ms)
 *   --starts N               how often each is started (8; 0 leaves it out)
 *   --long                   memory over 100,000 calls too (minutes)
 *   --json                   everything as JSON
 *
 * It reports and never fails for a figure.
 */
import { cpus, loadavg, release } from 'node:os';
import { parseArgs } from 'node:util';
import { measureCalls } from '../test/bench/measure-calls.ts';
import { measureCommands } from '../test/bench/measure-commands.ts';
import { measureGrowth, type Sample } from '../test/bench/measure-growth.ts';
import { measureStarts } from '../test/bench/measure-starts.ts';
import { proxyCosts } from '../test/bench/proxy-cost.ts';
import { report } from '../test/bench/report.ts';
import type { Results } from '../test/bench/results.ts';
import type { Session } from '../test/bench/session.ts';
import type { Subject } from '../test/bench/subject.ts';
import { commandSubject, endpointSubject, ownNames, ownSubjects } from '../test/bench/subjects.ts';
import { toSubjectResult } from '../test/bench/to-results.ts';
import { createWorkplace, type Workplace } from '../test/bench/workplace.ts';
import { buildPrograms } from '../test/conformance/programs.ts';

const { values: options } = parseArgs({
  options: {
    against: { type: 'string', multiple: true, default: [] },
    endpoint: { type: 'string', multiple: true, default: [] },
    parameter: { type: 'string', multiple: true, default: [] },
    subject: { type: 'string', multiple: true, default: [] },
    case: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string', default: '8' },
    slice: { type: 'string', default: '250' },
    starts: { type: 'string', default: '8' },
    long: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

const say = (line: string) => void process.stderr.write(`${line}\n`);

/** One line that is overwritten on a terminal, and nothing elsewhere. */
const onProgress = (text: string) => {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
};

async function bench(workplace: Workplace): Promise<Results> {
  const subjects = await chosenSubjects();
  const startable = subjects.filter(({ prepare }) => prepare !== undefined);
  const rounds = Number(options.starts);
  const starts = await measureStarts(workplace, rounds > 0 ? startable : [], {
    rounds,
    memoryRounds: Math.min(2, rounds),
    onProgress,
  });
  const sessions: Session[] = [];
  for (const subject of subjects) if (!subject.startOnly) sessions.push(await workplace.open(subject));
  const calls = await measureCalls(sessions, {
    rounds: Number(options.rounds),
    sliceMs: Number(options.slice),
    onlyCases: options.case,
    onProgress,
  });
  const growth = new Map<Session, readonly Sample[]>();
  for (const session of options.long ? sessions : []) {
    growth.set(session, await measureGrowth(session, { calls: 100_000, samples: 10, onProgress }));
  }
  onProgress('programs started per call');
  const results = [];
  for (const subject of subjects) {
    const session = sessions.find((one) => one.subject === subject);
    const commands = session && (await measureCommands(session, workplace.root, say));
    results.push(
      toSubjectResult({ subject, session, starts: starts.get(subject), calls, commands, growth: growth.get(session!) }),
    );
  }
  onProgress('');
  const machine = { cores: cpus().length, kernel: release(), loadAverage: loadavg() };
  return { machine, subjects: results, proxyCost: proxyCosts(calls) };
}

async function chosenSubjects(): Promise<Subject[]> {
  const unknown = options.subject.filter((name) => ![...ownNames, 'none'].some((own) => own === name));
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}; there are: ${ownNames.join(', ')}`);
  const own = options.subject.includes('none') ? [] : ownSubjects(await buildPrograms(say));
  const parameters = Object.fromEntries(options.parameter.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
  return [
    ...own.filter(({ name }) => options.subject.length === 0 || options.subject.includes(name)),
    ...options.against.map((line, at) => commandSubject(at === 0 ? 'against' : `against ${at + 1}`, line, parameters)),
    ...(await Promise.all(options.endpoint.map((endpoint) => endpointSubject(endpoint, parameters)))),
  ];
}

const workplace = await createWorkplace();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void workplace.close().finally(() => process.exit(130)));
}
try {
  const results = await bench(workplace);
  process.stdout.write(
    options.json ? `${JSON.stringify(results, undefined, 2)}\n` : report(results, process.stdout.isTTY === true),
  );
} finally {
  await workplace.close();
}
