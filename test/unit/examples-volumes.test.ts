/** Volumes that exist already, as the examples describe them to orchestrators: what node-manual would say of each, and of how it is used. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { idleEnvironment } from '../../src/cli/driver-from-example.ts';
import { schemaNamed } from '../../src/cli/main-config.ts';
import { parseConfig } from '../../src/config/load.ts';
import { detachedContext } from '../../src/core/call.ts';
import type { Driver } from '../../src/core/driver.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { type AccessMode, accessModes, type MountCapability } from '../../src/core/volume.ts';
import { nodeManual } from '../../src/drivers/node-manual/type.ts';
import { createWishes, mountWishes, normalised } from '../../src/frontends/docker/options.ts';
import { attachers } from '../../src/node/attachers/index.ts';
import { documentsOf, exampleFiles } from './examples-files.ts';
import { type Body, blocksWithin, parseHcl, type Value } from './hcl.ts';

/** A volume as an orchestrator is told of it. */
interface Described {
  readonly where: string;
  readonly name: string;
  readonly context: Readonly<Record<string, string>>;
  readonly capability: MountCapability;
  readonly secrets: readonly string[];
}

type Texts = Readonly<Record<string, string>>;

interface PersistentVolume {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly accessModes: readonly string[];
    readonly storageClassName: string;
    readonly claimRef: { readonly name: string };
    readonly capacity: { readonly storage: string };
    readonly mountOptions?: readonly string[];
    readonly csi: {
      readonly volumeHandle: string;
      readonly fsType?: string;
      readonly volumeAttributes: Texts;
      readonly nodeStageSecretRef?: { readonly name: string; readonly namespace: string };
    };
  };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly stringData?: Texts;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** What each attacher reads of secrets, besides `mount_flags`. */
const secretKeys: Readonly<Record<string, RegExp>> = {
  smb: /^(username|password|domain)$/,
  iscsi: /^node-db\.node\.session\.auth\.(authmethod|(username|password)(_in)?)$/,
  nvmeof: /^dhchap-(ctrl-)?secret$/,
  oneclient: /^token$/,
  objectivefs: /^env\.\w+$/,
};

const kinds = Object.keys(attachers)
  .filter((name) => name !== 'bind')
  .toSorted();
const examples = await exampleFiles();
const call = detachedContext(silentLogger);
const declaredText = examples.find(({ file }) => file === 'examples/connections/node-manual.yaml')?.text ?? '';

/** node-manual with one volume, or with those of a whole file. Throws for a key that is missing; fails for one that nobody reads. */
function manualDriver(text: string): Driver {
  const { value, warnings } = parseConfig(text, 'volumes.yaml', schemaNamed, { env: {} });
  assert.deepEqual(warnings, []);
  return nodeManual.create(value as never, idleEnvironment);
}

async function requireUsable({ name, context, capability, secrets }: Described): Promise<void> {
  const driver = manualDriver(
    stringify({ driver: 'node-manual', 'node-manual': { volumes: { [name]: { context } } } }),
  );
  await useAs(driver, name, capability);
  const known = secretKeys[context.node_attach_driver ?? ''];
  for (const key of secrets) assert.ok(key === 'mount_flags' || known?.test(key), `the secret ${key}`);
}

async function useAs(driver: Driver, name: string, capability: MountCapability) {
  const topology = { requisite: [], preferred: [] };
  const spec = { name, capacity: {}, capabilities: [capability], parameters: {}, mutableParameters: {}, topology };
  return await driver.volumes?.create(call, spec);
}

function modeOf(text: string): AccessMode {
  const mode = accessModes.find((one) => one === text);
  assert.ok(mode, text);
  return mode;
}

const kubernetesModes: Readonly<Record<string, AccessMode>> = {
  ReadWriteOnce: 'SINGLE_NODE_WRITER',
  ReadWriteMany: 'MULTI_NODE_MULTI_WRITER',
};

const onKubernetes = examples
  .filter(({ file }) => file.startsWith('examples/kubernetes/existing/'))
  .map((example) => ({ file: example.file, manifests: documentsOf(example) as unknown as readonly Manifest[] }));

function describedBy(file: string, manifests: readonly Manifest[]): Described {
  const [volume, claim, ...others] = manifests as unknown as [PersistentVolume, Manifest, ...Manifest[]];
  const { name } = volume.metadata;
  const { accessModes: modes, claimRef, capacity, mountOptions = [], csi, storageClassName } = volume.spec;
  assert.deepEqual(
    [claim.kind, claim.metadata, claim.spec],
    [
      'PersistentVolumeClaim',
      { name: claimRef.name, namespace: 'default' },
      { accessModes: modes, storageClassName, volumeName: name, resources: { requests: capacity } },
    ],
  );
  assert.equal(csi.volumeHandle, `v:manual/${name}`);
  const login = csi.nodeStageSecretRef;
  assert.deepEqual(
    others.map(({ kind, metadata }) => [kind, metadata]),
    login ? [['Secret', { ...login }]] : [],
  );
  return {
    where: file,
    name,
    context: csi.volumeAttributes,
    capability: {
      type: 'mount',
      mode: kubernetesModes[modes[0] ?? ''] ?? 'UNKNOWN',
      fsType: csi.fsType ?? '',
      mountFlags: mountOptions,
      mountGroup: '',
    },
    secrets: Object.keys(others[0]?.stringData ?? {}),
  };
}

