/**
 * The messages of a comm with the kernel, without JupyterLab's part in it: of several connections to one kernel (two notebooks, a notebook
 * and its console) only the first may have comms. Nor do they go to a subshell: when JupyterLab takes one away, ipykernel 7 writes
 * warnings into the output of the cell that runs then.
 */
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

const TARGET = 'devtrace';

/** What goes to the kernel is plain, checked data, whose lists nobody changes. */
type Plain = Readonly<Record<string, unknown>>;

export interface IChannel {
  send(data: Plain): void;
  dispose(): void;
}

interface IHandlers {
  readonly received: (data: unknown) => void;
  readonly closed: () => void;
}

/** Opens a channel; `hello` goes with the opening. */
export async function openChannel(
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
  const post = (msgType: 'comm_open' | 'comm_msg' | 'comm_close', content: object): void => {
    const { clientId: session, username } = kernel;
    const options = { channel: 'shell', session, username, msgType, content: { comm_id: id, ...content } };
    const message = KernelMessage.createMessage(options as KernelMessage.IOptions<KernelMessage.ICommMsgMsg<'shell'>>);
    kernel.sendShellMessage(message, false, true);
  };
  await kernel.info;
  kernel.iopubMessage.connect(listen);
  post('comm_open', { target_name: TARGET, data: hello });
  return {
    send: data => {
      post('comm_msg', { data });
    },
    dispose: () => {
      kernel.iopubMessage.disconnect(listen);
      if (!kernel.isDisposed) {
        post('comm_close', { data: {} });
      }
    }
  };
}
