// What all charts over the graph share: one cursor, one zoom, one selected node.
type Event = 'cursor' | 'zoom' | 'selected';

export class View {
  from = 0;
  to: number;
  cursor = -1;
  selected = -1;
  private listeners: Record<Event, (() => void)[]> = { cursor: [], zoom: [], selected: [] };

  constructor(readonly size: number) {
    this.to = size;
  }

  on(event: Event, listener: () => void) {
    this.listeners[event].push(listener);
  }

  get zoomed() {
    return this.from > 0 || this.to < this.size;
  }

  setCursor(node: number) {
    if (node === this.cursor) return;
    this.cursor = node;
    this.tell('cursor');
  }

  setZoom(from: number, to: number) {
    const same = from === this.from && to === this.to;
    this.from = same ? 0 : from;
    this.to = same ? this.size : to;
    this.tell('zoom');
  }

  select(node: number) {
    this.selected = node;
    if (node >= 0 && (node < this.from || node >= this.to)) {
      this.from = 0;
      this.to = this.size;
      this.tell('zoom');
    }
    this.tell('selected');
  }

  private tell(event: Event) {
    for (const listener of this.listeners[event]) listener();
  }
}
