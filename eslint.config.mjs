import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['**/node_modules', 'build', 'labextension/lib', 'src', '.venv*'] },
  js.configs.recommended,
  {
    files: ['labextension/**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: 'labextension/test/tsconfig.json' } },
    rules: {
      eqeqeq: 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-console': ['error', { allow: ['error'] }],
      '@typescript-eslint/array-type': ['error', { default: 'array-simple' }],
      // node:test's test() gives a promise that the runner awaits.
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: ['test', 'describe', 'it'], package: 'node:test' }] }
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // A data attribute has its name in brackets: the DOM's type for `dataset` is an index signature.
      '@typescript-eslint/dot-notation': 'off'
    }
  }
);
