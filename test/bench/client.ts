/** A client that does as little as possible per call: what is measured is the server. */
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { Init } from '../../src/generated/csi.js';
import type { Method } from '../../src/generated/services.js';

export interface BenchClient {
  call<Request, Response>(method: Method<Request, Response>, request: Init<Request>): Promise<Response>;
  close(): void;
}

const noMetadata = new Metadata();

/** @param endpoint such as `unix:///tmp/x/csi.sock` or `127.0.0.1:9000` */
export function connect(endpoint: string): BenchClient {
  const client = new Client(endpoint.replace(/^tcp:\/\//, ''), credentials.createInsecure(), {
    'grpc.default_authority': 'localhost',
    'grpc.enable_retries': 0,
  });
  return {
    call: (method, request) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          request,
          noMetadata,
          (error, response) => (error ? reject(error) : resolve(response!)),
        );
      }),
    close: () => client.close(),
  };
}
