/** The keys that the configuration blocks of all directory drivers have (`local-hostpath`, `nfs`, `smb`, `lustre`). */
import * as v from 'valibot';
import { ignored } from '../../config/ignored.ts';
import { octalMode } from '../../config/octal-mode.ts';
import { secret } from '../../config/secret.ts';

/** How snapshots are kept: as folders beside the volumes, or in a restic or kopia repository. */
export const snapshotDrivers = ['filecopy', 'restic', 'kopia'] as const;
export type SnapshotDriver = (typeof snapshotDrivers)[number];

const expectedPath = 'an absolute path';

/** An absolute path without a slash at its end. */
const absolutePath = v.pipe(
  v.string(expectedPath),
  v.regex(/^\/(?!.*\0)/s, expectedPath),
  v.transform((path) => (path === '/' ? path : path.replace(/\/+$/, '') || '/')),
);

/** The path of an SMB share: its name, and folders in it. */
export const pathOfShare = v.pipe(
  v.string('the name of a share'),
  v.regex(/^\/*[^/\0]/, 'the name of a share'),
  v.transform((path) => path.replace(/\/+$/, '')),
);

/** A user's or group's name or number. */
const account = v.pipe(
  v.union([v.pipe(v.number(), v.integer(), v.minValue(0)), v.string()], 'a name or a number'),
  v.transform(String),
);

const texts = v.array(v.string());

const environment = v.optional(v.record(v.string(), secret(v.union([v.string(), v.number(), v.boolean()]))));

const restic = v.object({
  global_flags: v.optional(texts),
  tags: v.optional(texts),
  prune: v.optional(v.union([v.boolean(), v.string(), v.number()])),
  env: environment,
});

const kopia = v.object({
  config_token: v.optional(secret(v.string())),
  global_flags: v.optional(texts),
  tags: v.optional(texts),
  env: environment,
});

const notYet = 'this version takes snapshots by filecopy only';

const snapshots = v.object({
  default_driver: v.optional(v.picklist(snapshotDrivers)),
  restic: v.optional(ignored(restic, notYet)),
  kopia: v.optional(ignored(kopia, notYet)),
});

/** Spread these into the entries of a directory driver's block. */
export const directoryEntries = {
  shareBasePath: absolutePath,
  controllerBasePath: absolutePath,
  dirPermissionsMode: v.optional(octalMode()),
  dirPermissionsUser: v.optional(account),
  dirPermissionsGroup: v.optional(account),
  snapshots: v.optional(snapshots),
} as const;

const schema = v.object(directoryEntries);

/** The keys of {@link directoryEntries} after validation. */
export type DirectoryOptions = v.InferOutput<typeof schema>;
