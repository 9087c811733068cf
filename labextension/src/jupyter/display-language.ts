/**
 * JupyterLab's display language: for the page, for the kernel, and for the settings.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';

const TRANSLATION_PLUGIN = '@jupyterlab/translation-extension:plugin';
const ENGLISH = 'en';

/** The tag of the language that the user chose; "" where nobody chose one, and the kernel may know better. */
export async function chosenLanguage(
  { languageCode }: ITranslator,
  registry: ISettingRegistry | null
): Promise<string> {
  if (languageCode !== ENGLISH) {
    return languageCode;
  }
  const settings = await registry?.load(TRANSLATION_PLUGIN).catch(() => null);
  return settings?.composite['locale'] === ENGLISH ? ENGLISH : '';
}

/**
 * Puts a schema's titles and descriptions into the display language, in place. JupyterLab's server translates schemas from language packs
 * alone, and knows none of a package's own.
 */
export function translateSchema(schema: object, trans: TranslationBundle, context = 'schema'): void {
  const fields = schema as Record<string, unknown>;
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string' && (name === 'title' || name === 'description')) {
      fields[name] = trans._p(context, value);
    } else if (typeof value === 'object' && value !== null) {
      translateSchema(value, trans, 'settings');
    }
  }
}
