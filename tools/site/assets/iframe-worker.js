/* A page from a folder on the disk may start no worker, which the search needs. A frame takes its place there. */
if (location.protocol === "file:") {
  globalThis.IFrameWorker = globalThis.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      this.loaded = new Promise((done) => script.addEventListener("load", () => done(inside)));
      script.src = new URL(url, location.href).href;
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.loaded.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
