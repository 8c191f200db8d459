/** Runs csi-sanity, the conformance suite of kubernetes-csi, against an endpoint. */
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface SanityRun {
  readonly program: string;
  /** Such as `unix:///tmp/x/csi.sock`. */
  readonly endpoint: string;
  /** An empty folder for mount points, parameters and the report. */
  readonly folder: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** Only specs whose full name fits this regular expression. */
  readonly focus?: string | undefined;
}

export type SpecState = 'passed' | 'failed' | 'pending' | 'skipped';

export interface Spec {
  readonly name: string;
  readonly state: SpecState;
  /** Why it was skipped or how it failed; otherwise empty. */
  readonly message: string;
}

export interface SanityResult {
  readonly specs: readonly Spec[];
  /** What the suite printed. */
  readonly output: string;
}

const gibibyte = 2 ** 30;

/** Resolves with every spec's result, whether or not some failed. Throws when the suite ended without a report. */
export async function runSanity(run: SanityRun): Promise<SanityResult> {
  const { folder } = run;
  const parameterFile = join(folder, 'parameters.yaml');
  const reportFile = join(folder, 'report.json');
  await writeFile(parameterFile, JSON.stringify(run.parameters));
  const output = await outputOf(run.program, [
    `-csi.endpoint=${run.endpoint}`,
    `-csi.mountdir=${join(folder, 'target')}`,
    `-csi.stagingdir=${join(folder, 'staging')}`,
    `-csi.testvolumeparameters=${parameterFile}`,
    `-csi.testsnapshotparameters=${parameterFile}`,
    `-csi.testvolumesize=${gibibyte}`,
    `-csi.testvolumeexpandsize=${2 * gibibyte}`,
    '-csi.testnodevolumeattachlimit',
    `-ginkgo.json-report=${reportFile}`,
    '-ginkgo.no-color',
    ...(run.focus === undefined ? [] : [`-ginkgo.focus=${run.focus}`]),
  ]);
  const report = await readFile(reportFile, 'utf8').catch(() => {
    throw new Error(`csi-sanity ended without a report:\n${output.slice(-4000)}`);
  });
  return { specs: specsOf(JSON.parse(report)), output };
}

/** The part of Ginkgo's JSON report that is read here. */
export type Report = readonly { readonly SpecReports: readonly SpecReport[] | null }[];

interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

/** Nodes around the specs (BeforeSuite …) count only when they fail: no spec would tell of it. */
export function specsOf(report: Report): Spec[] {
  return report
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .map((one) => ({ isSpec: one.LeafNodeType === 'It', spec: specOf(one) }))
    .filter(({ isSpec, spec }) => isSpec || spec.state === 'failed')
    .map(({ spec }) => spec);
}

function specOf({ ContainerHierarchyTexts, LeafNodeType, LeafNodeText, State, Failure }: SpecReport): Spec {
  const name = [...(ContainerHierarchyTexts ?? []), LeafNodeText || LeafNodeType].join(' ');
  const harmless: readonly SpecState[] = ['passed', 'pending', 'skipped'];
  return { name, state: harmless.find((state) => state === State) ?? 'failed', message: Failure?.Message ?? '' };
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
