/** Runs csi-sanity, the conformance suite of kubernetes-csi, against an endpoint. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface SanityResult {
  readonly passed: number;
  readonly failed: number;
  readonly pending: number;
  readonly skipped: number;
  readonly output: string;
}

const gibibyte = 2 ** 30;

export interface SanityRun {
  readonly program: string;
  /** Such as `unix:///tmp/x/csi.sock`. */
  readonly endpoint: string;
  /** An empty folder for mount points and parameters. */
  readonly folder: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Resolves with the counts, whether or not specs failed. Throws when the suite ended without counting. */
export async function runSanity({ program, endpoint, folder, parameters }: SanityRun): Promise<SanityResult> {
  const parameterFile = join(folder, 'parameters.yaml');
  await writeFile(parameterFile, JSON.stringify(parameters));
  const output = await outputOf(program, [
    `-csi.endpoint=${endpoint}`,
    `-csi.mountdir=${join(folder, 'target')}`,
    `-csi.stagingdir=${join(folder, 'staging')}`,
    `-csi.testvolumeparameters=${parameterFile}`,
    `-csi.testvolumesize=${gibibyte}`,
    `-csi.testvolumeexpandsize=${2 * gibibyte}`,
    '-csi.testnodevolumeattachlimit',
    '-ginkgo.no-color',
  ]);
  const count = /(\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped/.exec(output);
  if (!count) throw new Error(`csi-sanity ended without a summary:\n${output.slice(-4000)}`);
  const [passed, failed, pending, skipped] = count.slice(1).map(Number) as [number, number, number, number];
  return { passed, failed, pending, skipped, output };
}

function outputOf(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', reject);
    child.on('close', () => resolve(output));
  });
}
