// Browsers start no worker for a page of a file (file:), where the search of the site needs one: a frame runs its script.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent('message', { data }));
      const script = inside.document.createElement('script');
      this.ready = new Promise(resolve => script.addEventListener('load', resolve));
      script.src = new URL(url, location.href).href;
      inside.document.head.append(script);
    }

    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent('message', { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
