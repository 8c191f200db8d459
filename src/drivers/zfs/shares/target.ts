/** Shares that are made by commands on the storage's host: targets of iSCSI and subsystems of NVMe over Fabrics. */
import type { Step, StepResult } from '../../../backends/shell/steps.ts';
import { type Dataset, ownValue } from '../../../backends/zfs/dataset.ts';
import type { ZfsHost } from '../../../backends/zfs/zfs-host.ts';
import type { CallContext } from '../../../core/call.ts';
import { CallError, oneLine } from '../../../core/errors.ts';
import type { VolumeContext } from '../../../core/volume.ts';
import type { Share, ShareRequest, ShownDevice } from '../share.ts';
import type { ZfsStore } from '../store.ts';
import { type AssetNameOptions, assetName, isOfParameters, requireQualifiedName } from './asset-name.ts';

export interface Target {
  /** The last part of the qualified name, and what the backstore is called. */
  readonly name: string;
  /** IQN or NQN. */
  readonly qualifiedName: string;
  /** `/dev/zvol/…`. */
  readonly device: string;
}

/** With these codes a look ends, and it says what it saw. */
const lookCodes = { present: 0, foreign: 3, absent: 4, partial: 5 } as const;

/** A way to make targets. Its programs say little of whether they succeeded, so what they did is looked at. */
export interface TargetStrategy {
  /** Makes the target, or what is missing of it. */
  create(target: Target): readonly Step[];
  /** Removes the target, or what is left of it. */
  remove(target: Target): readonly Step[];
  /** Ends with one of `lookCodes`: whole, another volume's, not there at all, or only a part of it. */
  look(target: Target): readonly string[];
  /** Prints of everything that there is, of whomever: qualified name or `-`, name or `-`, device, with tabs between. Undefined: it cannot be listed. */
  readonly list?: readonly string[] | undefined;
}

export interface TargetShareOptions {
  readonly naming: AssetNameOptions;
  /** What is before the name: `iqn.2003-01.org.example`. */
  readonly basename: string;
  /** The user property in which the name is kept. */
  readonly property: string;
  readonly strategy: TargetStrategy;
  readonly contextOf: (qualifiedName: string) => VolumeContext;
}

