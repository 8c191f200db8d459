/**
 * Mounting the share where the controller works on it (`controllerMount: auto`), by the same code that mounts volumes on nodes.
 *
 * It is unmounted when the last driver of this process that has used it there is closed, whoever mounted it: a killed process may have. Another process
 * that still works there holds it, and then it stays.
 */
import type { CallContext } from '../../core/call.ts';
import { detachedContext } from '../../core/call.ts';
import { CallError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { VolumeContext } from '../../core/volume.ts';
import { attachers } from '../../node/attachers/index.ts';
import { ensureMounted } from '../../node/ensure-mounted.ts';
import { withLock } from '../../node/keyed-lock.ts';
import { splitFlags } from '../../node/mount-options.ts';
import { preparePlace } from '../../node/paths.ts';
import type { NodeTools } from '../../node/tools.ts';
import { unmountAll } from '../../node/unmount.ts';
import { wantShare } from '../../node/want-share.ts';
import { createOutage } from './outage.ts';
import type { ShareOptions } from './share-options.ts';
import type { ShareSight } from './share-sight.ts';

export interface ShareMountOptions {
  readonly place: string;
  /** The share as a volume's context names one. */
  readonly context: VolumeContext;
  readonly flags: readonly string[];
  readonly credentials: ShareOptions['controllerMountCredentials'];
  readonly sight: ShareSight;
  /** For people. */
  readonly title: string;
  readonly tools: NodeTools;
  readonly log: Logger;
}

export interface ShareMount {
  /** Mounts the share, in place of what is dead there, unless `isThere` says that nothing is to be done. */
  ensure(call: CallContext, isThere: () => Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

/** The places where shares are mounted, with the drivers that use them and what each has there. After a change of configuration there are two for a while. */
const users = new Map<string, Map<symbol, string>>();

/** Milliseconds for unmounting when the driver is closed. */
const closeLimitMs = 5000;

export function createShareMount(options: ShareMountOptions): ShareMount {
  const { place, context, sight, title, tools, log } = options;
  const self = Symbol(title);
  const outage = createOutage(title);
  const lockKey = `share ${place}`;

  async function mount(call: CallContext): Promise<void> {
    const table = await tools.readTable();
    const attacher = attachers[context.node_attach_driver ?? '']?.(tools);
    if (!attacher) throw new CallError('UNIMPLEMENTED', `${title} cannot be mounted by this version`);
    const secrets = secretsOf(options.credentials);
    const mountFlags = options.flags;
    const capability = {
      type: 'mount',
      mode: 'MULTI_NODE_MULTI_WRITER',
      fsType: '',
      mountFlags,
      mountGroup: '',
    } as const;
    const itsCall = { ...call, secrets };
    const attachment = await attacher.attach(itsCall, { volumeId: '', context, publishContext: {}, capability, table });
    if (attachment.type !== 'mount') throw new CallError('INTERNAL', `${title} is not something to mount`);
    const wanted = wantShare(tools, attachment, { readonly: false, flags: splitFlags(mountFlags) });
    await ensureMounted(itsCall, tools, table, wanted, await preparePlace(call, tools, table, place));
    log.info('mounted the share for the controller', { share: title, path: place });
  }

  /** Its own former share may be mounted there until the last call that uses it has ended. */
  async function requireVacant(): Promise<void> {
    const former = [...(users.get(place)?.values() ?? [])].find((one) => one !== title);
    if (former === undefined || (await tools.readTable()).at(place) === undefined) return;
    throw new CallError(
      'UNAVAILABLE',
      `${title} cannot be mounted at ${place} while ${former} is used there; it is unmounted when nothing uses it any more`,
    );
  }

  return {
    ensure(call, isThere) {
      users.set(place, (users.get(place) ?? new Map<symbol, string>()).set(self, title));
      // Nobody may unmount it between the look and the use.
      return withLock(lockKey, call.signal, async () => {
        if (await isThere()) return;
        await requireVacant();
        outage.throwIfPausing();
        try {
          await mount(call);
          outage.end();
        } catch (error) {
          if (!call.signal.aborted) outage.begin(error instanceof Error ? error.message : String(error));
          throw error;
        }
      });
    },
    async close() {
      const signal = AbortSignal.timeout(closeLimitMs);
      await withLock(lockKey, signal, async () => {
        const all = users.get(place);
        if (!all?.delete(self) || [...all.values()].includes(title)) return;
        if (all.size === 0) users.delete(place);
        const table = await tools.readTable();
        if (table.at(place) === undefined) return;
        const call = detachedContext(log, signal);
        if ((await sight.at(call, table, place)).is === 'share') await unmountAll(call, tools, table, place);
      }).catch((error: unknown) => {
        log.warn('the share stays mounted', { share: title, path: place, error });
      });
    },
  };
}

/** By the names that a node gets them under. */
function secretsOf(credentials: ShareMountOptions['credentials']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(credentials ?? {}).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
}
