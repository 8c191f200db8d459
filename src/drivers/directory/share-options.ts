/** The configuration block of a driver whose base path is on a server: `nfs`, `smb`, `lustre`. */
import * as v from 'valibot';
import { secret } from '../../config/secret.ts';
import { directoryEntries } from './options.ts';

const credentials = v.object({
  username: v.string(),
  password: v.optional(secret(v.string())),
  domain: v.optional(v.string()),
});

export const shareEntries = {
  ...directoryEntries,
  /** The server as the nodes reach it. */
  shareHost: v.pipe(
    v.string('the name or address of the server'),
    v.trim(),
    v.nonEmpty('the name or address of the server'),
  ),
  /**
   * How the share comes to `controllerBasePath`. `never`: somebody mounts it there. `auto`: it is mounted there when it is not. `local`:
   * `controllerBasePath` is the server's own folder, on this machine.
   */
  controllerMount: v.optional(v.picklist(['never', 'auto', 'local']), 'never'),
  /** What the table of mounts calls the folder at `controllerBasePath`, where that is not the share as nodes mount it: `nas-2:/export/csi`. */
  controllerMountSource: v.optional(v.pipe(v.string(), v.nonEmpty())),
  /** Options of that mount. */
  controllerMountOptions: v.optional(v.array(v.string())),
  /** Whom the server is to take this machine for (SMB). */
  controllerMountCredentials: v.optional(credentials),
} as const;

const block = v.object(shareEntries);

/** The block after validation. */
export type ShareOptions = v.InferOutput<typeof block>;
