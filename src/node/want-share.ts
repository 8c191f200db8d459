import type { Attachment } from './attachers/attacher.ts';
import { runMount } from './mount-command.ts';
import type { NodeTools } from './tools.ts';
import type { Wanted, WantedOptions } from './wanted.ts';

/** Something mount(8) knows by its type: a share of a server, or a dataset. */
export function wantShare(
  tools: NodeTools,
  attachment: Extract<Attachment, { type: 'mount' }>,
  options: WantedOptions,
): Wanted {
  const { source, fsType, env } = attachment;
  const flags = [...attachment.options, ...options.flags];
  return {
    title: source,
    on: 'directory',
    key: `${fsType} ${source}`,
    readonly: options.readonly,
    flags,
    // The kernel may say nfs4 for nfs and leave out a slash at the end; fuse.x for x.
    matches: (mount) => withoutSlash(mount.source) === withoutSlash(source) && mount.root === '/',
    mount: (call, _table, place) =>
      runMount(call, tools, { source, place, fsType, env, options: [...flags, ...(options.readonly ? ['ro'] : [])] }),
  };
}

function withoutSlash(source: string): string {
  return source.replace(/(.)\/+$/, '$1');
}
