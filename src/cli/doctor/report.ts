/** Findings as text for people, and as JSON for programs. */
import { styleText } from 'node:util';
import { commit, version } from '../../core/version.ts';
import { printable } from '../output/printable.ts';
import { type Finding, type FindingState, findingStates, subjects } from './finding.ts';

type Colour = 'green' | 'dim' | 'yellow' | 'red' | 'bold';

const markColours: Readonly<Record<FindingState, Colour>> = {
  ok: 'green',
  note: 'dim',
  warning: 'yellow',
  error: 'red',
};

/** What has to be done comes first, what is not there and not needed last. */
const rank: Readonly<Record<FindingState, number>> = { error: 0, warning: 1, ok: 2, note: 3 };

const markWidth = Math.max(...findingStates.map((state) => state.length));
const widestName = 24;

/** Stable: fields are added, never changed or taken away. */
export function jsonReport(findings: readonly Finding[]): string {
  const counts = countByState(findings);
  return `${JSON.stringify({ ok: counts.error === 0, version, commit, counts, findings }, null, 2)}\n`;
}

export function countByState(findings: readonly Finding[]): Readonly<Record<FindingState, number>> {
  const count = (state: FindingState) => findings.filter((finding) => finding.state === state).length;
  return { ok: count('ok'), note: count('note'), warning: count('warning'), error: count('error') };
}

/** `columns`: characters on a line. */
export function textReport(findings: readonly Finding[], columns: number, colours: boolean): string {
  const paint = (colour: Colour, text: string) => (colours ? styleText(colour, text, { validateStream: false }) : text);
  const groups = subjects.flatMap((subject) => {
    const own = findings.filter((finding) => finding.subject === subject);
    if (own.length === 0) return [];
    const title = paint('bold', subject.charAt(0).toUpperCase() + subject.slice(1));
    return [`${title}\n${groupText(own, columns, paint)}`];
  });
  const { ok, note, warning, error } = countByState(findings);
  const total = `${ok} ok, ${plural(note, 'note')}, ${plural(warning, 'warning')}, ${plural(error, 'error')}`;
  return `${groups.join('\n')}\n${paint(error > 0 ? 'red' : 'bold', total)}\n`;
}

function groupText(
  findings: readonly Finding[],
  columns: number,
  paint: (colour: Colour, text: string) => string,
): string {
  const fitting = findings.map(({ name }) => printable(name).length).filter((length) => length <= widestName);
  const nameWidth = Math.max(0, ...fitting);
  const indent = 2 + markWidth + 2 + (nameWidth > 0 ? nameWidth + 2 : 0);
  const lines = findings
    .toSorted((a, b) => rank[a.state] - rank[b.state])
    .flatMap((finding) => {
      const { state, detail, advice } = finding;
      const name = printable(finding.name);
      const mark = paint(markColours[state], state.padEnd(markWidth));
      const [first = '', ...rest] = wrap(printable(detail), columns - indent);
      const more = [...rest, ...(advice === undefined ? [] : wrap(`→ ${printable(advice)}`, columns - indent))];
      const margin = ' '.repeat(indent);
      // A name that is too long for its column gets a line of its own.
      const long = name.length > nameWidth;
      const begin = `  ${mark}  ${long ? name : name.padEnd(nameWidth)}`;
      return [long ? `${begin}\n${margin}${first}` : `${begin}  ${first}`, ...more.map((line) => margin + line)];
    });
  return `${lines.join('\n')}\n`;
}

/** Breaks at spaces; a word that is too long stays whole, so that it can be copied. */
function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= Math.max(width, 30))
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
