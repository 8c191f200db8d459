import { get } from 'node:http';
import { CallError } from '../../core/errors.ts';

const limitMs = 2000;
const mostBytes = 2 ** 20;

/** The body of an answer over a unix socket. Rejects when it is not 200, takes too long, or is too long. */
export function httpGet(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      socketPath,
      path,
      headers: { host: 'localhost' },
      signal: AbortSignal.timeout(limitMs),
      agent: false,
    };
    const request = get(options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        body += part;
        if (body.length > mostBytes) request.destroy(new CallError('INTERNAL', 'the answer is too long'));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new CallError('INTERNAL', `it answers with HTTP ${response.statusCode}`));
      });
    });
    request.on('error', (error) => {
      const late = error.name === 'AbortError' || error.name === 'TimeoutError';
      reject(late ? new CallError('UNAVAILABLE', `no answer within ${limitMs / 1000} s`) : error);
    });
  });
}
