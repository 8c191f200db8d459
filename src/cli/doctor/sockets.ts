/** Where the server listens, or would. */
import type { TcpEndpoint, UnixEndpoint } from '../../frontends/listener/endpoints.ts';
import { bounded, whyOf } from './bounded.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('sockets');

const limitMs = 3000;

type Looks = Pick<Inspection, 'endpoints' | 'files' | 'askPlugin' | 'uid'>;

export async function checkSockets(inspection: Looks): Promise<readonly Finding[]> {
  const found = inspection.endpoints.map(async (endpoint) => {
    if (endpoint.kind === 'unix') return checkUnix(inspection, endpoint);
    if (endpoint.kind === 'tcp') return checkTcp(inspection, endpoint);
    return finding('note', endpoint.text, 'handed over by systemd when the service starts; not looked at');
  });
  return Promise.all(found);
}

async function checkUnix(inspection: Looks, { path }: UnixEndpoint): Promise<Finding> {
  const name = `unix://${path}`;
  const facts = await inspection.files.look(path).catch(whyOf);
  if (typeof facts === 'string') return finding('error', name, facts, 'let the server listen on a local file system');
  if (facts === undefined) return finding('note', name, 'there is no socket: no server listens here now');
  if (facts.kind !== 'socket') {
    const advice = 'move it away, or choose another endpoint: a server does not start over it';
    return finding('error', name, `is a ${facts.kind === 'other' ? 'special file' : facts.kind}, not a socket`, advice);
  }
  const owner = `mode ${facts.mode.toString(8).padStart(4, '0')}, of user ${facts.uid} and group ${facts.gid}`;
  const answer = await ask(inspection, name);
  if ('why' in answer) {
    if (/refused|no such socket/.test(answer.why)) {
      const advice = 'start the server: it takes the place of a dead socket';
      return finding('warning', name, `stale: nobody answers on it (${owner})`, advice);
    }
    const advice = /permission denied/i.test(answer.why)
      ? 'run this as the user that runs the server'
      : 'look at the server’s log; restart it if it does not come back';
    return finding('error', name, `${answer.why} (${owner})`, advice);
  }
  if ((facts.mode & 0o002) !== 0) {
    const advice = 'let it be 0600, or 0660 and the orchestrator’s group: --server-socket-permissions-mode';
    return finding('warning', name, `${answer.text}; everybody on this machine may command it (${owner})`, advice);
  }
  return finding(answer.ready ? 'ok' : 'error', name, `${answer.text} (${owner})`, answer.ready ? undefined : notReady);
}

const notReady = 'look at the server’s log: it says what it waits for';

async function checkTcp(inspection: Looks, { text }: TcpEndpoint): Promise<Finding> {
  const answer = await ask(inspection, text);
  if (!('why' in answer))
    return finding(answer.ready ? 'ok' : 'error', text, answer.text, answer.ready ? undefined : notReady);
  const refused = /refused/.test(answer.why);
  return finding(refused ? 'note' : 'warning', text, refused ? 'no server listens here now' : answer.why);
}

async function ask({ askPlugin }: Looks, endpoint: string) {
  try {
    const { name, version, ready, milliseconds } = await bounded(limitMs, 'the server', askPlugin(endpoint));
    return { ready, text: `${name} ${version} answers in ${milliseconds} ms${ready ? '' : ' that it is not ready'}` };
  } catch (error) {
    return { why: whyOf(error) };
  }
}
