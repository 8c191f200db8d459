/** What the services need to know besides the driver. */
export type Mode = 'controller' | 'node';

export interface ServiceOptions {
  /** GetPluginInfo's name, `--csi-name`. */
  readonly pluginName: string;
  readonly version: string;
  readonly commit: string;
  /** Which services are offered besides Identity. */
  readonly modes: ReadonlySet<Mode>;
}
