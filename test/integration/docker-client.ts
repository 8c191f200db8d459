/** Docker's side of the volume plugin protocol, as small as curl. */
import { request } from 'node:http';

export interface DockerAnswer {
  readonly Err: string;
  readonly Mountpoint?: string;
  readonly Volume?: { readonly Name: string; readonly Mountpoint: string; readonly Status: Record<string, string> };
  readonly Volumes?: readonly { readonly Name: string; readonly Mountpoint: string }[];
  readonly Capabilities?: { readonly Scope: string };
}

export type AskDocker = (endpoint: string, message?: object, signal?: AbortSignal) => Promise<DockerAnswer>;

/** `endpoint`: such as `Mount`. Rejects when the connection breaks or the signal is aborted. */
export function dockerClient(socketPath: string): AskDocker {
  return (endpoint, message = {}, signal = new AbortController().signal) =>
    new Promise((resolve, reject) => {
      const path = `/VolumeDriver.${endpoint}`;
      const sent = request({ socketPath, method: 'POST', path, signal }, async (response) => {
        const parts: Buffer[] = [];
        for await (const part of response) parts.push(part);
        resolve(JSON.parse(Buffer.concat(parts).toString()));
      });
      sent.on('error', reject);
      sent.end(JSON.stringify(message));
    });
}
