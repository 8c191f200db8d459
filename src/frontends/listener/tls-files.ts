/** The certificate files of a TLS listener, read and checked so that a mistake shows at start and names the file. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { CallError, oneLine } from '../../core/errors.ts';

/** Paths of PEM files. */
export interface TlsFiles {
  /** The server's certificate, with intermediate ones after it. */
  readonly cert: string;
  readonly key: string;
  /** A client must show a certificate that one of these signed. */
  readonly clientCa: string;
}

/** Contents, as `tls.createServer` takes them. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer;
}

/** Throws FAILED_PRECONDITION that names the flag and the file when one is missing, is not what it should be, or does not fit the others. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, ca] = await Promise.all([
    about(`--server-tls-cert ${files.cert}`, () => readFile(files.cert)),
    about(`--server-tls-key ${files.key}`, () => readFile(files.key)),
    about(`--server-tls-client-ca ${files.clientCa}`, () => readFile(files.clientCa)),
  ]);
  const certificate = await about(`--server-tls-cert ${files.cert}`, () => new X509Certificate(cert));
  const privateKey = await about(`--server-tls-key ${files.key}`, () => createPrivateKey(key));
  await about(`--server-tls-client-ca ${files.clientCa}`, () => new X509Certificate(ca));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new CallError('FAILED_PRECONDITION', `the key ${files.key} does not belong to the certificate ${files.cert}`);
  }
  await about('the TLS files', () => createSecureContext({ cert, key, ca }));
  return { cert, key, ca };
}

export function isSameTls(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.cert.equals(b.cert) && a.key.equals(b.key) && a.ca.equals(b.ca);
}

async function about<T>(what: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const message = oneLine(error instanceof Error ? error.message : String(error));
    throw new CallError('FAILED_PRECONDITION', `${what}: ${message}`, { cause: error });
  }
}
