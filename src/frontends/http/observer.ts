/** Asks for what cannot be told at once: the state of the connections' files, their free space, this node, readiness. */
import type { CallContext } from '../../core/call.ts';
import { asCallError } from '../../core/errors.ts';
import type { Capacity } from '../../core/volume.ts';
import type { NodeTopologyExplanation } from '../../proxy/node-topology.ts';
import { askableConnections } from './askable-connections.ts';
import { createQuestion, inTurns, type Question } from './question.ts';
import type { ObservedDriver, Sources } from './sources.ts';

/** `unknown`: the storage cannot tell. */
export type Space = Capacity | 'unknown';

export interface NodeFacts {
  readonly nodeId: string | undefined;
  readonly explanation: NodeTopologyExplanation;
  /** Why the node cannot be told, or not all of it. */
  readonly problem: string | undefined;
}

export interface Observer {
  readonly ready: Question<void>;
  /** Undefined on a process without node service. */
  readonly node: Question<NodeFacts> | undefined;
  /** The files of the connections. Its answer means that `driver.connections()` is up to date. */
  readonly files: Question<void>;
  /** Free space by connection; of a driver that serves directly, under the empty name. */
  space(connection: string): Question<Space>;
  /** The connections whose {@link space} can be asked for now. */
  askable(): readonly string[];
  /** Forgets connections that are gone. */
  keepOnly(connections: readonly string[]): void;
}

/** How many storages are asked at once. */
const askedAtOnce = 8;

/** Milliseconds. */
const fresh = { ready: 1000, files: 3000, node: 15_000, space: 15_000 } as const;
const limits = { ready: 3000, files: 3000, node: 6000, space: 5000 } as const;

export function createObserver({ driver, plugin, log }: Sources): Observer {
  const spaces = new Map<string, Question<Space>>();
  const turn = inTurns(askedAtOnce);
  const of = (name: keyof typeof fresh) => ({ log, freshMs: fresh[name], limitMs: limits[name] });

  const files = createQuestion({ ...of('files'), ask: async () => driver.lookAtConnections?.() });

  return {
    ready: createQuestion({ ...of('ready'), ask: async (call) => driver.probe?.(call) }),
    files,
    node:
      driver.node && plugin.modes.includes('node')
        ? createQuestion({ ...of('node'), ask: (call) => askNode(driver, call) })
        : undefined,
    space(connection) {
      const existing = spaces.get(connection);
      if (existing) return existing;
      const question = createQuestion({
        ...of('space'),
        turn,
        ask: async (call) => {
          const parameters: Record<string, string> = connection === '' ? {} : { connection };
          const found = await driver.capacity?.(call, { capabilities: [], parameters });
          return found && found.availableBytes < Number.MAX_SAFE_INTEGER ? found : 'unknown';
        },
      });
      spaces.set(connection, question);
      return question;
    },
    askable() {
      // Every use of a connection looks at its file. On a file system that hangs, each look would hold one of the few threads there are for ever.
      return files.latest().state === 'known' ? askableConnections(driver) : [];
    },
    keepOnly(connections) {
      for (const name of spaces.keys()) if (name !== '' && !connections.includes(name)) spaces.delete(name);
    },
  };
}

/** A driver that serves directly has no rules: its topology is what it says. */
async function askNode(driver: ObservedDriver, call: CallContext): Promise<NodeFacts> {
  const [info, explained] = await Promise.allSettled([driver.node?.info(call), driver.explainNodeTopology?.()]);
  const found = info.status === 'fulfilled' ? info.value : undefined;
  const explanation = explained.status === 'fulfilled' ? explained.value : undefined;
  const failed = [explained, info].find((one) => one.status === 'rejected');
  return {
    nodeId: found?.nodeId,
    explanation: explanation ?? { segments: found?.topology ?? {}, outcomes: [] },
    problem: failed && asCallError(failed.reason).message,
  };
}

/** Asks what is not fresh, and waits for the answers, at most `patienceMs` milliseconds. */
export async function ask(patienceMs: number, questions: readonly Question<unknown>[]): Promise<void> {
  for (const question of questions) question.latest();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, patienceMs);
  });
  await Promise.race([Promise.all(questions.map((one) => one.answered())), late]);
  clearTimeout(timer);
}
