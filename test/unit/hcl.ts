/** A reader of the part of HCL that the examples and volume files use. It refuses whatever it does not know. */

export interface Body {
  readonly attributes: Readonly<Record<string, Value>>;
  readonly blocks: readonly Block[];
}

export interface Block extends Body {
  readonly type: string;
  readonly labels: readonly string[];
}

/** A string keeps its `${…}`; an expression that is none of these is its text. */
export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value } | Reference;

export interface Reference {
  readonly reference: string;
}

/** Throws for anything that is not well formed, with the line. */
export function parseHcl(text: string): Body {
  const reader = new Reader(text);
  const body = reader.body(false);
  reader.end();
  return body;
}

/** Blocks of a type, at any depth below. */
export function blocksWithin(body: Body, type: string): readonly Block[] {
  return body.blocks.flatMap((one) => [...(one.type === type ? [one] : []), ...blocksWithin(one, type)]);
}

class Reader {
  #rest: string;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    this.#rest = text;
  }

  body(isBlock: boolean): Body {
    const attributes: Record<string, Value> = {};
    const blocks: Block[] = [];
    for (;;) {
      this.#skip(true);
      if (this.#rest === '' || (isBlock && this.#rest.startsWith('}'))) return { attributes, blocks };
      const name = this.#name();
      this.#skip(false);
      if (this.#take(/^=/)) {
        if (name in attributes) this.#fail(`${name} is set twice`);
        this.#skip(false);
        attributes[name] = this.#value();
        this.#skip(false);
        if (this.#rest !== '' && !/^[\n}]/.test(this.#rest)) this.#fail('something is behind the value');
      } else blocks.push(this.#block(name));
    }
  }

  end(): void {
    if (this.#rest !== '') this.#fail('something is left');
  }

  #block(type: string): Block {
    const labels: string[] = [];
    while (!this.#take(/^\{/)) {
      labels.push(this.#name());
      this.#skip(false);
    }
    const body = this.body(true);
    if (!this.#take(/^\}/)) this.#fail(`${type} is not closed`);
    return { type, labels, ...body };
  }

  #name(): string {
    const plain = this.#take(/^[A-Za-z_][\w-]*/);
    return plain ?? this.#string();
  }

  #value(): Value {
    if (this.#rest.startsWith('"')) return this.#string();
    const number = this.#take(/^-?\d+(\.\d+)?\b/);
    if (number !== undefined) return Number(number);
    const heredoc = /^<<-?(\w+)\n/.exec(this.#rest);
    if (heredoc) return this.#heredoc(heredoc[0], heredoc[1] ?? '');
    if (this.#take(/^\[/)) return this.#list();
    if (this.#take(/^\{/)) return this.#object();
    const word = this.#take(/^[A-Za-z_][\w.]*/) ?? this.#fail('no value');
    if (word === 'true' || word === 'false') return word === 'true';
    return { reference: word };
  }

  #list(): readonly Value[] {
    const items: Value[] = [];
    for (;;) {
      this.#skip(true);
      if (this.#take(/^\]/)) return items;
      items.push(this.#value());
      this.#skip(true);
      if (!this.#take(/^,/) && !this.#rest.startsWith(']')) this.#fail('no comma in a list');
    }
  }

  #object(): Readonly<Record<string, Value>> {
    const { attributes, blocks } = this.body(true);
    if (blocks.length > 0 || !this.#take(/^\}/)) this.#fail('a broken object');
    return attributes;
  }

  #heredoc(head: string, mark: string): string {
    this.#rest = this.#rest.slice(head.length);
    const end = new RegExp(`^[ \\t]*${mark}(?=\\n)`, 'm').exec(this.#rest) ?? this.#fail(`no end of ${mark}`);
    const lines = this.#rest.slice(0, end.index).split('\n');
    this.#rest = this.#rest.slice(end.index + end[0].length);
    const indents = lines.filter((line) => line.trim() !== '').map((line) => /^ */.exec(line)?.[0].length ?? 0);
    const indent = head.startsWith('<<-') ? Math.min(...indents) : 0;
    return lines.map((line) => line.slice(indent)).join('\n');
  }

  #string(): string {
    const quoted =
      this.#take(/^"(?:[^"\\\n]|\\(?:["\\nrt]|u[0-9a-f]{4}))*"/) ?? this.#fail('neither a name nor a string');
    return JSON.parse(quoted);
  }

  #skip(linesToo: boolean): void {
    this.#take(linesToo ? /^(?:\s|#.*|\/\/.*)+/ : /^(?:[ \t]|#.*|\/\/.*)+/);
  }

  #take(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.#rest)?.[0];
    if (found) this.#rest = this.#rest.slice(found.length);
    return found || undefined;
  }

  #fail(why: string): never {
    const line = this.#text.slice(0, this.#text.length - this.#rest.length).split('\n').length;
    throw new Error(`line ${line}: ${why}`);
  }
}
