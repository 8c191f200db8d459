/** Where this process runs and what it may do. The server has to run likewise. */
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('privileges');

/** capabilities(7) */
const sysAdmin = 21;
const sysPtrace = 19;

type Looks = Pick<Inspection, 'files' | 'env' | 'uid' | 'modes' | 'configured' | 'mounts' | 'hostRoot'>;

export async function checkPrivileges(inspection: Looks): Promise<readonly Finding[]> {
  const { files, uid } = inspection;
  const status = (await files.read('/proc/self/status')) ?? '';
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`);
  const may = (capability: number) => ((effective >> BigInt(capability)) & 1n) === 1n;
  const container = await containerKind(inspection);
  const found = [
    uid === 0
      ? finding('ok', 'user', 'root')
      : finding(
          'note',
          'user',
          `user ${uid}, not root`,
          'run this as the user that runs the server, to see what it sees',
        ),
    mounting(inspection, may(sysAdmin)),
    finding(
      'ok',
      'container',
      container === undefined ? 'none: this process is on the host itself' : `within a container (${container})`,
    ),
  ];
  if (container !== undefined) found.push(await hostRootFinding(inspection, may(sysPtrace)));
  return found;
}

function mounting({ modes, configured }: Looks, may: boolean): Finding {
  const name = 'CAP_SYS_ADMIN';
  if (may) return finding('ok', name, 'there: volumes can be mounted');
  if (!modes.node) return finding('note', name, 'missing, and not needed for --csi-mode controller');
  const advice = 'run the server as root; in a container with privileged: true or that capability';
  return finding(
    configured.connections.length > 0 ? 'error' : 'warning',
    name,
    'missing: volumes cannot be mounted',
    advice,
  );
}

async function hostRootFinding({ files, hostRoot }: Looks, ptrace: boolean): Promise<Finding> {
  const root = await files.look(hostRoot).catch(() => undefined);
  if (root?.kind === 'directory') return finding('ok', 'host’s root', `seen at ${hostRoot}`);
  if (ptrace)
    return finding(
      'note',
      'host’s root',
      `not at ${hostRoot}; programs of the host are reached by nsenter if its processes are seen here`,
    );
  return finding(
    'note',
    'host’s root',
    `not at ${hostRoot}: only the programs of this container are there`,
    `mount the host’s / at ${hostRoot}, recursively and with shared propagation, to use the host’s own`,
  );
}

/** What kind of container this process is in; undefined: none that shows. */
async function containerKind({ files, env, mounts }: Looks): Promise<string | undefined> {
  if (env.KUBERNETES_SERVICE_HOST) return 'Kubernetes';
  const looks = await Promise.all(
    ['/.dockerenv', '/run/.containerenv'].map((path) => files.look(path).catch(() => undefined)),
  );
  if (looks[0]) return 'Docker';
  if (looks[1]) return 'Podman';
  const groups = (await files.read('/proc/self/cgroup').catch(() => undefined)) ?? '';
  const named = /docker|kubepods|containerd|libpod|lxc/.exec(groups)?.[0];
  if (named !== undefined) return named;
  if (env.NOMAD_ALLOC_ID && mounts.at('/')?.fsType === 'overlay') return 'Nomad';
  return mounts.at('/')?.fsType === 'overlay' ? 'its root is an overlay' : undefined;
}
