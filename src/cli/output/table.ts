/** Tables for people: columns in line, no frames. */
import { styleText } from 'node:util';
import Table from 'cli-table3';

const frameless = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '   ' },
};

const plain = { 'padding-left': 0, 'padding-right': 0, head: [], border: [] };

export type Cell = string | number;

/** A head in bold where there are colours, then the rows. Ends with a newline. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[], colours: boolean): string {
  const bold = (text: string) => (colours ? styleText('bold', text, { validateStream: false }) : text);
  return draw([head.map(bold), ...rows.map((row) => row.map(printable))]);
}

/** `name  value` lines; pairs whose value is undefined or empty are left out. */
export function details(pairs: readonly (readonly [string, Cell | undefined])[], colours: boolean): string {
  const dim = (text: string) => (colours ? styleText('dim', text, { validateStream: false }) : text);
  const shown = pairs.filter((pair): pair is [string, Cell] => pair[1] !== undefined && pair[1] !== '');
  return draw(shown.map(([name, value]) => [dim(name), printable(value)]));
}

function draw(rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const grid = new Table({ chars: frameless, style: plain });
  for (const row of rows) grid.push([...row]);
  return `${grid.toString().replace(/[ ]+$/gm, '')}\n`;
}

/** Names come from outside: none of their control characters reaches the terminal, but for line breaks. */
function printable(cell: Cell): string {
  return String(cell).replace(/[^\P{Cc}\n]/gu, '\ufffd');
}
