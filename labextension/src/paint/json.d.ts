declare module '*/palette.json' {
  interface IStep {
    readonly light: string;
    readonly light_ink: string;
    readonly dark: string;
    readonly dark_ink: string;
    readonly hatch: string;
  }
  type Kind = 'cpu' | 'cuda' | 'mps' | 'xpu' | 'meta' | 'other';
  type Severity = 'error' | 'warning' | 'note';
  const palette: {
    readonly kinds: Readonly<Record<Kind, { readonly letter: string; readonly steps: readonly IStep[] }>>;
    readonly severity: Readonly<
      Record<Severity, { readonly light: string; readonly dark: string; readonly sign: string }>
    >;
  };
  export default palette;
}
