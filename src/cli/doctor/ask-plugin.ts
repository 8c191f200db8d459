import { services } from '../../generated/services.js';
import { connect } from '../client.ts';
import { clientTarget } from '../client-target.ts';
import type { PluginAnswer } from './inspection.ts';

const limitMs = 2500;

/** Asks a running plugin who it is and whether it is ready. */
export async function askPlugin(endpoint: string): Promise<PluginAnswer> {
  const client = await connect(clientTarget(endpoint));
  const patience = { signal: new AbortController().signal, timeoutMs: limitMs };
  try {
    const info = await client.call(services.Identity.GetPluginInfo, {}, patience);
    const began = performance.now();
    const { ready } = await client.call(services.Identity.Probe, {}, patience);
    const milliseconds = Math.round(performance.now() - began);
    return { name: info.name ?? '', version: info.vendorVersion ?? '', ready: ready?.value !== false, milliseconds };
  } finally {
    client.close();
  }
}
