/** Which drivers of this process work at which base path: two with different shares there are a mistake that costs data. */
import { CallError } from '../../core/errors.ts';

export interface Claim {
  /** From now on, and until it is given up, the driver works there. Repeated: nothing. */
  make(): void;
  /** Throws FAILED_PRECONDITION while another driver works there on another share. */
  requireAlone(): void;
  giveUp(): void;
}

const claims = new Map<string, Map<symbol, string>>();

/** `title`: the share, equal for those that work on the same. */
export function claimPlace(base: string, title: string): Claim {
  const self = Symbol(title);
  return {
    make() {
      const all = claims.get(base) ?? new Map<symbol, string>();
      claims.set(base, all.set(self, title));
    },
    requireAlone() {
      const other = [...(claims.get(base)?.values() ?? [])].find((one) => one !== title);
      if (other === undefined) return;
      throw new CallError(
        'FAILED_PRECONDITION',
        `${base} is where ${other} is worked on, too, and nothing shows that ${title} is there: give each share a controllerBasePath of its own`,
      );
    },
    giveUp() {
      const all = claims.get(base);
      all?.delete(self);
      if (all?.size === 0) claims.delete(base);
    },
  };
}
