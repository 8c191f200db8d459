/** Whether what is mounted here is seen outside: mount_namespaces(7). */
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('mounts');

interface Place {
  readonly name: string;
  readonly path: string;
  /** An orchestrator hands volumes on from there. */
  readonly publishes: boolean;
}

type Looks = Pick<Inspection, 'mounts' | 'files' | 'env' | 'stateDirectory' | 'hostRoot' | 'endpoints'>;

/** Within a managed plugin, Docker gives the server a socket there. */
const pluginSocket = /^(unix:(\/\/)?)?\/run\/docker\/plugins\//;

export async function checkPropagation(inspection: Looks): Promise<readonly Finding[]> {
  const found = placesOf(inspection).map(async (place) => {
    const facts = await inspection.files.look(place.path).catch(() => undefined);
    return facts?.kind === 'directory' ? [judge(inspection, place, facts.path)] : [];
  });
  return (await Promise.all(found)).flat();
}

function placesOf({ env, stateDirectory, hostRoot, endpoints }: Looks): readonly Place[] {
  return [
    { name: 'root directory', path: '/', publishes: false },
    { name: 'kubelet’s directory', path: '/var/lib/kubelet', publishes: true },
    ...['/opt/nomad/data', '/var/lib/nomad', '/var/nomad', '/nomad/data'].map((path) => ({
      name: 'Nomad’s directory',
      path,
      publishes: true,
    })),
    ...(env.NOMAD_TASK_DIR ? [{ name: 'Nomad’s directory', path: '/local/csi', publishes: true }] : []),
    ...(endpoints.some(({ text }) => pluginSocket.test(text))
      ? [{ name: 'Docker’s plugin directory', path: '/data', publishes: true }]
      : []),
    { name: 'state directory', path: stateDirectory, publishes: false },
    ...(hostRoot === '/' ? [] : [{ name: 'host’s root', path: hostRoot, publishes: false }]),
  ];
}

function judge({ mounts }: Looks, { name, path, publishes }: Place, real: string): Finding {
  const mount = mounts.covering(real);
  const where = mount && mount.mountPoint !== path ? `${path} (on ${mount.mountPoint})` : path;
  if (mount?.peerGroup !== undefined)
    return finding('ok', name, `${where} is shared: mounts made there are seen outside`);
  const kind = mount?.master === undefined ? 'private' : 'only follows the host’s mounts';
  const detail = `${where} is ${kind}: mounts made there are not seen outside`;
  if (!publishes) return finding('note', name, detail);
  const advice =
    'Kubernetes: mountPropagation: Bidirectional; Docker and Nomad: rshared; systemd: no PrivateMounts=; host: mount --make-rshared /';
  return finding('warning', name, detail, advice);
}
