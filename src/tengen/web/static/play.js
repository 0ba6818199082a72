// Playing against a network and analysing positions, on the live page.
import { h } from "dom.js";

export class PlayTab {
  constructor(host, source) {
    this.host = host;
    this.source = source;
  }

  show() {
    this.host.replaceChildren(h("p", {}, "…"));
  }
}
