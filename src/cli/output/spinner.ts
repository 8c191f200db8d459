/** Shows on a terminal that something is going on, once it has taken long enough for a person to wonder. */
import type { Shell } from '../shell.ts';

const patienceMs = 300;

/** Settles as `work` does. Writes to standard error only, and only when that is a terminal. */
export async function withSpinner<T>(shell: Shell, text: string, work: Promise<T>): Promise<T> {
  if (!shell.errIsTerminal) return work;
  const shown = new AbortController();
  const timer = setTimeout(() => void show(text, shown.signal), patienceMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
    shown.abort();
  }
}

async function show(text: string, over: AbortSignal): Promise<void> {
  const { default: yoctoSpinner } = await import('yocto-spinner');
  if (over.aborted) return;
  // Its own signal handling would end the process before the call is cancelled.
  const spinner = yoctoSpinner({ text, handleSignals: false }).start();
  over.addEventListener('abort', () => spinner.stop(), { once: true });
}
