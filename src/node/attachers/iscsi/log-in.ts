import { CommandFailed } from '../../../backends/exec/command-failed.ts';
import type { ProgramPlace } from '../../../backends/exec/run.ts';
import { type CallContext, throwIfOver } from '../../../core/call.ts';
import { asCallError, CallError } from '../../../core/errors.ts';
import type { NodeTools } from '../../tools.ts';
import { daemonGone, exitCodeOf, exitCodes, isDaemonGone } from './exit-codes.ts';
import { type LoginSettings, loginSettings } from './login-settings.ts';
import { isMarked } from './node-record.ts';
import { isSamePortal, type Portal, portalText } from './portal.ts';
import { forgetTemplate, prepareRecord } from './prepare-record.ts';
import { whyUnreachable } from './probe-portals.ts';
import { recordsOf, removeRecord } from './record-files.ts';
import type { IscsiVolume } from './volume.ts';

export interface LoginFailure {
  readonly portal: Portal;
  readonly error: CallError;
}

/** Where iscsiadm does its work. */
export async function iscsiPlace(tools: NodeTools): Promise<ProgramPlace> {
  return (await tools.run.placeOf?.('iscsiadm')) ?? { root: '/', ownNetwork: true };
}

/**
 * Logs in at portals: at all of them side by side, or only at the first one that works. Gives those that did not work; throws only what holds for
 * all of them.
 */
export async function logIn(
  call: CallContext,
  tools: NodeTools,
  volume: IscsiVolume,
  portals: readonly Portal[],
  which: 'all' | 'first',
): Promise<readonly LoginFailure[]> {
  const place = await iscsiPlace(tools);
  const settings = loginSettings(call.secrets, volume.context);
  const canProbe = place.ownNetwork && volume.interface === undefined;
  const failures: LoginFailure[] = [];
  const reachable: Portal[] = [];
  await call.waitingFor(`the portals ${portals.map(portalText).join(', ')}`, async () => {
    const reasons = canProbe ? await whyUnreachable(portals, call.signal, which) : [];
    for (const [index, portal] of portals.entries()) {
      const why = reasons[index];
      if (why === undefined) reachable.push(portal);
      else failures.push({ portal, error: new CallError('UNAVAILABLE', why) });
    }
  });
  throwIfOver(call.signal);

  const enter = (portal: Portal) => logInAt(call, tools, place.root, volume, portal, settings);
  if (which === 'all') {
    const results = await Promise.all(reachable.map(enter));
    return [...failures, ...results.filter((failure) => failure !== undefined)];
  }
  for (const portal of reachable) {
    const failure = await enter(portal);
    if (!failure) break;
    failures.push(failure);
  }
  return failures;
}

async function logInAt(
  call: CallContext,
  tools: NodeTools,
  root: string,
  volume: IscsiVolume,
  portal: Portal,
  settings: LoginSettings,
): Promise<LoginFailure | undefined> {
  const prepareAndEnter = async () => {
    await prepareRecord(call, tools, root, volume, portal, settings);
    await runLogin(call, tools, volume, portal);
  };
  try {
    await prepareAndEnter().catch(async (error: unknown) => {
      if (exitCodeOf(error) !== exitCodes.noRecord) throw error;
      // iscsiadm looks for its records elsewhere than it did before.
      forgetTemplate(root);
      await removeMarked(root, volume, portal);
      await prepareAndEnter();
    });
    return undefined;
  } catch (error) {
    throwIfOver(call.signal);
    const failed = explain(error, volume);
    if (isDaemonGone(error)) {
      // Without iscsid, iscsiadm does not know what iscsid.conf says, and makes records that say something else.
      forgetTemplate(root);
      await removeMarked(root, volume, portal);
    }
    return { portal, error: failed };
  }
}

async function runLogin(call: CallContext, tools: NodeTools, volume: IscsiVolume, portal: Portal): Promise<void> {
  const by = volume.interface ? ['-I', volume.interface] : [];
  const args = ['-m', 'node', '-T', volume.iqn, '-p', portalText(portal), ...by, '-l'];
  await call.waitingFor(`\`iscsiadm\` to log in to ${volume.iqn} at ${portalText(portal)}`, () =>
    tools.run(call, {
      program: 'iscsiadm',
      args,
      timeoutMs: tools.limits.iscsi,
      accept: [0, exitCodes.loggedInAlready],
    }),
  );
}

async function removeMarked(root: string, volume: IscsiVolume, portal: Portal): Promise<void> {
  for (const record of await recordsOf(root, volume.iqn)) {
    if (isMarked(record.text) && isSamePortal(record.portal, portal)) await removeRecord(record);
  }
}

function explain(error: unknown, volume: IscsiVolume): CallError {
  const options = { cause: error };
  if (isDaemonGone(error)) return daemonGone(error);
  switch (exitCodeOf(error)) {
    case exitCodes.notAuthorized:
      return new CallError(
        'UNAUTHENTICATED',
        'the target does not take the credentials: look at the secrets node-db.node.session.auth.*, and whether this initiator may log in',
        options,
      );
    case exitCodes.loginRefused:
      return new CallError(
        'FAILED_PRECONDITION',
        'the login failed for good: there is no such target, or it does not prove to know the secret node-db.node.session.auth.password_in',
        options,
      );
    default: {
      if (!(error instanceof CommandFailed)) return asCallError(error);
      const [, reported] = /initiator reported error \(\d+ - ([^)]*)\)/.exec(error.stderr) ?? [];
      return new CallError('UNAVAILABLE', `does not let log in to ${volume.iqn}: ${reported ?? error.stderr}`, options);
    }
  }
}