for (const { file, manifests } of onKubernetes) {
  test(`a volume of Kubernetes: ${file}`, () => requireUsable(describedBy(file, manifests)));
}

const nomad = examples
  .filter(({ file }) => /^examples\/nomad\/(existing-.*|registered-volume)\.hcl$/.test(file))
  .map(({ file, text }) => ({ file, body: parseHcl(text) }));

function describedByNomad(file: string, body: Body): Described {
  const { id, name, external_id: handle } = body.attributes;
  const attributesOf = (type: string) => blocksWithin(body, type)[0]?.attributes ?? {};
  const { access_mode: mode, attachment_mode: way } = attributesOf('capability');
  const { fs_type: fsType = '', mount_flags: flags = [] } = attributesOf('mount_options');
  assert.deepEqual([name, way], [id, 'file-system']);
  assert.equal(String(handle).split('/')[1], name);
  return {
    where: file,
    name: String(name),
    context: texts(attributesOf('context')),
    capability: {
      type: 'mount',
      mode: modeOf(String(mode).toUpperCase().replaceAll('-', '_')),
      fsType: String(fsType),
      mountFlags: (flags as readonly Value[]).map(String),
      mountGroup: '',
    },
    secrets: Object.keys(attributesOf('secrets')),
  };
}

function texts(attributes: Readonly<Record<string, Value>>): Texts {
  return Object.fromEntries(
    Object.entries(attributes).map(([key, value]) => {
      assert.equal(typeof value, 'string', key);
      return [key, String(value)];
    }),
  );
}

for (const { file, body } of nomad) {
  test(`a volume of Nomad: ${file}`, () => requireUsable(describedByNomad(file, body)));
}

/** The options of each `docker volume create`, by the name of the volume. */
const onDocker = examples
  .filter(({ file }) => file === 'examples/docker/README.md')
  .flatMap(({ text }) => [...text.replaceAll(/\\\n\s*/g, '').matchAll(/^docker volume create -d switchboard (.*)$/gm)])
  .map(([, line = '']) => {
    const words = line.split(' ');
    const options = words.flatMap((word, index) => (words[index - 1] === '-o' ? [word.split(/=(.*)/s)] : []));
    return { name: words.at(-1) ?? '', options: normalised(Object.fromEntries(options)) };
  })
  .filter(({ options }) => options.connection === 'manual');

for (const { name, options } of onDocker) {
  test(`a volume of Docker: ${name}`, async () => {
    const { parameters } = createWishes(options);
    const others = Object.keys(options).filter(
      (key) => !/^(connection|access|fsType|mountFlags|secret\..+)$/.test(key),
    );
    assert.deepEqual(others, [], 'declared volumes take no parameters');
    const { capability, secretFiles } = mountWishes(parameters);
    const found = await useAs(manualDriver(declaredText), name, capability);
    const known = secretKeys[found?.context.node_attach_driver ?? ''];
    for (const key of Object.keys(secretFiles)) assert.match(key, known ?? /^mount_flags$/);
  });
}

test('there is a volume of each kind for each orchestrator, the same ones everywhere', async () => {
  const declared = await manualDriver(declaredText).volumes?.list?.(call, {});
  const contexts = new Map(declared?.entries.map(({ volume }) => [volume.id, volume.context]));
  const kindsOf = (all: readonly { readonly context: Texts }[]) =>
    all.map(({ context }) => context.node_attach_driver).toSorted();
  const kubernetes = onKubernetes.map(({ file, manifests }) => describedBy(file, manifests));
  const byNomad = nomad
    .map(({ file, body }) => describedByNomad(file, body))
    .filter(({ where }) => !where.includes('registered'));
  assert.deepEqual(kindsOf([...contexts.values()].map((context) => ({ context }))), kinds);
  assert.deepEqual(kindsOf(kubernetes), kinds);
  assert.deepEqual(kindsOf(byNomad), kinds);
  assert.deepEqual(onDocker.map(({ name }) => name).toSorted(), [...contexts.keys()].toSorted());
  for (const { where, name, context } of [...kubernetes, ...byNomad]) {
    assert.deepEqual(context, contexts.get(name), `${where} and the declaration`);
    assert.ok(where.includes(String(context.node_attach_driver)), where);
  }
});

test('what the examples are tested with finds mistakes', async () => {
  const good = describedBy(onKubernetes[0]?.file ?? '', onKubernetes[0]?.manifests ?? []);
  const of = (context: Texts) => requireUsable({ ...good, name: 'x', secrets: [], context });
  const nfs = { node_attach_driver: 'nfs', server: 'nas', share: '/x' };
  await of(nfs);
  await assert.rejects(of({ ...nfs, sharee: '/x' }), /unknown key sharee/);
  await assert.rejects(of({ ...nfs, share: '' }), /volume "x": the volume context has no `share`/);
  await assert.rejects(of({ ...nfs, node_attach_driver: 'nfss' }), /"nfss" of the volume context is not one of/);
  await assert.rejects(of({ node_attach_driver: 'hostpath' }), /is not absolute/);
  const iscsi = { node_attach_driver: 'iscsi', iqn: 'iqn.2003-01.org.example:x', portal: '10.0.0.1' };
  await assert.rejects(of(iscsi), /has no `lun`/);
});
