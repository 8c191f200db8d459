import type { CallContext } from '../core/call.ts';
import type { Attachment } from './attachers/attacher.ts';
import { runMount } from './mount-command.ts';
import type { NodeTools } from './tools.ts';
import type { Wanted, WantedOptions } from './wanted.ts';

/** Something mount(8) knows by its type: a share of a server, or a dataset. */
export function wantShare(
  tools: NodeTools,
  attachment: Extract<Attachment, { type: 'mount' | 'command' }>,
  options: WantedOptions,
): Wanted {
  const { source, fsType } = attachment;
  const flags = attachment.type === 'mount' ? [...attachment.options, ...options.flags] : options.flags;
  const all = [...flags, ...(options.readonly ? ['ro'] : [])];

  async function mount(call: CallContext, place: string): Promise<void> {
    if (attachment.type === 'mount') {
      return await runMount(call, tools, { source, place, fsType, env: attachment.env, options: all });
    }
    const command = attachment.mounting(place, all);
    await call.waitingFor(`\`${command.program}\` of ${source}`, () => tools.run(call, command));
  }

  return {
    title: source,
    on: 'directory',
    key: `${fsType} ${source}`,
    readonly: options.readonly,
    flags,
    // The kernel may say nfs4 for nfs and leave out a slash at the end; fuse.x for x.
    matches: (mount) => withoutSlash(mount.source) === withoutSlash(source) && mount.root === '/',
    mount: (call, _table, place) => mount(call, place),
  };
}

function withoutSlash(source: string): string {
  return source.replace(/(.)\/+$/, '$1');
}
