import type { Problem } from '../../config/problem.ts';
import { about, type Finding } from './finding.ts';
import type { Inspection } from './inspection.ts';

const finding = about('configuration');

/** What `switchboard check` says of the files. */
export async function checkConfiguration({
  configured,
  stateDirectory,
}: Pick<Inspection, 'configured' | 'stateDirectory'>): Promise<readonly Finding[]> {
  const { path, files } = configured;
  const found: Finding[] = [];
  if (path === undefined) {
    const advice = 'give the file that the server gets, by --config; see "switchboard serve --help" for where it looks';
    const detail = files.length > 0 ? 'is used' : 'would be made';
    found.push(
      finding(
        'note',
        'main file',
        `there is none: the server’s own configuration in ${stateDirectory} ${detail}`,
        advice,
      ),
    );
  }
  for (const file of files) {
    const name = file.connection === undefined ? 'main file' : `connection ${file.connection}`;
    const problems = file.problems.map((problem) => ofProblem(name, problem));
    const broken = file.problems.some((one) => one.severity === 'error');
    if (!broken && file.driver !== undefined) found.push(finding('ok', name, `${file.file}, driver ${file.driver}`));
    found.push(...problems);
  }
  return found;
}

function ofProblem(name: string, { severity, file, line, column, message }: Problem): Finding {
  const place = line > 0 ? `${file}:${line}:${column}` : file;
  return finding(severity, name, `${place}: ${message}`);
}
