/** The end of a server that failed, put off. */

/**
 * Waits until the process is `seconds` old, or is told to stop.
 *
 * For supervisors that take an early end badly. dockerd starts a plugin that ended again while it still waits for the first one, and loses count of
 * them: the plugin that is enabled next is killed and started anew for ever (moby, plugin/manager_linux.go: HandleExitEvent, pluginPostStart). One
 * that is still there is stopped by dockerd after 12.5 s, in good order.
 */
export async function delayFailure(seconds: number): Promise<void> {
  const leftMs = seconds * 1000 - performance.now();
  if (leftMs <= 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const timer = setTimeout(stop, leftMs);
  process.on('SIGTERM', stop).on('SIGINT', stop);
  await promise;
  clearTimeout(timer);
  process.off('SIGTERM', stop).off('SIGINT', stop);
}
