/** A CSI plugin that is measured. */

export interface Subject {
  readonly name: string;
  /** Parameters that its volumes are created with. */
  readonly parameters: Readonly<Record<string, string>>;
  /** How it is started, in an empty folder. Undefined: it runs already. */
  readonly prepare?: (folder: string) => Promise<Start>;
  /** Where it runs already. */
  readonly running?: Plugin;
  /** Only its start is measured. */
  readonly startOnly?: true;
}

export interface Start {
  readonly command: readonly string[];
  readonly endpoint: string;
}

/** A plugin that answers. */
export interface Plugin {
  /** Such as `unix:///tmp/x/csi.sock` or `127.0.0.1:9000`. */
  readonly endpoint: string;
  /** Undefined: it is not known, and nothing that the kernel counts can be told. */
  readonly pid: number | undefined;
}
