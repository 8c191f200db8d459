/** `ctl stage`, `publish`, `unpublish`, `unstage`, `stats`, `node-expand`: what an orchestrator's node agent does. */
import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { services } from '../../generated/services.js';
import { collectPairs, type Pairs, readSecrets } from '../pairs.ts';
import { type CapabilityOptions, capabilityFrom, capacityFrom } from './arguments.ts';
import { volumeContext } from './find-volume.ts';
import type { Run, Session } from './session.ts';
import { statsShape } from './shapes.ts';
import { sizeText, statsText } from './texts.ts';
import { secretHelp, withCapability } from './volume-options.ts';

const { Node } = services;

interface UseOptions extends CapabilityOptions {
  readonly context?: Pairs;
  readonly publishContext?: Pairs;
  readonly secret?: Pairs;
}

interface PublishOptions extends UseOptions {
  readonly staging?: string;
  readonly readonly?: boolean;
}

interface PathOptions {
  readonly staging?: string;
  readonly size?: string;
  readonly secret?: Pairs;
}

export function defineNodeCommands(ctl: Command, run: Run): void {
  withUse(ctl.command('stage').argument('<id>').argument('<path>', 'the staging directory, made when it is missing'))
    .description('Prepare a volume on this node')
    .action((id: string, path: string, options: UseOptions, command: Command) =>
      run(command, (session) => stage(session, id, resolve(path), options)),
    );
  withUse(ctl.command('publish').argument('<id>').argument('<target>', 'where the volume is to appear'))
    .description('Mount a volume at a path')
    .option('--staging <path>', 'where it was staged')
    .option('--readonly', 'not to be written to')
    .action((id: string, target: string, options: PublishOptions, command: Command) =>
      run(command, (session) => publish(session, id, resolve(target), options)),
    );
  ctl
    .command('unpublish')
    .description('Undo publish')
    .argument('<id>')
    .argument('<target>')
    .action((id: string, target: string, _options: unknown, command: Command) =>
      run(command, async (session) => {
        const targetPath = resolve(target);
        await session.call(`unpublishing ${id}`, Node.NodeUnpublishVolume, { volumeId: id, targetPath });
        session.show({ id, path: targetPath }, `unpublished ${id} from ${targetPath}\n`);
      }),
    );
  ctl
    .command('unstage')
    .description('Undo stage')
    .argument('<id>')
    .argument('<path>', 'the staging directory')
    .action((id: string, path: string, _options: unknown, command: Command) =>
      run(command, async (session) => {
        const stagingTargetPath = resolve(path);
        await session.call(`unstaging ${id}`, Node.NodeUnstageVolume, { volumeId: id, stagingTargetPath });
        session.show({ id, path: stagingTargetPath }, `unstaged ${id} from ${stagingTargetPath}\n`);
      }),
    );
  ctl
    .command('stats')
    .description('How full a volume is')
    .argument('<id>')
    .argument('<path>', 'where it is published or staged')
    .option('--staging <path>', 'where it was staged')
    .action((id: string, path: string, options: PathOptions, command: Command) =>
      run(command, (session) => stats(session, id, resolve(path), options)),
    );
  ctl
    .command('node-expand')
    .description('Grow the file system on an expanded volume')
    .argument('<id>')
    .argument('<path>', 'where it is published or staged')
    .option('--staging <path>', 'where it was staged')
    .option('--size <size>', 'the size it was expanded to')
    .option('--secret <key=value>', secretHelp, collectPairs)
    .action((id: string, path: string, options: PathOptions, command: Command) =>
      run(command, (session) => expand(session, id, resolve(path), options)),
    );
}

function withUse(command: Command): Command {
  return withCapability(command)
    .option('--context <key=value>', 'the volume’s context; without it the plugin is asked (repeatable)', collectPairs)
    .option('--publish-context <key=value>', 'what ControllerPublishVolume gave (repeatable)', collectPairs)
    .option('--secret <key=value>', secretHelp, collectPairs);
}

async function useOf(session: Session, id: string, options: UseOptions) {
  return {
    volumeId: id,
    volumeCapability: capabilityFrom(options),
    volumeContext: await volumeContext(session, id, options.context),
    publishContext: options.publishContext ?? {},
    secrets: await readSecrets(options.secret),
  };
}

async function stage(session: Session, id: string, path: string, options: UseOptions): Promise<void> {
  const request = { ...(await useOf(session, id, options)), stagingTargetPath: path };
  await makeDirectory(session, path);
  await session.call(`staging ${id}`, Node.NodeStageVolume, request);
  session.show({ id, path }, `staged ${id} at ${path}\n`);
}

async function publish(session: Session, id: string, path: string, options: PublishOptions): Promise<void> {
  const request = {
    ...(await useOf(session, id, options)),
    targetPath: path,
    stagingTargetPath: options.staging === undefined ? '' : resolve(options.staging),
    readonly: options.readonly === true,
  };
  await makeDirectory(session, dirname(path));
  await session.call(`publishing ${id}`, Node.NodePublishVolume, request);
  session.show({ id, path }, `published ${id} at ${path}\n`);
}

/** The specification has the orchestrator make the staging directory and the target's parent. */
async function makeDirectory(session: Session, path: string): Promise<void> {
  if (session.target.isLocal) await mkdir(path, { recursive: true, mode: 0o700 });
}

async function stats(session: Session, id: string, path: string, options: PathOptions): Promise<void> {
  const answer = await session.call(`measuring ${id}`, Node.NodeGetVolumeStats, {
    volumeId: id,
    volumePath: path,
    stagingTargetPath: options.staging === undefined ? '' : resolve(options.staging),
  });
  const shown = statsShape(answer);
  session.show(shown, statsText(shown, session));
}

async function expand(session: Session, id: string, path: string, options: PathOptions): Promise<void> {
  const { capacityBytes } = await session.call(`expanding ${id}`, Node.NodeExpandVolume, {
    volumeId: id,
    volumePath: path,
    stagingTargetPath: options.staging === undefined ? '' : resolve(options.staging),
    capacityRange: capacityFrom(options.size, undefined),
    secrets: await readSecrets(options.secret),
  });
  const shown = { id, path, ...(capacityBytes > 0 && { capacityBytes }) };
  session.show(shown, `expanded ${id} at ${path}${capacityBytes > 0 ? ` to ${sizeText(capacityBytes)}` : ''}\n`);
}
