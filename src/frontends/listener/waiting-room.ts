/** Connections that have not yet said what they are: each may stay for a while, and only so many at once. */

export interface WaitingRoomOptions {
  /** A connection that stays longer is ended. Milliseconds. */
  readonly limitMs: number;
  /** When more come, the one that has waited longest is ended: a flood of silent connections cannot lock others out. */
  readonly places: number;
}

export interface Guest {
  destroy(): unknown;
}

export interface WaitingRoom {
  enter(guest: Guest): void;
  leave(guest: Guest): void;
  /** Ends everybody who waits. */
  clear(): void;
}

export function createWaitingRoom({ limitMs, places }: WaitingRoomOptions): WaitingRoom {
  const timers = new Map<Guest, NodeJS.Timeout>();

  function leave(guest: Guest): void {
    clearTimeout(timers.get(guest));
    timers.delete(guest);
  }
  function turnOut(guest: Guest): void {
    leave(guest);
    guest.destroy();
  }
  return {
    enter(guest) {
      timers.set(
        guest,
        setTimeout(() => turnOut(guest), limitMs),
      );
      const [longest] = timers.keys();
      if (timers.size > places && longest) turnOut(longest);
    },
    leave,
    clear() {
      for (const guest of [...timers.keys()]) turnOut(guest);
    },
  };
}
