/** The manifests of examples/kubernetes fit together: what one of them names, another one makes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentsOf, exampleFiles, isObject, valuesIn } from './examples-files.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [key: string]: unknown;
}

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly volumeMounts?: readonly { name: string; mountPath: string; subPath?: string; mountPropagation?: string }[];
}

interface PodSpec {
  readonly serviceAccountName?: string;
  readonly containers: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
    readonly hostPath?: { readonly path: string };
  }[];
}

const folder = 'examples/kubernetes/';
const files = (await exampleFiles()).filter(({ file }) => file.startsWith(folder));

/** Of a folder, or of one file in it. */
function manifestsIn(set: string, only = ''): readonly Manifest[] {
  return files
    .filter(({ file }) => file.startsWith(`${folder}${set}/${only}`) && !file.endsWith('kustomization.yaml'))
    .flatMap((file) => documentsOf(file) ?? []) as unknown as Manifest[];
}

const base = manifestsIn('cluster');
const sets = ['cluster', 'custom', 'node', 'attach'];
const named = (manifests: readonly Manifest[], kind: string, name: unknown) =>
  manifests.filter((one) => one.kind === kind && one.metadata.name === name);
const podSpec = (manifest: Manifest) =>
  (manifest.spec as { template?: { spec?: PodSpec } } | undefined)?.template?.spec as PodSpec | undefined;

for (const set of sets) {
  const own = manifestsIn(set);
  const all = set === 'cluster' ? base : [...own, ...base];

  test(`${set}: the files of the folder are those that its kustomization names`, () => {
    const inFolder = files.map(({ file }) => file).filter((file) => file.startsWith(`${folder}${set}/`));
    const kustomization = files.find(({ file }) => file === `${folder}${set}/kustomization.yaml`);
    assert.ok(kustomization);
    const [{ resources = [], patches = [] } = {}] = documentsOf(kustomization) as unknown as [
      { resources?: string[]; patches?: { path: string }[] },
    ];
    const names = [...resources.filter((name) => name !== '../cluster'), ...patches.map(({ path }) => path)];
    assert.deepEqual(
      [...names, 'kustomization.yaml'].sort(),
      inFolder.map((file) => file.slice(folder.length + set.length + 1)).sort(),
    );
    // A patch changes what is there.
    for (const { path } of patches) {
      for (const { kind, metadata } of manifestsIn(set, path)) {
        assert.equal(named(base, kind, metadata.name).length, 1, `${path}: ${kind} ${metadata.name}`);
      }
    }
  });

  test(`${set}: every name that is used is one that exists`, () => {
    for (const manifest of own) {
      const where = `${manifest.kind} ${manifest.metadata.name}`;
      const {
        metadata,
        roleRef,
        subjects = [],
      } = manifest as Manifest & {
        roleRef?: { kind: string; name: string };
        subjects?: { kind: string; name: string }[];
      };
      if (metadata.namespace) assert.ok(named(all, 'Namespace', metadata.namespace).length > 0, where);
      for (const { kind, name } of [...(roleRef ? [roleRef] : []), ...subjects]) {
        assert.ok(named(all, kind, name).length > 0, `${where}: ${kind} ${name}`);
      }
      const pod = podSpec(manifest);
      if (pod) checkPod(pod, all, where);
    }
  });

  test(`${set}: the plugin has one name everywhere`, () => {
    const [driver, ...others] = new Set(
      named(all, 'CSIDriver', 'org.switchboard.csi').map(({ metadata }) => metadata.name),
    );
    assert.deepEqual(others, []);
    const uses = own.flatMap((manifest) => [
      ...(manifest.kind === 'StorageClass' && manifest.provisioner ? [manifest.provisioner] : []),
      ...(manifest.kind === 'VolumeSnapshotClass' ? [manifest.driver] : []),
      ...[...valuesIn(manifest)].flatMap(({ value }) =>
        typeof value === 'string'
          ? [/^--csi-name=(.*)$/.exec(value)?.[1], /\/kubelet\/plugins\/([^/]+)/.exec(value)?.[1]].filter(Boolean)
          : [],
      ),
    ]);
    for (const use of uses) assert.equal(use, driver);
    if (set === 'cluster') assert.ok(uses.length >= 6, `${uses.length} uses`);
  });

  test(`${set}: storage classes name connections`, () => {
    const connections = named(all, 'Secret', 'switchboard-connections').flatMap(({ stringData }) =>
      Object.keys(stringData as object),
    );
    for (const { kind, metadata, parameters } of own) {
      if (kind !== 'StorageClass' || !isObject(parameters)) continue;
      assert.ok(connections.includes(`${parameters.connection}.yaml`), metadata.name);
    }
  });
}

function checkPod(pod: PodSpec, all: readonly Manifest[], where: string): void {
  if (pod.serviceAccountName) assert.ok(named(all, 'ServiceAccount', pod.serviceAccountName).length > 0, where);
  const same = all.filter((one) => `${one.kind} ${one.metadata.name}` === where);
  const volumes = same.flatMap((one) => podSpec(one)?.volumes ?? []);
  for (const { name, configMap, secret } of volumes) {
    if (configMap) assert.ok(named(all, 'ConfigMap', configMap.name).length > 0, `${where}: ${name}`);
    if (secret) assert.ok(named(all, 'Secret', secret.secretName).length > 0, `${where}: ${name}`);
  }
  for (const { name, image, volumeMounts = [] } of pod.containers) {
    assert.doesNotMatch(image ?? '', /\//, `${where}: whoever installs it says where images come from`);
    assert.match(image ?? 'patched:1', /:[\w.-]+$/, `${where}: ${name} has no version`);
    for (const mount of volumeMounts) {
      const volume = volumes.find((one) => one.name === mount.name);
      assert.ok(volume, `${where}: ${name}: ${mount.name}`);
      if (mount.subPath === undefined || !volume.configMap) continue;
      const [map] = named(all, 'ConfigMap', volume.configMap.name);
      assert.ok(Object.hasOwn(map?.data as object, mount.subPath), `${where}: ${mount.subPath}`);
    }
  }
}

test('the node mounts where pods are', () => {
  const [node] = named(base, 'DaemonSet', 'switchboard-node');
  const pod = node && podSpec(node);
  const plugin = pod?.containers.find(({ name }) => name === 'switchboard');
  const kubelet = plugin?.volumeMounts?.find(({ name }) => name === 'kubelet');
  const path = pod?.volumes?.find(({ name }) => name === 'kubelet')?.hostPath?.path;
  assert.equal(kubelet?.mountPath, path, 'the kubelet says paths of the host');
  assert.equal(kubelet?.mountPropagation, 'Bidirectional');
  assert.equal((plugin as { securityContext?: { privileged?: boolean } }).securityContext?.privileged, true);
});

test('what the node remembers of staged volumes is kept on the host', () => {
  const [node] = named(base, 'DaemonSet', 'switchboard-node');
  const pod = node && podSpec(node);
  const plugin = pod?.containers.find(({ name }) => name === 'switchboard');
  const state = plugin?.volumeMounts?.find(({ mountPath }) => mountPath === '/var/lib/switchboard');
  assert.equal(pod?.volumes?.find(({ name }) => name === state?.name)?.hostPath?.path, '/var/lib/switchboard');
});
