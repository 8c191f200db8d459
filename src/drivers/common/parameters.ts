import type { Parameters } from '../../core/volume.ts';

/** Who is asking: keys can be meant for one driver or one instance only. */
export interface ParameterScope {
  /** The `driver:` name. */
  readonly driver: string;
  readonly instanceId?: string | undefined;
}

const namespace = 'democratic-csi.org';

/**
 * A parameter or secret that may be given to one driver or instance only. The most specific key wins: `democratic-csi.org/<instance>/<key>`,
 * `democratic-csi.org/<driver>/<key>`, `democratic-csi.org/<key>`, then the bare key.
 */
export function parameter(values: Parameters, key: string, scope: ParameterScope): string | undefined {
  const keys = [`${namespace}/${scope.driver}/${key}`, `${namespace}/${key}`, key];
  if (scope.instanceId) keys.unshift(`${namespace}/${scope.instanceId}/${key}`);
  const found = keys.find((one) => Object.hasOwn(values, one));
  return found === undefined ? undefined : values[found];
}

/** Whether two sets of parameters say the same. */
export function sameParameters(one: Parameters, other: Parameters): boolean {
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && one[key] === other[key])
  );
}
