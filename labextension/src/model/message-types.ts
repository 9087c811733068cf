/**
 * The types of messages, read from messages.json: `"[Hunk]"` is `readonly Hunk[]`, `"last?": "text"` is `readonly last?: string`.
 */
import type spec from '../../../src/devtrace/notebook/panel/messages.json';
import type { JsonObject } from './findings';

type Spec = typeof spec;
type Shapes = Spec['shapes'];

interface IPlain {
  flag: boolean;
  count: number;
  number: number;
  text: string;
  long: string;
  trace: JsonObject;
}

type Value<Text> = Text extends keyof IPlain
  ? IPlain[Text]
  : Text extends keyof Shapes
    ? Fields<Shapes[Text]>
    : Text extends `[${infer Item}]`
      ? ReadonlyArray<Value<Item>>
      : Text extends `{${infer Item}}`
        ? Readonly<Record<string, Value<Item>>>
        : Choice<Text>;

type Choice<Text> = Text extends `${infer First}|${infer Rest}` ? First | Choice<Rest> : Text;

type Needed<Name> = Name extends `${string}?` ? never : Name;
type Optional<Name> = Name extends `${infer Field}?` ? Field : never;
type Fields<Of> = { readonly [Name in keyof Of as Needed<Name>]: Value<Of[Name]> } & {
  readonly [Name in keyof Of as Optional<Name>]?: Value<Of[Name]>;
};

type Messages<Kinds> = { [Kind in keyof Kinds]: { readonly kind: Kind } & Fields<Kinds[Kind]> }[keyof Kinds];

/** Without the number of its request. */
type Unnumbered<Message> = Message extends unknown ? Omit<Message, 'request'> : never;

export type ToPanel = Messages<Spec['to_panel']>;
export type ToKernel = Unnumbered<Messages<Spec['to_kernel']>>;
export type ToView = Messages<Spec['to_view']>;

export type IChangedCell = Value<'ChangedCell'>;
export type IDeviceMemory = Value<'DeviceMemory'>;
export type IDeviceShare = Value<'DeviceShare'>;
export type IDeviceTotal = Value<'DeviceTotal'>;
export type IFixedBug = Value<'FixedBug'>;
export type IFixing = Value<'Fixing'>;
export type IHolding = Value<'Holding'>;
export type IInventory = Value<'Inventory'>;
export type ILive = Value<'Live'>;
export type IPart = Value<'Part'>;
export type IState = Value<'State'>;
export type ITraced = Value<'Traced'>;
