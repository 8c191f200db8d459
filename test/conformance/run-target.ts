/** One target of the conformance test, from an empty folder to an empty folder. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BackgroundProgram, startProgram } from './background-program.ts';
import { runSanity, type Spec } from './csi-sanity.ts';
import { filesBelow, mountsBelow, removeFolder } from './leftovers.ts';
import type { Program } from './programs.ts';
import type { Target } from './targets.ts';

export interface TargetRun {
  readonly target: Target;
  readonly program: Program;
  readonly sanity: string;
  /** Leaves the folder behind, with configuration, log and report. */
  readonly keep: boolean;
  readonly focus?: string | undefined;
  /** Told how to end this run early and leave nothing behind. */
  readonly onStart: (abort: () => Promise<void>) => void;
}

export interface TargetResult {
  readonly specs: readonly Spec[];
  /** What went wrong besides specs: an exit code, a mount or a file left behind. */
  readonly complaints: readonly string[];
  readonly folder: string;
  /** The end of the program's log. */
  readonly log: string;
  readonly milliseconds: number;
}

const execute = promisify(execFile);

/** What the folder may hold when all volumes are deleted and the program has stopped. */
const expectedFiles = [
  /^(local-hostpath|switchboard|connections\/local)\.yaml$/,
  /^(connections|volumes|sanity|state)$/,
  // Nothing is remembered of volumes that were staged.
  /^state\/(staged|servers)$/,
  /^sanity\/(parameters\.yaml|report\.json|output\.txt)$/,
  /^volumes\/(v|s|\.switchboard(\/(v|s|p|tmp))?)$/,
  /^log$/,
];

/** Throws when the program does not become ready or csi-sanity does not run. */
export async function runTarget(run: TargetRun): Promise<TargetResult> {
  const started = performance.now();
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  let server: BackgroundProgram | undefined;
  const cleanUp = async () => {
    await server?.stop(2000);
    if (!run.keep) await removeFolder(folder);
  };
  run.onStart(cleanUp);
  try {
    const socket = join(folder, 'csi.sock');
    const config = await run.target.configure(folder);
    const args = ['serve', '--driver-config-file', config, '--server-socket', socket, '--csi-name', 'sanity.csi'];
    const env = { SWITCHBOARD_STATE_DIR: join(folder, 'state') };
    server = await startProgram([...run.program, ...args], { logFile: join(folder, 'log'), env });
    await ready(server, run.program, socket);
    await mkdir(join(folder, 'sanity'));
    const { specs, output } = await runSanity({
      program: run.sanity,
      endpoint: `unix://${socket}`,
      folder: join(folder, 'sanity'),
      parameters: run.target.parameters,
      focus: run.focus,
    });
    await writeFile(join(folder, 'sanity/output.txt'), output);
    const complaints = await stopped(server, folder);
    return { specs, complaints, folder, log: await server.logTail(), milliseconds: performance.now() - started };
  } finally {
    await cleanUp();
  }
}

/** Waits as an orchestrator would: with the probe command. */
async function ready(server: BackgroundProgram, [program, ...args]: Program, socket: string): Promise<void> {
  let hasEnded = false;
  server.ended.then(() => {
    hasEnded = true;
  });
  const giveUp = Date.now() + 30_000;
  let trouble: unknown;
  while (!hasEnded && Date.now() < giveUp) {
    try {
      await execute(program as string, [...args, 'probe', '--csi-address', `unix://${socket}`]);
      return;
    } catch (error) {
      trouble = error;
    }
  }
  const what = hasEnded ? 'ended' : `was not ready after 30 s (${String(trouble)})`;
  throw new Error(`the program ${what}:\n${await server.logTail()}`);
}

async function stopped(server: BackgroundProgram, folder: string): Promise<string[]> {
  const early = await Promise.race([server.ended, Promise.resolve('running' as const)]);
  const { code, signal } = await server.stop();
  const mounts = await mountsBelow(folder);
  const files = mounts.length > 0 ? [] : await filesBelow(folder, expectedFiles);
  return [
    ...(early === 'running' ? [] : ['it ended during the test']),
    ...(code === 0 ? [] : [`it ended with ${signal ?? `exit code ${code}`}, not with exit code 0`]),
    ...mounts.map((path) => `mount left behind: ${path}`),
    ...files.map((path) => `left behind: ${path}`),
  ];
}
