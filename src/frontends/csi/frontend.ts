/** The CSI door: a gRPC server that is handed connections one by one and answers them with a driver. */
import type { Duplex } from 'node:stream';
import {
  type handleUnaryCall,
  type Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { CallContext } from '../../core/call.ts';
import type { Driver } from '../../core/driver.ts';
import { type CallError, statusCodes } from '../../core/errors.ts';
import { secretFields } from '../../generated/secrets.js';
import { services } from '../../generated/services.js';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import { redacted } from '../../pipeline/redact.ts';
import { callerSignal } from './caller-signal.ts';
import { controllerHandlers } from './controller.ts';
import { checkFields } from './field-rules.ts';
import { identityHandlers } from './identity.ts';
import { summaryOf, treatmentOf } from './methods.ts';
import { nodeHandlers } from './node.ts';
import type { ServiceOptions } from './options.ts';

export interface CsiFrontend {
  /** Takes over a connection that speaks HTTP/2 from its first byte. */
  accept(connection: Duplex): void;
  /** Refuses new calls, waits up to `limitMs` for those in flight, then closes every connection. Called again, it only shortens the wait. */
  stop(limitMs: number): Promise<void>;
}

export interface CsiFrontendOptions extends ServiceOptions {
  readonly pipeline: Pipeline;
}

export function createCsiFrontend(driver: Driver, options: CsiFrontendOptions): CsiFrontend {
  const server = new Server();
  const add = (definition: Definition, handlers: object) =>
    server.addService(definition, unaryHandlers(definition, handlers as AnyHandlers, options));
  add(services.Identity, identityHandlers(driver, options));
  if (options.modes.has('controller')) add(services.Controller, controllerHandlers(driver));
  if (options.modes.has('node')) add(services.Node, nodeHandlers(driver));
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  let closed: Promise<void> | undefined;
  return {
    accept: (connection) => injector.injectConnection(connection),
    async stop(limitMs) {
      closed ??= new Promise((resolve) => server.tryShutdown(() => resolve()));
      const timer = setTimeout(() => server.forceShutdown(), limitMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

type Definition = ServiceDefinition & Readonly<Record<string, { readonly requestName: string }>>;
type AnyHandlers = Readonly<Record<string, (call: CallContext, request: object) => Promise<object>>>;

function unaryHandlers(
  definition: Definition,
  handlers: AnyHandlers,
  { pipeline }: CsiFrontendOptions,
): UntypedServiceImplementation {
  const entries = Object.entries(handlers).map(([method, handler]) => {
    const type = definition[method]?.requestName ?? '';
    return [method, unary(method, type, handler, pipeline)];
  });
  return Object.fromEntries(entries);
}

function unary(
  method: string,
  type: string,
  handler: AnyHandlers[string],
  pipeline: Pipeline,
): handleUnaryCall<object, object> {
  const secret = new Set(secretFields[type]);
  const { routine = false, limitMs } = treatmentOf(method);
  return (call: ServerUnaryCall<object, object>, respond) => {
    const { request } = call;
    const caller = callerSignal(call);
    const incoming = {
      method,
      signal: caller.signal,
      secrets: 'secrets' in request ? (request.secrets as Readonly<Record<string, string>>) : {},
      requestId: sentRequestId(call.metadata),
      limitMs,
      routine,
      summary: summaryOf(request),
      details: () => redacted(request, secret),
    };
    pipeline
      .handle(incoming, async (context) => {
        checkFields(type, request);
        return handler(context, request);
      })
      .then(
        (response) => respond(null, response),
        (error: CallError) => respond({ code: statusCodes[error.code], details: error.message }),
      )
      .finally(caller.release);
  };
}

function sentRequestId(metadata: Metadata): string | undefined {
  const [id] = metadata.get('x-request-id');
  return typeof id === 'string' && /^[\w.:-]{1,64}$/.test(id) ? id : undefined;
}
