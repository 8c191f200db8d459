/** The properties of an inline volume: what the pod asks for, as far as the connection lets it. */
import { CallError } from '../../core/errors.ts';
import type { VolumeContext } from '../../core/volume.ts';

export type InlineProperties = Readonly<Record<string, { readonly value: string; readonly allowOverride: boolean }>>;

const prefix = 'property.';

/** With these a pod could get at what is not its own, unless the connection allows them by name. */
const refused: ReadonlySet<string> = new Set([
  'sharenfs',
  'sharesmb',
  'share',
  'exec',
  'setuid',
  'devices',
  'zoned',
  'quota',
  'reservation',
]);

/** The driver's own. */
const ours = /^(?:mountpoint|canmount|democratic-csi:.*|switchboard:.*)$/;

/** Throws INVALID_ARGUMENT for a property that a pod may not set. */
export function inlineProperties(
  context: VolumeContext,
  configured: InlineProperties,
): Readonly<Record<string, string>> {
  const asked = Object.entries(context).flatMap(([key, value]) =>
    key.startsWith(prefix) ? [[key.slice(prefix.length), value] as const] : [],
  );
  const defaults = Object.entries(configured).map(([name, { value }]) => [name, value] as const);
  for (const [name] of asked) requireAllowed(name, configured);
  const kept = asked.filter(([name]) => !Object.hasOwn(configured, name) || configured[name]?.allowOverride);
  return Object.fromEntries([...defaults, ...kept]);
}

function requireAllowed(name: string, configured: InlineProperties): void {
  const isName = /^[a-z0-9][a-z0-9:._-]*$/.test(name);
  if (isName && !ours.test(name) && (Object.hasOwn(configured, name) || !refused.has(name))) return;
  throw new CallError(
    'INVALID_ARGUMENT',
    `an inline volume cannot set the property ${JSON.stringify(name)}; the connection can allow some in zfs.properties`,
  );
}
