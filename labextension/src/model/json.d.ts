declare module '*/messages.json' {
  type Fields = Readonly<Record<string, string>>;
  const spec: {
    readonly protocol: number;
    readonly to_kernel: Readonly<Record<string, Fields>>;
    readonly to_panel: Readonly<Record<string, Fields>>;
    readonly to_view: Readonly<Record<string, Fields>>;
    readonly from_view: Readonly<Record<string, Fields>>;
    readonly shapes: Readonly<Record<string, Fields>>;
  };
  export default spec;
}
