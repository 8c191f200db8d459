import type { CallContext } from '../../../core/call.ts';
import { asCallError, CallError } from '../../../core/errors.ts';
import { refuseInUse } from '../../device-in-use.ts';
import { refuseOpen } from '../../device-users.ts';
import { flushMultipath, multipathOf } from '../../multipath.ts';
import { poll } from '../../poll.ts';
import { whyUsed } from '../../why-used.ts';
import type { Identity } from '../attacher.ts';
import type { Connector } from './connect.ts';
import { readSubsystem } from './subsystem.ts';
import type { NamespaceName } from './target.ts';

/**
 * Ends the connections to a subsystem, unless somebody uses another of its namespaces: connections are those of all its namespaces. The namespace
 * itself must not be in use. `others` gives the namespaces that have a record. Success when there are none.
 */
export async function disconnect(
  call: CallContext,
  { tools, places }: Connector,
  { nqn, nsid }: NamespaceName,
  others: () => Promise<readonly Identity[]>,
): Promise<void> {
  const { controllers, disks } = await readSubsystem(places.sysfs, nqn);
  if (controllers.length === 0) return;
  const stay = (other: string | undefined, why: string) =>
    call.log.info('a subsystem stays connected, for another of its namespaces is in use', { nqn, nsid: other, why });
  const wanted = (await others()).find((other) => other.nqn === nqn && other.nsid !== nsid);
  if (wanted) return stay(wanted.nsid, 'a volume of this node has it');
  const refuse = async (one: CallContext, device: string) => {
    await refuseInUse(one, device);
    await refuseOpen(one, device, tools);
  };
  for (const disk of disks.filter((one) => one.nsid !== nsid)) {
    const map = await multipathOf(places.sysfs, [disk.name]);
    const onTop = map ? { name: map.device, number: map.number } : disk;
    const why = await whyUsed(call, { ...tools, sysfs: places.sysfs }, onTop, refuse);
    if (why !== undefined) return stay(disk.nsid, why);
  }
  for (const { name } of disks) {
    const map = await multipathOf(places.sysfs, [name]);
    if (map) await flushMultipath(call, tools, map);
  }
  const files = controllers.map(({ folder }) => `${folder}/delete_controller`);
  // By a child: the kernel waits for what is under way, which on a connection that is lost may take a while.
  const deletion = tools.run(call, { program: 'tee', args: files, input: '1', timeoutMs: tools.limits.nvmeof });
  const why = await call.waitingFor(`the end of the connections to ${nqn}`, () =>
    deletion.then(
      () => undefined,
      (error: unknown) => asCallError(error),
    ),
  );
  const gone = async () => {
    const left = new Set((await readSubsystem(places.sysfs, nqn)).controllers.map(({ name }) => name));
    return controllers.every(({ name }) => !left.has(name)) || undefined;
  };
  // What somebody else ended meanwhile could not be ended here, and is gone all the same.
  if (await poll(call, why ? 1000 : 5000, gone)) return;
  if (why && !/read-only|permission denied/i.test(why.message)) throw why;
  throw why
    ? new CallError(
        'FAILED_PRECONDITION',
        `${nqn} cannot be disconnected: /sys has to be writable (a privileged container)`,
      )
    : new CallError('UNAVAILABLE', `the connections to ${nqn} do not end`);
}
