/** What the node plane knows of a file system that it can put on a block device. */

/** A program with its arguments. */
export interface Step {
  readonly program: string;
  readonly args: readonly string[];
  /** Exit codes that are not failures. Default: 0 only. */
  readonly accept?: readonly number[];
  /** For its standard input. */
  readonly input?: string;
}

export interface OwnOptions {
  /** Letters of options without a value. */
  readonly flags: string;
  /** Letters of options with one. */
  readonly valued: string;
  /** Names of long options, `--name` or `--name=value`. */
  readonly long?: readonly string[];
}

export interface FileSystem {
  /** Names in `fs_type` and from blkid, the first one being what mount(8) is told. */
  readonly names: readonly string[];
  /** `name` is the wanted one of {@link names}; `custom` is from `node.format.<name>.customOptions`, and from the volume. */
  make(name: string, device: string, custom: readonly string[]): Step;
  /** What a volume itself may choose for that. */
  readonly ownOptions: OwnOptions;
  /** Checks and repairs before mounting; `custom` and `after` are from `node.mount.checkFilesystem.<name>`. */
  check(device: string, custom: readonly string[], after: readonly string[]): Step;
  /** Grows the mounted file system to the size of its device. Missing: it cannot grow while mounted. */
  grow?(device: string, mountPoint: string): Step;
  /** Grows it to the size of its device while it is not mounted. Missing: it need not, or cannot. */
  growUnmounted?(device: string): readonly Step[];
  /** Options it is always mounted with. */
  readonly options?: readonly string[];
  /** True when all its files belong to one group, given as the option `gid=`. */
  readonly ownedByMount?: boolean;
  /** Where its size is written on the device. Missing: not known. */
  readonly superblock?: {
    readonly offset: number;
    readonly length: number;
    /** Bytes of the file system; undefined when this is not its superblock. */
    size(bytes: Buffer): number | undefined;
  };
}
