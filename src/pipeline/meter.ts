/** What is counted of the work that is done. Nothing is, unless somebody asked to read it (pipeline/metrics.ts). */
import { type CopyMeter, silentCopyMeter } from '../core/copies.ts';

export interface CallOutcome {
  readonly method: string;
  /** gRPC status code name. */
  readonly code: string;
  /** Empty when the call was routed nowhere. */
  readonly connection: string;
  readonly driver: string;
  readonly seconds: number;
}

/** Something that was asked of a storage or of the host. */
export interface BackendRequest {
  /** How it was reached: `exec` for programs of the host, `ssh` for scripts on other hosts. */
  readonly backend: string;
  /** What was asked, without anything that varies from volume to volume: the program's name. */
  readonly request: string;
  /** `ok`, or in one word how it failed. */
  readonly outcome: string;
  readonly seconds: number;
}

export interface Meter extends CopyMeter {
  callStarted(method: string): void;
  callEnded(outcome: CallOutcome): void;
  backendAnswered(request: BackendRequest): void;
}

export const silentMeter: Meter = {
  ...silentCopyMeter,
  callStarted: () => {},
  callEnded: () => {},
  backendAnswered: () => {},
};
