import type { CallContext } from '../core/call.ts';
import type { Attachment, Share } from './attachers/attacher.ts';
import { runMount } from './mount-command.ts';
import type { Mount } from './mount-table.ts';
import { type Hooks, servers } from './servers.ts';
import { shareFailure } from './share-failure.ts';
import { serverKey } from './share-source.ts';
import type { NodeTools } from './tools.ts';
import type { Wanted, WantedOptions } from './wanted.ts';

type MountAttachment = Extract<Attachment, { type: 'mount' }>;
type CommandAttachment = Extract<Attachment, { type: 'command' }>;

/** Something mount(8) knows by its type: a share of a server, or a dataset. Or what a program of its own mounts. */
export function wantShare(
  tools: NodeTools,
  attachment: MountAttachment | CommandAttachment,
  options: WantedOptions,
): Wanted {
  const { source, fsType } = attachment;
  const { share } = attachment.type === 'mount' ? attachment : {};
  const shower = attachment.type === 'command' ? attachment : share;
  const mounting = share?.mounting(options.flags) ?? { options: ownOptions(attachment, options) };
  const all = [...mounting.options, ...(options.readonly ? ['ro'] : [])];

  async function mount(call: CallContext, place: string): Promise<void> {
    if (attachment.type === 'command') {
      const command = attachment.mounting(place, all);
      await call.waitingFor(`\`${command.program}\` of ${source}`, () => tools.run(call, command));
      return;
    }
    const env = { ...attachment.env, ...mounting.env };
    const work = (hooks?: Hooks) => runMount(call, tools, { source, place, fsType, env, options: all, ...hooks });
    await (share ? mountShare(call, share, source, all, work) : work());
  }

  return {
    title: source,
    on: 'directory',
    key: `${fsType} ${source}`,
    readonly: options.readonly,
    flags: mounting.options.filter((option) => !isIgnored(fsType, option)),
    matches: (found) => shower?.shownBy(found) ?? isOfSource(found, source),
    mount: (call, _table, place) => mount(call, place),
  };
}

function ownOptions(attachment: MountAttachment | CommandAttachment, { flags }: WantedOptions): readonly string[] {
  return attachment.type === 'mount' ? [...attachment.options, ...flags] : flags;
}

async function mountShare(
  call: CallContext,
  share: Share,
  source: string,
  options: readonly string[],
  work: (hooks: Hooks) => Promise<void>,
): Promise<void> {
  await servers.ask(call, serverKey(share, options), 'mount', async (hooks) => {
    try {
      await work(hooks);
    } catch (error) {
      throw call.signal.aborted ? error : shareFailure(share.family, source, error);
    }
  });
}

/** mount.cifs takes these and forgets them. */
function isIgnored(fsType: string, option: string): boolean {
  return fsType === 'cifs' && /^(no)?(dir|rel)?atime$/.test(option);
}

/** The kernel may leave out a slash at the end. */
function isOfSource(mount: Mount, source: string): boolean {
  return withoutSlash(mount.source) === withoutSlash(source) && mount.root === '/';
}

function withoutSlash(source: string): string {
  return source.replace(/(.)\/+$/, '$1');
}
