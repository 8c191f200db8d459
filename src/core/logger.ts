/**
 * Structured log lines on standard error's sibling: one JSON object a line, or readable text when a person is looking.
 *
 * Standard output carries the log, as container runtimes expect; the command line tools print their results there instead and log nothing.
 */
import { inspect } from 'node:util';

/** Severity, most severe first. The names are the ones democratic-csi accepts for `--log-level`. */
export const logLevels = ['error', 'warn', 'info', 'verbose', 'debug', 'silly'] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  verbose(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** True when lines of this level are written, so that costly fields need not be made in vain. */
  enabled(level: LogLevel): boolean;
  /** The same logger with these fields on every line. */
  with(fields: LogFields): Logger;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** `json`: one object a line; `text`: for a terminal. */
  readonly format: 'json' | 'text';
  /** Receives each finished line, newline included. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch; the tests set it. */
  readonly now?: () => number;
}

export function createLogger(options: LoggerOptions, fields: LogFields = {}): Logger {
  const threshold = logLevels.indexOf(options.level);
  const now = options.now ?? Date.now;
  const render = options.format === 'json' ? jsonLine : textLine;
  const log = (level: LogLevel) => (message: string, more?: LogFields) => {
    if (logLevels.indexOf(level) > threshold) return;
    options.write(render(new Date(now()), level, message, { ...fields, ...more }));
  };
  return {
    error: log('error'),
    warn: log('warn'),
    info: log('info'),
    verbose: log('verbose'),
    debug: log('debug'),
    enabled: (level) => logLevels.indexOf(level) <= threshold,
    with: (more) => createLogger(options, { ...fields, ...more }),
  };
}

/** A logger that writes nothing. */
export const silentLogger: Logger = createLogger({ level: 'error', format: 'json', write: () => {} });

function jsonLine(time: Date, level: LogLevel, message: string, fields: LogFields): string {
  return `${JSON.stringify({ time: time.toISOString(), level, message, ...fields }, plainError)}\n`;
}

const colours: Readonly<Record<LogLevel, number>> = {
  error: 31,
  warn: 33,
  info: 32,
  verbose: 36,
  debug: 34,
  silly: 35,
};

function textLine(time: Date, level: LogLevel, message: string, fields: LogFields): string {
  const tail = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${typeof value === 'string' ? quoteIfNeeded(value) : inline(value)}`)
    .join('');
  const clock = time.toISOString().slice(11, 23);
  return `${clock} \u001b[${colours[level]}m${level.padEnd(7)}\u001b[0m ${message}\u001b[2m${tail}\u001b[0m\n`;
}

function quoteIfNeeded(value: string): string {
  return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
}

function inline(value: unknown): string {
  return value instanceof Error
    ? JSON.stringify(value.message)
    : inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 6 });
}

function plainError(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}
