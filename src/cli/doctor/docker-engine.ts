/** Docker on this machine, whose cluster volumes do not work in every version. */
import { asCallError } from '../../core/errors.ts';
import { bounded } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';
import { findVersion } from './programs.ts';

const finding = about('docker');

const limitMs = 2000;

const sockets = ['/var/run/docker.sock', '/run/docker.sock'] as const;

type Looks = Pick<Inspection, 'files' | 'hostRoot' | 'httpGet' | 'locate' | 'run' | 'call'>;

/** Nothing where there is no Docker. */
export async function checkDocker(inspection: Looks): Promise<readonly Finding[]> {
  const socket = await findSocket(inspection);
  if (socket === undefined) return byProgram(inspection);
  try {
    const body = await bounded(limitMs, `${socket}`, inspection.httpGet(socket, '/version'));
    const answer: unknown = JSON.parse(body);
    const { Version, Components } = answer as { Version?: unknown; Components?: readonly { Name?: unknown }[] };
    const engine = String(Components?.[0]?.Name ?? 'Engine');
    if (/podman/i.test(engine)) return [finding('note', 'engine', `Podman ${Version}: it has no Swarm`)];
    return [judge(String(Version), `Docker ${Version}, at ${socket}`)];
  } catch (error) {
    const advice = 'see whether dockerd runs (systemctl status docker), and whether this user may talk to it';
    return [finding('warning', 'engine', `${socket}: ${asCallError(error).message}`, advice)];
  }
}

async function findSocket({ files, hostRoot }: Looks): Promise<string | undefined> {
  for (const path of [...sockets, ...sockets.map((one) => hostRoot + one)]) {
    const facts = await files.look(path).catch(() => undefined);
    if (facts?.kind === 'socket') return facts.path;
  }
  return undefined;
}

async function byProgram({ locate, run, call }: Looks): Promise<readonly Finding[]> {
  const located = await locate('dockerd');
  if (located.strategy === undefined) return [];
  try {
    const { stdout } = await run(call, { program: 'dockerd', args: ['--version'], timeoutMs: limitMs });
    const version = findVersion(stdout);
    return version === undefined ? [] : [judge(version, `Docker ${version}, which does not run or is not seen here`)];
  } catch {
    return [finding('note', 'engine', `${located.file} is there, but it does not tell its version`)];
  }
}

/** Cluster volumes came with 23.0; from 26.0 to 28.1 no CSI plugin works (moby/moby 48133), which 28.2 mended (49961). */
function judge(version: string, detail: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (!/^\d+\.\d+/.test(version)) return finding('note', 'engine', `${detail}: a version that is not understood`);
  if (major >= 26 && (major < 28 || (major === 28 && minor < 2))) {
    return finding(
      'warning',
      'engine',
      `${detail}: Swarm cannot use any CSI plugin with 26.0 to 28.1 ("does not implement PluginAddr")`,
      'go to 28.2 or newer, or stay with 25; volumes of "docker volume create" work all the same',
    );
  }
  if (major < 23) return finding('note', 'engine', `${detail}: Swarm knows cluster volumes from 23.0 on`);
  return finding('ok', 'engine', detail);
}