/** `title` is for metrics and messages: the program's name. */
export function targetShare(
  zfs: ZfsHost,
  render: ZfsStore['render'],
  title: string,
  options: TargetShareOptions,
): Share {
  const { naming, basename, property, strategy, contextOf } = options;
  const { present, absent, partial } = lookCodes;
  const targetOf = (name: string, dataset: string): Target => ({
    name,
    qualifiedName: `${basename}:${name}`,
    device: `/dev/zvol/${dataset}`,
  });
  const nameFor = (request: ShareRequest, dataset: Dataset | undefined) =>
    (dataset && ownValue(dataset, property)) ?? assetName(naming, render, request);

  return {
    properties: {},
    wants: [property],
    check: (request) => requireQualifiedName(targetOf(assetName(naming, render, request), '').qualifiedName),
    async publish(call, request, dataset) {
      const target = targetOf(nameFor(request, dataset), request.dataset);
      const look = strategy.look(target);
      // The name is kept first: a crash in the middle leaves nothing that could not be found.
      const keep: Step = { argv: zfs.zfs('set', `${property}=${target.name}`, request.dataset) };
      const steps: readonly Step[] = [
        ...(ownValue(dataset, property) === target.name ? [] : [keep]),
        // What has this name already and is another volume's is not touched.
        { argv: look, goOn: [present, absent, partial] },
        ...strategy.create(target).map(whatever),
        { argv: look },
      ];
      const results = await zfs.run(call, title, steps as [Step, ...Step[]]);
      const last = results.at(-1) ?? results[0];
      if (results.length === steps.length && last.code === present) {
        return { context: contextOf(target.qualifiedName), properties: { [property]: target.name } };
      }
      throw notDone(zfs.host, title, `make ${target.qualifiedName}`, results);
    },
    look(request, dataset) {
      const target = targetOf(nameFor(request, dataset), request.dataset);
      return {
        step: whatever({ argv: strategy.look(target) }),
        isOf: (found) => (ownValue(found, property) ?? target.name) === target.name,
        trouble: ({ code, stdout }) =>
          code === absent || code === partial || code === lookCodes.foreign
            ? `${zfs.host} does not show it as ${target.qualifiedName}: ${oneLine(stdout)}`
            : undefined,
      };
    },
    async withdraw(call, { volumeId, dataset: name }, dataset) {
      if (dataset || !isOfParameters(naming)) {
        return await removeTarget(call, targetOf(nameFor({ volumeId, dataset: name, parameters: {} }, dataset), name));
      }
      // The parameters went with the dataset: what shows its device is looked for.
      const shown = strategy.list ? await shownDevices(call, strategy.list) : [];
      for (const one of shown) if (one.device === `/dev/zvol/${name}`) await one.remove(call);
    },
    ...(strategy.list && { shown: (call) => shownDevices(call, strategy.list ?? []) }),
  };

  async function removeTarget(call: CallContext, target: Target): Promise<void> {
    const look = strategy.look(target);
    const steps: readonly Step[] = [
      { argv: look, goOn: [present, partial] },
      ...strategy.remove(target).map(whatever),
      { argv: look },
    ];
    const results = await zfs.run(call, title, steps as [Step, ...Step[]]);
    const last = results.at(-1) ?? results[0];
    if (last.code === absent || last.code === lookCodes.foreign) return;
    throw notDone(zfs.host, title, `remove ${target.qualifiedName}`, results);
  }

  async function shownDevices(call: CallContext, list: readonly string[]): Promise<readonly ShownDevice[]> {
    const [result] = await zfs.run(call, title, [{ argv: list }]);
    if (result.code !== 0) throw notDone(zfs.host, title, 'list targets', [result]);
    const found = new Map<string, ShownDevice>();
    for (const line of result.stdout.split('\n')) {
      const [qualified = '', backstore = '', device = ''] = line.split('\t');
      if (!device.startsWith('/dev/zvol/') || (qualified !== '-' && !qualified.startsWith(`${basename}:`))) continue;
      const name = qualified === '-' ? backstore : qualified.slice(basename.length + 1);
      const target = targetOf(name, device.slice('/dev/zvol/'.length));
      const isShared = qualified !== '-' || found.get(name)?.isShared === true;
      found.set(name, { name: target.qualifiedName, device, isShared, remove: (inner) => removeTarget(inner, target) });
    }
    return [...found.values()];
  }
}

function notDone(host: string, title: string, what: string, results: readonly StepResult[]): CallError {
  const last = results.at(-1);
  const seen = oneLine(last?.stdout ?? '');
  // targetcli repeats what it was told, passwords among it.
  const lines = results.flatMap(({ stdout, stderr }) => [
    stderr,
    ...stdout.split('\n').filter((line) => !/ is now /.test(line)),
  ]);
  const said = oneLine(lines.join(' '), 300);
  const isForeign = last?.code === lookCodes.foreign;
  return new CallError(
    isForeign ? 'FAILED_PRECONDITION' : 'INTERNAL',
    `${host}: \`${title}\` did not ${what}: ${isForeign ? seen : said || seen}`,
  );
}

/** Exit codes of these programs say nothing. */
function whatever(step: Step): Step {
  return { ...step, goOn: 'any' };
}

/** Programs that rewrite a file of the whole host's targets, one at a time, whoever starts them. Waits for at most a minute. */
export function oneAtATime(zfs: ZfsHost, ...argv: readonly string[]): readonly string[] {
  return zfs.program('flock', '-w', '60', '/run/lock/switchboard-targets', ...argv);
}
