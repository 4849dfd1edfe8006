import { type Cap, cappedKinds, FIGURES, type Figure, PERIODS, type SubjectRow } from "./caps.ts";
import { WORKSPACES } from "./operator.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Highest amounts of caps, for a workspace with little room. A request holds up to 200, and has up to 20 tokens. */
const MOST: Record<Figure, number> = {
  concurrent_requests: 5,
  credits: 900,
  input_tokens: 100,
  output_tokens: 120,
  requests: 12,
};

/** For whom the requests of a schedule are made, and the caps of these subjects. */
export class Subjects {
  readonly #world: World;
  readonly #random: Random;
  /** Kinds of subjects that have caps, as far as the replicas know. */
  readonly #kinds = new Map<string, ReadonlySet<string>>();
  /** Probability, in each step, that a cap changes; 0: no request has subjects. */
  #changes = 0;
  /** Factor of the amounts of caps, so that replicas reserve headroom of subjects. */
  #room = 1;
  /** Number of end users. */
  #users = 3;
  /** Probability, in each step, that many small requests come to one replica. */
  #busy = 0;

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Sets the first caps. Half of the schedules have some. */
  open(): void {
    const random = this.#random;
    if (random.isLikely(0.5)) return;
    this.#changes = random.isLikely(0.5) ? random.next() * 0.1 : 1e-9;
    if (random.isLikely(0.7)) {
      this.#room = random.integer(2, 12);
      this.#users = random.integer(1, 2);
      this.#busy = random.next();
    }
    const isWide = this.#busy > 0 && random.isLikely(0.7);
    for (const workspace of WORKSPACES) {
      // Caps are reached before the limits of the workspace.
      if (isWide) {
        this.#world.limit(workspace, {});
        this.#world.grant(workspace, 100_000);
      }
      for (let i = random.integer(0, 5); i > 0; i--)
        this.#world.setCap(workspace, { ...this.#draw(workspace), isFirst: true });
      this.#know(workspace);
    }
  }

  /** For whom a request is made, and which of these subjects can have caps. */
  of(workspace: string, input: number): { row: SubjectRow; subjects?: readonly string[] } {
    if (this.#changes === 0) return { row: {} };
    const random = this.#random;
    const row: SubjectRow = {
      key_id: `${workspace}_k${random.integer(1, 2)}`,
      ...(random.isLikely(0.7) ? { end_user: `u${random.integer(1, this.#users)}` } : {}),
      ...(random.isLikely(0.4) ? { tags: { team: random.pick(["a", "b"]) } } : {}),
      created_at: new Date(this.#world.clock),
      input_tokens: input,
    };
    const kinds = this.#kinds.get(workspace) ?? new Set();
    const { key_id, end_user, tags } = row;
    const subjects = [
      ...(kinds.has(`key:${key_id}`) || kinds.has("key:*") ? [`key:${key_id}`] : []),
      ...(end_user !== undefined && kinds.has("user") ? [`user:${end_user}`] : []),
      ...(tags && kinds.has("tag:team") ? [`tag:team=${tags.team}`] : []),
    ];
    return subjects.length > 0 ? { row, subjects } : { row };
  }

  /** Changes a cap now and then. */
  step(): void {
    const random = this.#random;
    if (this.#changes === 0) return;
    if (random.isLikely(this.#busy)) this.#useMuch();
    if (!random.isLikely(this.#changes)) return;
    const workspace = random.pick(WORKSPACES);
    const caps = this.#world.database.accounts.get(workspace)?.caps ?? [];
    const chance = random.next();
    if (caps.length === 0 || chance < 0.4) this.#world.setCap(workspace, this.#draw(workspace));
    else if (chance < 0.6) this.#world.clearCap(workspace, random.pick(caps));
    else {
      const { isFirst, endsAt, ...cap } = random.pick(caps);
      const end = endsAt === undefined && random.isLikely(0.5) ? {} : { endsAt: this.#end() };
      this.#world.setCap(workspace, { ...cap, amount: this.#amount(cap.figure), ...end });
    }
  }

  /** The caps of a workspace have changed. Replicas learn within a second which kinds of subjects have some. */
  changed(workspace: string): void {
    const isLate = this.#random.isLikely(this.#world.faults);
    this.#world.later(this.#random.integer(0, isLate ? 1_000 : 3), () => this.#know(workspace));
  }

  #know(workspace: string): void {
    const account = this.#world.database.accounts.get(workspace);
    if (account) this.#kinds.set(workspace, cappedKinds(account));
  }

  #useMuch(): void {
    const random = this.#random;
    const replica = random.pick(this.#world.live);
    for (const request of this.#world.requests.values())
      if (request.replica === replica && request.state === "running" && random.isLikely(0.5))
        this.#world.settle(request, random.integer(0, request.hold), random.integer(0, 10));
    for (let i = random.integer(1, 8); i > 0; i--)
      this.#world.later(random.integer(0, 6 * i), () => {
        if (replica.state === "up")
          this.#world.request(replica, WORKSPACES[0], { hold: random.integer(1, 30), input: random.integer(0, 5) });
      });
  }

  #draw(workspace: string): Cap {
    const random = this.#random;
    const subject = random.pick([`key:${workspace}_k1`, "key:*", "user:*", "user:*", "user:u1", "user:u2"]);
    const tag = random.pick(["tag:team=a", "tag:team=*"]);
    const figure = random.pick([...FIGURES, "credits"] as const);
    return {
      subject: random.isLikely(0.3) ? tag : subject,
      figure,
      period: figure === "concurrent_requests" ? "" : random.pick(PERIODS),
      amount: this.#amount(figure),
      action: random.isLikely(0.2) ? "low" : "refuse",
      ...(random.isLikely(0.2) ? { endsAt: this.#end() } : {}),
    };
  }

  #amount(figure: Figure): number {
    return this.#random.integer(0, MOST[figure] * this.#world.room * this.#room);
  }

  /** A whole second, soon. */
  #end(): number {
    return 1_000 * Math.ceil((this.#world.clock + this.#random.integer(500, 40_000)) / 1_000);
  }
}
