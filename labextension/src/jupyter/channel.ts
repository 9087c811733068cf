/**
 * A comm with the kernel, also over a connection that JupyterLab keeps comms away from: of several connections to one kernel (two
 * notebooks, a notebook and its console) only the first may have any.
 */
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { UUID, type JSONObject } from '@lumino/coreutils';

const TARGET = 'devtrace';

/** What goes to the kernel is plain, checked data, whose lists nobody changes. */
type Plain = Readonly<Record<string, unknown>>;

export interface IChannel {
  send(data: Plain): void;
  dispose(): void;
}

export interface IHandlers {
  readonly received: (data: unknown) => void;
  readonly closed: () => void;
}

/** Opens a channel; `hello` goes with the opening. */
export async function openChannel(
  kernel: Kernel.IKernelConnection,
  hello: Plain,
  handlers: IHandlers
): Promise<IChannel> {
  return kernel.handleComms ? openComm(kernel, hello, handlers) : openBeside(kernel, hello, handlers);
}

async function openComm(
  kernel: Kernel.IKernelConnection,
  hello: Plain,
  { received, closed }: IHandlers
): Promise<IChannel> {
  const comm = kernel.createComm(TARGET);
  // Not by a subshell: when JupyterLab takes one away, ipykernel 7 writes warnings into the output of the cell that runs then.
  (comm as { commsOverSubshells?: string }).commsOverSubshells = 'disabled';
  comm.onMsg = message => {
    received(message.content.data);
  };
  comm.onClose = () => {
    closed();
  };
  await kernel.info;
  comm.open(hello as JSONObject);
  return {
    send: data => {
      comm.send(data as JSONObject);
    },
    dispose: () => {
      if (!comm.isDisposed && !kernel.isDisposed) {
        comm.onClose = () => undefined;
        comm.close();
      }
    }
  };
}

/** The messages of a comm without JupyterLab's part in it. */
async function openBeside(
  kernel: Kernel.IKernelConnection,
  hello: Plain,
  { received, closed }: IHandlers
): Promise<IChannel> {
  const id = UUID.uuid4();
  const listen = (_: unknown, message: KernelMessage.IIOPubMessage): void => {
    if (KernelMessage.isCommMsgMsg(message) && message.content.comm_id === id) {
      received(message.content.data);
    } else if (KernelMessage.isCommCloseMsg(message) && message.content.comm_id === id) {
      kernel.iopubMessage.disconnect(listen);
      closed();
    }
  };
  const options = { channel: 'shell', session: kernel.clientId, username: kernel.username } as const;
  const post = (message: KernelMessage.IMessage<KernelMessage.ShellMessageType>): void => {
    kernel.sendShellMessage(message as KernelMessage.IShellMessage, false, true);
  };
  await kernel.info;
  kernel.iopubMessage.connect(listen);
  post(
    KernelMessage.createMessage<KernelMessage.ICommOpenMsg<'shell'>>({
      ...options,
      msgType: 'comm_open',
      content: { comm_id: id, target_name: TARGET, data: hello as JSONObject }
    })
  );
  return {
    send: data => {
      const content = { comm_id: id, data: data as JSONObject };
      post(
        KernelMessage.createMessage<KernelMessage.ICommMsgMsg<'shell'>>({ ...options, msgType: 'comm_msg', content })
      );
    },
    dispose: () => {
      kernel.iopubMessage.disconnect(listen);
      if (!kernel.isDisposed) {
        const content = { comm_id: id, data: {} };
        post(
          KernelMessage.createMessage<KernelMessage.ICommCloseMsg<'shell'>>({
            ...options,
            msgType: 'comm_close',
            content
          })
        );
      }
    }
  };
}
