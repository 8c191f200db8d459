/** What this build is. The build replaces the two names; a run from source reads the version beside it and calls itself `dev`. */
import { readFileSync } from 'node:fs';

declare const __SWITCHBOARD_VERSION__: string | undefined;
declare const __SWITCHBOARD_COMMIT__: string | undefined;

/** Such as `0.1.0`. GetPluginInfo's `vendor_version`. */
export const version: string =
  typeof __SWITCHBOARD_VERSION__ === 'string' ? __SWITCHBOARD_VERSION__ : versionOfSource();

/** The short commit the executable was built from, or `dev`. */
export const commit: string = typeof __SWITCHBOARD_COMMIT__ === 'string' ? __SWITCHBOARD_COMMIT__ : 'dev';

function versionOfSource(): string {
  try {
    const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    if (manifest && typeof manifest === 'object' && 'version' in manifest) return String(manifest.version);
  } catch {
    // Not a checkout: the name below is the honest answer.
  }
  return 'dev';
}
