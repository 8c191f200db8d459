/** csi-sanity in a guest, beside the program. */
import { readFile } from 'node:fs/promises';
import { type Spec, specsOf } from '../conformance/csi-sanity.ts';
import { findSanity } from '../conformance/find-sanity.ts';
import type { Guest } from './guest.ts';

export interface SanityRun {
  /** The socket of the program, in the guest. */
  readonly socket: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** Of NodeStageVolume and NodePublishVolume. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Bytes of a volume. Default: 1 MiB. */
  readonly volumeBytes?: number;
}

const path = '/usr/local/bin/csi-sanity';

/** Puts it into the guest; it is built first where it is missing. */
export async function installSanity(guest: Guest): Promise<void> {
  const found = await findSanity((line) => process.stderr.write(`${line}\n`));
  if (found === undefined) throw new Error('there is no csi-sanity');
  await guest.run(`cat >${path} && chmod +x ${path}`, { input: await readFile(found) });
}

/** Every spec with its result. */
export async function runSanity(guest: Guest, run: SanityRun): Promise<Spec[]> {
  const { socket, parameters, secrets = {}, volumeBytes = 2 ** 20 } = run;
  const folder = (await guest.run('mktemp -d /run/sanity.XXXXXX')).trim();
  const files = {
    'parameters.yaml': parameters,
    'secrets.yaml': { NodeStageVolumeSecret: secrets, NodePublishVolumeSecret: secrets },
  };
  for (const [name, content] of Object.entries(files)) {
    await guest.run(`cat >${folder}/${name}`, { input: JSON.stringify(content) });
  }
  const flags = [
    `-csi.endpoint=unix://${socket}`,
    `-csi.mountdir=${folder}/target`,
    `-csi.stagingdir=${folder}/staging`,
    `-csi.testvolumeparameters=${folder}/parameters.yaml`,
    `-csi.testsnapshotparameters=${folder}/parameters.yaml`,
    `-csi.secrets=${folder}/secrets.yaml`,
    `-csi.testvolumesize=${volumeBytes}`,
    `-csi.testvolumeexpandsize=${2 * volumeBytes}`,
    '-csi.testnodevolumeattachlimit',
    `-ginkgo.json-report=${folder}/report.json`,
    '-ginkgo.no-color',
  ];
  const { stdout } = await guest.attempt(`${path} ${flags.join(' ')}`, { timeoutMs: 1_700_000 });
  const report = await guest.attempt(`cat ${folder}/report.json`);
  if (report.code !== 0) throw new Error(`csi-sanity ended without a report:\n${stdout.slice(-4000)}`);
  return specsOf(JSON.parse(report.stdout));
}
