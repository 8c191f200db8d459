/** Whether this server still serves, asked from outside as far as that is possible. */
import { access } from 'node:fs/promises';
import { services } from '../generated/services.js';
import { connect } from './client.ts';
import { clientTarget } from './client-target.ts';

/** The probe's own limit in milliseconds; the caller's signal may be sooner. */
const probeLimitMs = 60_000;

/**
 * Throws when files cannot be looked at, because every thread for that is stuck on storage that does not answer, or when a unix socket of the
 * server does not answer Probe. Storage that is down is no reason: that is for its connections to say.
 */
export async function selfCheck(addresses: readonly string[], signal: AbortSignal): Promise<void> {
  await access('/');
  const address = addresses.find((one) => one.startsWith('unix://'));
  if (address === undefined) return;
  const client = await connect(clientTarget(address));
  try {
    await client.call(services.Identity.Probe, {}, { signal, timeoutMs: probeLimitMs });
  } finally {
    client.close();
  }
}
