/** Handlebars templates for volume ids (`_private.csi.volume.idTemplate`). The library takes long to load and few need it, so it is loaded on demand. */
import { CallError, oneLine } from '../../core/errors.ts';
import type { IdValues } from './volume-id.ts';

type Library = typeof import('handlebars');
let library: Library | undefined;

/** Loads the template library. {@link compileIdTemplate} needs it to have resolved. */
export async function loadTemplates(): Promise<void> {
  const loaded = (await import('handlebars')) as Library & { readonly default?: Library };
  library = loaded.default ?? loaded;
}

/** A template with `name` and `parameters` as a function; nothing is escaped. Throws FAILED_PRECONDITION for text that is not a template. */
export function compileIdTemplate(template: string): (values: IdValues) => string {
  if (!library) throw new CallError('INTERNAL', 'the template library was not loaded before the driver was made');
  try {
    library.parse(template);
  } catch (error) {
    const why = oneLine(error instanceof Error ? error.message : String(error));
    throw new CallError('FAILED_PRECONDITION', `_private.csi.volume.idTemplate is not a Handlebars template: ${why}`);
  }
  return library.compile(template, { noEscape: true });
}
