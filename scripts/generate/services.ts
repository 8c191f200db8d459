/** The table of services that servers and clients are made from. */
import protobuf from 'protobufjs';

/** services.js: grpc-js service definitions, built from the codec. */
export function servicesModule(api: protobuf.Namespace): string {
  const types = new Set(servicesOf(api).flatMap(messagesOf));
  return `import { ${[...types].join(', ')} } from './csi.js';

const method = (path, requestName, request, response, responseStream = false) => ({
  path,
  requestName,
  requestStream: false,
  responseStream,
  requestSerialize: (message) => request.encode(message).finish(),
  requestDeserialize: (bytes) => request.decode(bytes),
  responseSerialize: (message) => response.encode(message).finish(),
  responseDeserialize: (bytes) => response.decode(bytes),
});

export const services = {
${servicesOf(api).map(serviceEntry).join('')}};
`;
}

function serviceEntry(service: protobuf.Service): string {
  const entries = service.methodsArray.map((method) => {
    const { requestType: request, responseType: response } = method;
    const stream = method.responseStream ? ', true' : '';
    return `    ${method.name}: method('${pathOf(method)}', '${request}', ${request}, ${response}${stream}),\n`;
  });
  return `  ${service.name}: {\n${entries.join('')}  },\n`;
}

/** services.d.ts. */
export function servicesTypes(api: protobuf.Namespace): string {
  return `import type * as csi from './csi.js';

/** Fits grpc-js's MethodDefinition on the server's side (decoded request, response as Init) and on the client's (the other way round). */
export interface Method<Request, Response, Stream extends boolean = false> {
  readonly path: string;
  /** The name of the request message, as in secretFields. */
  readonly requestName: string;
  readonly requestStream: false;
  readonly responseStream: Stream;
  readonly requestSerialize: (message: csi.Init<Request>) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (message: csi.Init<Response>) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** The decoded request of a method. */
export type RequestOf<M> = M extends { readonly requestDeserialize: (bytes: Buffer) => infer Request } ? Request : never;

/** The decoded response of a method. A handler returns \`Init<ResponseOf<M>>\`. */
export type ResponseOf<M> = M extends { readonly responseDeserialize: (bytes: Buffer) => infer Response } ? Response : never;

export type Services = typeof services;
export type ServiceName = keyof Services;

/** Every service of csi.v1: method name → definition. */
export const services: {
${servicesOf(api).map(serviceTypes).join('')}};
`;
}

function serviceTypes(service: protobuf.Service): string {
  const entries = service.methodsArray.map((method) => {
    const stream = method.responseStream ? ', true' : '';
    return `    readonly ${method.name}: Method<csi.${method.requestType}, csi.${method.responseType}${stream}>;\n`;
  });
  return `  readonly ${service.name}: {\n${entries.join('')}  };\n`;
}

function servicesOf(api: protobuf.Namespace): protobuf.Service[] {
  return api.nestedArray.filter((one) => one instanceof protobuf.Service);
}

function messagesOf(service: protobuf.Service): string[] {
  return service.methodsArray.flatMap((method) => {
    if (method.requestStream) throw new Error(`${method.fullName}: request streams are not foreseen`);
    return [method.requestType, method.responseType];
  });
}

function pathOf(method: protobuf.Method): string {
  return `/${method.parent?.fullName.slice(1)}/${method.name}`;
}
